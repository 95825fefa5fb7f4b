/* Parts of the daemon, each tested alone: times of launches, descriptors from clients, turns of the loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/collect/batch.h"
#include "daemon/serve/close_thread.h"
#include "daemon/serve/server_state.h"
#include "support/clock.h"
#include "support/paths.h"

#define SECOND INT64_C(1000000000)
#define SKEW   (60 * SECOND)

/* Returns how many of `n` launches at these times are kept, for a program that started at `process_start_ns`.
 */
static size_t kept_of(int64_t process_start_ns, const uint64_t *starts_ns, size_t n, uint64_t duration_ns)
{
    static struct occ_batch batch;
    static struct occ_producer_config config; /* a kernel's */
    int64_t boot_ns = occ_boot_ns(), offset_ns = occ_now_ns() - boot_ns;
    struct occ_producer producer = {.tables.configs = &config,
                                    .clock = {.process_start_boot_ns = process_start_ns - offset_ns,
                                              .min_offset_ns = offset_ns,
                                              .max_offset_ns = offset_ns}};
    batch.producer = &producer;
    batch.n = n;
    for (size_t i = 0; i < n; i++)
        batch.launches[i] = (struct occ_ring_launch){.start_ns = starts_ns[i], .duration_ns = duration_ns};
    occ_batch_drop_impossible(&batch, SKEW, boot_ns);
    assert_int_equal(producer.bad_times, n - batch.n);
    return batch.n;
}

/* Boards without a battery start at the epoch, and an unknown start counts as a day ago. */
static void launches_of_the_first_minute_are_possible(void **state)
{
    (void)state;
    const uint64_t starts_ns[] = {1, 30 * SECOND, 90 * SECOND, 4000 * SECOND};
    static const int64_t process_starts_s[] = {-80000, 0, 1, 30, 59, 60, 61};
    for (size_t i = 0; i < sizeof process_starts_s / sizeof *process_starts_s; i++) {
        int64_t start_s = process_starts_s[i];
        assert_int_equal(kept_of(start_s * SECOND, starts_ns, 4, SECOND), start_s == 61 ? 3 : 4);
    }
}

#define BOOT (5000 * SECOND)       /* time since boot when the program offers its ring, */
#define WALL (1000000000 * SECOND) /* and the time of day */

/* Sets the clock by `step_s` ten seconds after a program's offer; the program started ten seconds before its
 * offer. Launches by the old and by the new setting are kept, others are dropped. */
static void check_step(int64_t step_s)
{
    static struct occ_batch batch;
    static struct occ_producer_config config; /* a kernel's */
    int64_t offset_ns = WALL - BOOT, step_ns = step_s * SECOND;
    int64_t boot_ns = BOOT + 20 * SECOND, old_ns = WALL + 20 * SECOND, new_ns = old_ns + step_ns;
    struct occ_producer producer = {.tables.configs = &config,
                                    .clock = {.process_start_boot_ns = BOOT - 10 * SECOND,
                                              .offset_ns = offset_ns,
                                              .min_offset_ns = offset_ns,
                                              .max_offset_ns = offset_ns}};
    occ_producer_follow_clock(&producer, WALL + 10 * SECOND, BOOT + 10 * SECOND);
    assert_int_equal(producer.clock.uncertain_ns, 0);
    occ_producer_follow_clock(&producer, new_ns, boot_ns);
    assert_int_equal(producer.clock.uncertain_ns, step_ns < 0 ? -step_ns : step_ns);
    assert_int_equal(producer.run.row_changed, step_ns != 0);
    int64_t low_ns = step_ns < 0 ? new_ns : old_ns, high_ns = step_ns < 0 ? old_ns : new_ns;
    const int64_t starts_ns[] = {old_ns - 15 * SECOND,
                                 old_ns - SECOND,
                                 new_ns - 5 * SECOND,
                                 new_ns - SECOND,
                                 low_ns - 95 * SECOND /* before the process started */,
                                 high_ns + 65 * SECOND};
    batch.producer = &producer;
    batch.n = sizeof starts_ns / sizeof *starts_ns;
    for (size_t i = 0; i < batch.n; i++)
        batch.launches[i] = (struct occ_ring_launch){.start_ns = (uint64_t)starts_ns[i], .duration_ns = 1000};
    occ_batch_drop_impossible(&batch, SKEW, boot_ns);
    assert_int_equal(batch.n, 4);
    assert_int_equal(producer.bad_times, 2);
}

static void a_clock_that_is_set_costs_no_launch(void **state)
{
    (void)state;
    static const int64_t steps_s[] = {0, -120, -3600, 3600, 86400, -86400};
    for (size_t i = 0; i < sizeof steps_s / sizeof *steps_s; i++)
        check_step(steps_s[i]);
}

/* Both clocks continue while the machine is suspended, and a clock's rate is adjusted in small steps. */
static void suspended_time_and_adjusted_rates_are_no_step(void **state)
{
    (void)state;
    struct occ_producer producer = {.clock = {.offset_ns = WALL - BOOT}};
    occ_producer_follow_clock(&producer, WALL + 86400 * SECOND, BOOT + 86400 * SECOND);
    assert_int_equal(producer.clock.uncertain_ns, 0);
    for (int64_t i = 1; i <= 10; i++)
        occ_producer_follow_clock(&producer, WALL + i * SECOND + i * SECOND / 2, BOOT + i * SECOND);
    assert_int_equal(producer.clock.uncertain_ns, 0);
    assert_false(producer.run.row_changed);
}

static void launches_before_their_process_or_of_the_future_are_dropped(void **state)
{
    (void)state;
    uint64_t now_ns = (uint64_t)occ_now_ns(), hour_ns = 3600 * SECOND;
    const uint64_t starts_ns[] = {now_ns - hour_ns - SKEW - SECOND, now_ns - hour_ns - SKEW + SECOND, now_ns,
                                  now_ns + hour_ns, UINT64_MAX};
    assert_int_equal(kept_of((int64_t)(now_ns - hour_ns), starts_ns, 5, SECOND), 2);
    assert_int_equal(kept_of((int64_t)(now_ns - hour_ns), starts_ns, 5, UINT64_MAX), 0);
}

/* ---- descriptors of a packet ---- */

static size_t count_open(const int *fds, size_t n)
{
    size_t open = 0;
    for (size_t i = 0; i < n; i++)
        open += fcntl(fds[i], F_GETFD) >= 0;
    return open;
}

static void open_sockets(int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0)
            _exit(10);
}

/* Closes descriptors as an ordinary user with an exhausted limit of processes, then with the old limit. The
 * closing must wait for a thread. Returns 0 on success. */
static int close_without_threads(void)
{
    enum { N = 20 };
    static struct occ_close_thread close_thread;
    struct rlimit limit, none;
    int fds[N];
    open_sockets(fds, N);
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
        return 1;
    if (getrlimit(RLIMIT_NPROC, &limit) != 0)
        return 2;
    none = (struct rlimit){.rlim_cur = 1, .rlim_max = limit.rlim_max};
    if (setrlimit(RLIMIT_NPROC, &none) != 0)
        return 3;
    occ_close_thread_start(&close_thread, fds, N);
    for (int i = 0; i < 3; i++)
        if (!occ_close_thread_is_busy(&close_thread) || count_open(fds, N) != N)
            return 4; /* forgotten, or closed by this thread */
    if (setrlimit(RLIMIT_NPROC, &limit) != 0)
        return 5;
    while (occ_close_thread_is_busy(&close_thread))
        (void)usleep(1000);
    return count_open(fds, N) == 0 ? 0 : 6;
}

static void descriptors_wait_for_a_thread(void **state)
{
    int status = 0;
    (void)state;
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(close_without_threads());
    assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void descriptors_are_closed(void **state)
{
    static struct occ_close_thread close_thread;
    int fds[OCC_PACKET_MAX_FDS];
    (void)state;
    for (int again = 0; again < 2; again++) {
        open_sockets(fds, OCC_PACKET_MAX_FDS);
        occ_close_thread_start(&close_thread, fds, OCC_PACKET_MAX_FDS);
        while (occ_close_thread_is_busy(&close_thread))
            (void)usleep(1000);
        assert_int_equal(count_open(fds, OCC_PACKET_MAX_FDS), 0);
    }
    fds[0] = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    occ_close_thread_start(&close_thread, fds, 1);
    assert_int_equal(count_open(fds, 1), 0); /* at once */
    assert_false(occ_close_thread_is_busy(&close_thread));
}

/* ---- turns of the loop ---- */

/* Returns a server that only has its socket, at an abstract address that the kernel chose. */
static struct occ_server *new_server(struct sockaddr_un *address, socklen_t *size)
{
    struct occ_server *s = calloc(1, sizeof *s);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    *size = sizeof *address;
    s->listener = (struct occ_listener){
        .fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), .spare = -1};
    s->loop.epoll = s->clients.epoll = epoll_create1(EPOLL_CLOEXEC);
    s->histories_options.collector.max_producers = 16;
    assert_int_equal(bind(s->listener.fd, (struct sockaddr *)address, sizeof address->sun_family), 0);
    assert_int_equal(listen(s->listener.fd, 1024), 0);
    assert_int_equal(getsockname(s->listener.fd, (struct sockaddr *)address, size), 0);
    return s;
}

static void free_server(struct occ_server *s)
{
    occ_clients_clear(&s->clients);
    (void)close(s->listener.fd);
    (void)close(s->loop.epoll);
    free(s);
}

static int connect_to_address(const struct sockaddr_un *address, socklen_t size)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)address, size), 0);
    return fd;
}

static bool is_hung_up(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

/* A flush waits until the connections before it are accepted. The count of accepted connections includes
 * connections beyond their uid's allowance. */
static void every_accepted_connection_counts(void **state)
{
    (void)state;
    enum { CONNECTIONS = 30 };
    struct sockaddr_un address;
    socklen_t size;
    int fds[CONNECTIONS];
    char user[32];
    (void)snprintf(user, sizeof user, "u%u", getuid());
    for (int is_allowed = 0; is_allowed < 2; is_allowed++) {
        struct occ_server *s = new_server(&address, &size);
        s->histories_options.collector.round_ns = INT64_C(3600) * SECOND;
        while (!is_allowed && occ_arrivals_admit(&s->by_uid, user, occ_monotonic_ns() + 3600 * SECOND))
            ;
        for (int i = 0; i < CONNECTIONS; i++)
            fds[i] = connect_to_address(&address, size);
        occ_connections_accept(s, NULL);
        assert_int_equal(s->accepts, CONNECTIONS);
        assert_int_equal(s->clients.n, is_allowed ? CONNECTIONS : 0);
        assert_int_equal(s->refusals.all[OCC_REFUSED_FULL], is_allowed ? 0 : CONNECTIONS);
        assert_true(s->arrivals.is_drained);
        for (int i = 0; i < CONNECTIONS; i++) {
            assert_int_equal(is_hung_up(fds[i]), !is_allowed);
            (void)close(fds[i]);
        }
        free_server(s);
    }
}

/* Writes a file below the directory, which stands for the system's root. */
static void put_file(const char *root, const char *path, const char *text)
{
    char whole[160];
    (void)snprintf(whole, sizeof whole, "%s/%s", root, path);
    assert_int_equal(occ_path_make_parents(whole, NULL), 0);
    FILE *file = fopen(whole, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void make_root(char root[64])
{
    assert_non_null(mkdtemp(strcpy(root, "/tmp/occ-parts-XXXXXX")));
}

static void remove_root(const char *root)
{
    char command[96];
    (void)snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

/* Processes of a rootless container can have many subordinate uids of the container's user: they share the
 * user's allowance, and the user's status reports their refusals. */
static void subordinate_uids_spend_their_users_allowance(void **state)
{
    (void)state;
    enum { FIRST = 100000, UIDS = 3 };
    char root[64];
    struct sockaddr_un address;
    socklen_t size;
    int fds[UIDS];
    if (getuid() != 0)
        skip();
    make_root(root);
    put_file(root, "etc/subuid", "4242:100000:3\n");
    struct occ_server *s = new_server(&address, &size);
    s->histories_options.collector.round_ns = INT64_C(3600) * SECOND;
    s->clients.is_shared = true;
    assert_int_equal(occ_accounts_new(root, &s->clients.accounts, NULL), 0);
    while (occ_arrivals_admit(&s->by_uid, "u4242", occ_monotonic_ns() + 3600 * SECOND))
        ;
    while (occ_arrivals_admit(&s->by_owner, "u4242", occ_monotonic_ns() + 3600 * SECOND))
        ;
    for (uint32_t i = 0; i < UIDS; i++) {
        assert_int_equal(seteuid(FIRST + i), 0);
        fds[i] = connect_to_address(&address, size);
        assert_int_equal(seteuid(0), 0);
    }
    occ_connections_accept(s, NULL);
    assert_int_equal(s->clients.n, 0);
    const uint64_t *refused = occ_refusals_by(&s->refusals, "u4242");
    assert_non_null(refused);
    assert_int_equal(refused[OCC_REFUSED_FULL], UIDS);
    assert_int_equal(s->refusals.n, 1);
    for (int i = 0; i < UIDS; i++) {
        assert_true(is_hung_up(fds[i]));
        (void)close(fds[i]);
    }
    occ_accounts_free(s->clients.accounts);
    free_server(s);
    remove_root(root);
}

#define CONTAINER "3f1c0e9a8b7d6c5f4e3d2c1b0a99887766554433221100ffeeddccbbaa998877"

#define OTHER_CONTAINER "0f1c0e9a8b7d6c5f4e3d2c1b0a99887766554433221100ffeeddccbbaa998877"

/* Sets the control groups in which the daemon sees this process. */
static void be_seen_in(const char *root, const char *cgroups)
{
    char path[64];
    (void)snprintf(path, sizeof path, "proc/%d/cgroup", (int)getpid());
    put_file(root, path, cgroups);
}

static struct occ_server *new_shared_server(char root[64], struct sockaddr_un *address, socklen_t *size)
{
    struct occ_server *s = new_server(address, size);
    make_root(root);
    s->histories_options.collector.round_ns = INT64_C(3600) * SECOND;
    s->histories_options.collector.max_producers = 1024;
    s->histories_options.collector.max_user_producers = 16;
    s->clients.is_shared = true;
    assert_int_equal(occ_accounts_new(root, &s->clients.accounts, NULL), 0);
    return s;
}

static void free_shared_server(struct occ_server *s, const char *root)
{
    occ_accounts_free(s->clients.accounts);
    free_server(s);
    remove_root(root);
}

static size_t clients_of(const struct occ_server *s, const char *container)
{
    const struct occ_user *user = s->clients.users;
    while (user && strcmp(user->container, container) != 0)
        user = user->next;
    return user ? user->n_clients : 0;
}

/* Most containers run as root: one of them that has spent the uid's allowance leaves the others' and the
 * host's. */
static void a_container_spends_its_own_allowance(void **state)
{
    (void)state;
    char root[64], user[32];
    struct sockaddr_un address;
    socklen_t size;
    (void)snprintf(user, sizeof user, "u%u", getuid());
    struct occ_server *s = new_shared_server(root, &address, &size);
    while (occ_arrivals_admit(&s->by_uid, user, occ_monotonic_ns() + 3600 * SECOND))
        ;
    while (occ_arrivals_admit(&s->by_owner, "container-" CONTAINER, occ_monotonic_ns() + 3600 * SECOND))
        ;
    be_seen_in(root, "0::/docker/" CONTAINER "\n");
    int flooding = connect_to_address(&address, size);
    occ_connections_accept(s, NULL);
    assert_true(is_hung_up(flooding));
    assert_int_equal(occ_refusals_by(&s->refusals, "container-" CONTAINER)[OCC_REFUSED_FULL], 1);
    assert_null(occ_refusals_by(&s->refusals, user));
    be_seen_in(root, "0::/system.slice/x.service\n");
    int outside = connect_to_address(&address, size);
    occ_connections_accept(s, NULL);
    assert_false(is_hung_up(outside));
    assert_int_equal(s->clients.n, 1);
    assert_int_equal(clients_of(s, ""), 1);
    be_seen_in(root, "0::/docker/" OTHER_CONTAINER "\n");
    int other = connect_to_address(&address, size);
    occ_connections_accept(s, NULL);
    assert_false(is_hung_up(other));
    assert_int_equal(clients_of(s, "container-" OTHER_CONTAINER), 1);
    /* a container without a control group of its own */
    char path[64], unnamed[64];
    (void)snprintf(path, sizeof path, "proc/%d/status", (int)getpid());
    (void)snprintf(unnamed, sizeof unnamed, "%s-in-containers", user);
    put_file(root, path, "Name:\tx\nNSpid:\t7\t1\n");
    be_seen_in(root, "0::/machine.slice/guest\n");
    int nested = connect_to_address(&address, size);
    occ_connections_accept(s, NULL);
    assert_false(is_hung_up(nested));
    assert_int_equal(clients_of(s, unnamed), 1);
    assert_int_equal(clients_of(s, ""), 1);
    (void)close(nested);
    (void)close(flooding);
    (void)close(outside);
    (void)close(other);
    free_shared_server(s, root);
}

/* Connections that send nothing hold few places of their uid, and the rest at their container. */
static void a_container_holds_places_of_its_own(void **state)
{
    (void)state;
    enum { CONNECTIONS = 200, UNIDENTIFIED = 32, PLACES = 16 + 64 };
    char root[64];
    struct sockaddr_un address;
    socklen_t size;
    int fds[CONNECTIONS];
    struct occ_server *s = new_shared_server(root, &address, &size);
    be_seen_in(root, "0::/docker/" CONTAINER "\n");
    for (int i = 0; i < CONNECTIONS; i++)
        fds[i] = connect_to_address(&address, size);
    while (s->accepts < CONNECTIONS)
        occ_connections_accept(s, NULL);
    occ_clients_sweep(&s->clients);
    for (int i = 0; i < CONNECTIONS; i++)
        assert_int_equal(is_hung_up(fds[i]), i >= UNIDENTIFIED + PLACES);
    assert_int_equal(clients_of(s, "container-" CONTAINER), PLACES);
    assert_int_equal(clients_of(s, ""), UNIDENTIFIED);
    be_seen_in(root, "0::/system.slice/x.service\n");
    int outside[PLACES - UNIDENTIFIED];
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        outside[i] = connect_to_address(&address, size);
    occ_connections_accept(s, NULL);
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        assert_false(is_hung_up(outside[i]));
        (void)close(outside[i]);
    }
    for (int i = 0; i < CONNECTIONS; i++)
        (void)close(fds[i]);
    free_shared_server(s, root);
}

/* A user's new connections beyond the limit replace his connections without a handshake, except connections
 * of the last ten seconds: their handshakes may be on the way. */
static void the_last_connections_are_not_idle(void **state)
{
    (void)state;
    enum { LIMIT = 1 + 64, MORE = 3 };
    struct sockaddr_un address;
    socklen_t size;
    int fds[LIMIT + MORE];
    struct occ_server *s = new_server(&address, &size);
    s->histories_options.collector.max_producers = 1;
    for (int i = 0; i < LIMIT + MORE; i++) {
        fds[i] = connect_to_address(&address, size);
        occ_connections_accept(s, NULL);
    }
    for (int i = 0; i < LIMIT + MORE; i++)
        assert_int_equal(is_hung_up(fds[i]), i >= LIMIT);
    assert_int_equal(s->refused, MORE);
    occ_clients_sweep(&s->clients);
    assert_int_equal(s->clients.n, LIMIT);
    for (struct occ_client *c = s->clients.first; c; c = c->next)
        c->since_ns -= (c->next ? 9 : 11) * SECOND; /* the last in the list came first */
    int fresh = connect_to_address(&address, size);
    occ_connections_accept(s, NULL);
    for (int i = 0; i < LIMIT; i++)
        assert_int_equal(is_hung_up(fds[i]), i == 0);
    (void)close(fresh);
    for (int i = 0; i < LIMIT + MORE; i++)
        (void)close(fds[i]);
    free_server(s);
}

static void sleep_long(struct occ_server *s, void *unused)
{
    const struct timespec long_time = {.tv_nsec = 300000000};
    (void)s;
    (void)unused;
    (void)nanosleep(&long_time, NULL);
}

static void work_long(struct occ_server *s, void *unused)
{
    int64_t until_ns = occ_thread_cpu_ns() + SECOND / 10;
    (void)s;
    (void)unused;
    while (occ_thread_cpu_ns() < until_ns)
        ;
}

/* Returns how long a user waits after a turn with this handler. */
static int64_t wait_after(void (*handle)(struct occ_server *server, void *about))
{
    struct sockaddr_un address;
    socklen_t size;
    struct occ_server *s = new_server(&address, &size);
    struct occ_user user = {.queue = {.fd = epoll_create1(EPOLL_CLOEXEC)}};
    struct occ_event_source source = {handle, NULL};
    int ends[2];
    s->histories_options.collector.round_ns = 250000;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(occ_event_watch(user.queue.fd, ends[0], &source), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    occ_connections_serve(s, &user);
    int64_t wait_ns = occ_share_wait_ns(&user.queue.share, occ_monotonic_ns());
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)close(user.queue.fd);
    free_server(s);
    return wait_ns;
}

/* A user is not charged for the time in which the loop waits for a processor. */
static void a_turn_that_waits_costs_its_user_nothing(void **state)
{
    (void)state;
    assert_int_equal(wait_after(sleep_long), 0);
}

static void a_turn_that_works_costs_its_user(void **state)
{
    (void)state;
    assert_in_range(wait_after(work_long), SECOND, 60 * SECOND);
}

/* The loop sleeps until the first waiting user may have a turn; other users do not wait. */
static void the_loop_wakes_for_the_first_who_waits(void **state)
{
    (void)state;
    struct sockaddr_un address;
    socklen_t size;
    static const int64_t waits_ns[][4] = {/* waits of three users, and the least wait */
                                          {0, 0, 0, 0},
                                          {5 * SECOND, 0, 0, 5 * SECOND},
                                          {0, 5 * SECOND, 0, 5 * SECOND},
                                          {0, 5 * SECOND, 2 * SECOND, 2 * SECOND},
                                          {2 * SECOND, 0, 5 * SECOND, 2 * SECOND}};
    const int64_t now_ns = 1000 * SECOND;
    for (size_t i = 0; i < sizeof waits_ns / sizeof *waits_ns; i++) {
        struct occ_server *s = new_server(&address, &size);
        struct occ_user users[3] = {0};
        s->http_queue.fd = -1;
        for (int u = 0; u < 3; u++) {
            users[u].next = u < 2 ? &users[u + 1] : NULL;
            users[u].queue.fd = -1;
            users[u].queue.is_waiting = true;
            occ_share_charge(&users[u].queue.share, now_ns, waits_ns[i][u] + OCC_SHARE_BURST_NS);
            assert_int_equal(occ_share_wait_ns(&users[u].queue.share, now_ns), waits_ns[i][u]);
        }
        s->clients.users = users;
        assert_int_equal(occ_connections_resume(s, now_ns), waits_ns[i][3]);
        s->clients.users = NULL;
        free_server(s);
    }
}

/* ---- refusals ---- */

static void refusals_of_an_owner_are_its_own(void **state)
{
    (void)state;
    static struct occ_refusals r;
    char owner[16];
    assert_null(occ_refusals_by(&r, "u0"));
    for (int i = 0; i < 3; i++)
        occ_refusals_count(&r, "u1000", OCC_REFUSED_ENDED);
    occ_refusals_count(&r, "container-1", OCC_REFUSED_INVALID);
    assert_null(occ_refusals_by(&r, "u0"));
    assert_int_equal(occ_refusals_by(&r, "u1000")[OCC_REFUSED_ENDED], 3);
    assert_int_equal(occ_refusals_by(&r, "u1000")[OCC_REFUSED_INVALID], 0);
    assert_int_equal(occ_refusals_by(&r, "container-1")[OCC_REFUSED_INVALID], 1);
    for (int uid = 2000; uid < 2000 + 2 * OCC_REFUSALS_OWNERS; uid++) { /* more than the table's places */
        (void)snprintf(owner, sizeof owner, "u%d", uid);
        occ_refusals_count(&r, owner, OCC_REFUSED_FULL);
    }
    assert_int_equal(occ_refusals_by(&r, "u1000")[OCC_REFUSED_ENDED], 3);
    assert_int_equal(occ_refusals_by(&r, owner)[OCC_REFUSED_FULL], 1);
    assert_null(occ_refusals_by(&r, "u3000"));
    assert_int_equal(r.all[OCC_REFUSED_FULL], 2 * OCC_REFUSALS_OWNERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_of_the_first_minute_are_possible),
        cmocka_unit_test(descriptors_are_closed),
        cmocka_unit_test(descriptors_wait_for_a_thread),
        cmocka_unit_test(a_clock_that_is_set_costs_no_launch),
        cmocka_unit_test(suspended_time_and_adjusted_rates_are_no_step),
        cmocka_unit_test(launches_before_their_process_or_of_the_future_are_dropped),
        cmocka_unit_test(every_accepted_connection_counts),
        cmocka_unit_test(subordinate_uids_spend_their_users_allowance),
        cmocka_unit_test(a_container_spends_its_own_allowance),
        cmocka_unit_test(a_container_holds_places_of_its_own),
        cmocka_unit_test(the_last_connections_are_not_idle),
        cmocka_unit_test(the_loop_wakes_for_the_first_who_waits),
        cmocka_unit_test(a_turn_that_waits_costs_its_user_nothing),
        cmocka_unit_test(a_turn_that_works_costs_its_user),
        cmocka_unit_test(refusals_of_an_owner_are_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
