/*
 * Root's daemon with a hostile user beside an honest one. Whatever the attacker offers, floods or breaks,
 * each launch of the victim reaches the victim's history once, and nothing of the attack stays in the daemon.
 * The tests assert states, and their waits end with a condition. `long [NAME]` prints, for one attacker of
 * each kind at full rate, the victim's losses at 100 000 launches a second, the times of pings, and their p99
 * relative to a daemon without an attacker. Only root can start programs of two users.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/un.h>

#include "cases.h"
#include "daemon/serve/listen.h"
#include "daemon_users.h"

#define ACCEPTS_AT_ONCE         64 /* per turn */
#define TURN_PRICE              16 /* a request is charged this multiple of its time */
#define CONTROL_CONNECTIONS_MAX 64 /* connections of one user besides the user's programs */

static uint64_t *counter; /* number of the attacker's rounds; shared by all processes of a test */
static uint64_t *lost;    /* number of the victim's lost launches; shared like the counter */

/* ---- attacks ---- */

/* Returns the next number of a small generator: its high bits, since the low ones are not random. */
static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1;
    return (uint32_t)(*state >> 33);
}

static off_t blocks_of(const struct occ_ring_producer *ring)
{
    struct stat status;
    check(fstat(ring->fd, &status) == 0);
    return status.st_blocks;
}

#define SPARSE_RINGS     16
#define SPARSE_LOG_BYTES (16u * MEGABYTE)

/* Makes a ring with a log of long records of an unknown type, with only their headers written, and the
 * records of one launch at the end. */
static void fill_sparse(struct occ_ring_producer *ring)
{
    check(occ_ring_create(ring, 256, SPARSE_LOG_BYTES) == 0);
    for (uint64_t at = 0; at + OCC_RECORD_MAX_BYTES < SPARSE_LOG_BYTES; at += OCC_RECORD_MAX_BYTES) {
        struct occ_log_record head = {.type = 777, .bytes = OCC_RECORD_MAX_BYTES};
        memcpy(ring->log + at, &head, sizeof head);
        ring->log_head += OCC_RECORD_MAX_BYTES;
    }
    check(log_process(ring, 0, "", 0) && log_device(ring, 0) && log_kernel(ring, 0, "_Z4axpyPf") &&
          log_config(ring, 0));
    struct occ_ring_launch launch = launch_now(0);
    check(occ_ring_push(ring, &launch));
}

/* Offers sparse rings: reading a hole of a memfd would allocate its page, charged to the daemon. */
static void offer_sparse_rings(const struct place *p, int uid)
{
    struct occ_ring_producer rings[SPARSE_RINGS];
    off_t blocks[SPARSE_RINGS];
    be_user(uid);
    for (int i = 0; i < SPARSE_RINGS; i++) {
        fill_sparse(&rings[i]);
        blocks[i] = blocks_of(&rings[i]);
        (void)offer(p, &rings[i]);
    }
    begin();
    for (int i = 0; i < SPARSE_RINGS; i++) {
        await_committed(&rings[i]); /* the daemon has read the log before the launch */
        check(blocks_of(&rings[i]) == blocks[i]);
    }
    wait_for_end(p);
}

#define NAMES      100
#define NAME_RINGS 6

static struct occ_ring_producer name_rings[NAME_RINGS]; /* shared with the victim, who checks them */

/* Makes a ring with kernel names of maximum length, all different. */
static void fill_names(struct occ_ring_producer *ring, uint64_t which)
{
    char name[OCC_KERNEL_NAME_MAX_BYTES];
    check(occ_ring_create(ring, 256, 8u * MEGABYTE) == 0 && log_process(ring, 0, "", 0) &&
          log_device(ring, 0));
    memset(name, 'k', sizeof name);
    name[sizeof name - 1] = '\0';
    for (uint32_t i = 0; i < NAMES; i++) {
        char number[48];
        (void)snprintf(number, sizeof number, "%llu_%u_", (unsigned long long)which, i);
        memcpy(name, number, strlen(number));
        check(log_kernel(ring, i, name));
    }
    check(log_config(ring, 0));
    struct occ_ring_launch launch = launch_now(0);
    check(occ_ring_push(ring, &launch));
}

static void offer_names(const struct place *p, int uid)
{
    be_user(uid);
    for (int i = 0; i < NAME_RINGS; i++)
        (void)offer(p, &name_rings[i]);
    begin();
    wait_for_end(p);
}

/* Pushes launches, and checks that the daemon commits them before it has read all of the names. */
static void launch_before_the_names_are_read(const struct place *p, int uid)
{
    struct occ_ring_producer ring;
    int unread = 0;
    be_user(uid);
    make_ring(&ring, 0);
    for (uint64_t i = 0; i < 10; i++) {
        struct occ_ring_launch launch = launch_now(i);
        check(occ_ring_push(&ring, &launch));
    }
    (void)offer(p, &ring);
    begin();
    await_committed(&ring);
    for (int i = 0; i < NAME_RINGS; i++)
        unread += atomic_load(&name_rings[i].header->tail) == 0;
    check(unread > 0);
}

/* Pushes launches with times in the future, in the past and at random. */
static void launch_at_any_time(const struct place *p, int uid)
{
    struct occ_ring_producer ring;
    uint64_t random = 1;
    bool begun = false;
    be_user(uid);
    make_ring(&ring, 0);
    (void)offer(p, &ring);
    while (goes_on(p)) {
        struct occ_ring_launch launch = sample_launch(ring.head);
        launch.start_ns = ring.head % 2 ? OCC_RING_START_MAX_NS - ring.head
                                        : (uint64_t)next_random(&random) * 3600000000u + 1;
        if (!occ_ring_push(&ring, &launch)) {
            if (!begun)
                begin();
            begun = true;
            pause_ms(1);
        }
    }
}

/* Connects without occtrace's retries. Returns -1 on failure. */
static int connect_raw(const struct place *p, int flags)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", p->socket);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
    check(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static void flood(const struct place *p, int uid)
{
    be_user(uid);
    begin();
    while (goes_on(p))
        for (int i = 0; i < 256; i++)
            (void)close(connect_raw(p, 0));
}

static void connect_and_leave(const struct place *p, int uid)
{
    be_user(uid);
    begin();
    while (goes_on(p)) {
        int fd = -1;
        if (occ_control_connect(p->socket, &fd, NULL) == 0)
            (void)close(fd);
    }
}

static bool answers(int fd)
{
    char answer[64];
    return occ_control_request(fd, "ping", DEADLINE_MS, answer, sizeof answer, NULL) == 0;
}

/* Opens idle connections: the daemon keeps the user's share and refuses the others. */
static void connect_and_stay(const struct place *p, int uid)
{
    static int fds[1100];
    int alive = 0;
    be_user(uid);
    for (int i = 0; i < 1100; i++)
        (void)answers(fds[i] = connect_to(p));
    for (int i = 0; i < 1100; i++)
        alive += answers(fds[i]);
    check(alive > 0 && alive <= SHARE_PROGRAMS + CONTROL_CONNECTIONS_MAX);
    begin();
    wait_for_end(p);
}

static void offer_1100_rings(const struct place *p, int uid)
{
    int taken = 0;
    be_user(uid);
    for (int i = 0; i < 1100; i++) {
        struct occ_ring_producer ring;
        make_ring(&ring, 0);
        int fd = offer(p, &ring);
        if (answers(fd))
            taken++;
        else
            (void)close(fd);
        occ_ring_destroy(&ring);
    }
    check(taken == SHARE_PROGRAMS);
    begin();
    wait_for_end(p);
}

#define FLUSHERS 32

static void flush_without_end(const struct place *p, int uid)
{
    struct occ_ring_producer ring;
    int fds[FLUSHERS];
    char answer[OCC_CONTROL_BYTES];
    be_user(uid);
    make_ring(&ring, 0);
    (void)offer(p, &ring);
    for (int i = 0; i < FLUSHERS; i++)
        fds[i] = connect_to(p);
    begin();
    for (; *counter < 10 || goes_on(p); ++*counter) {
        struct occ_ring_launch launch = launch_now(ring.head);
        (void)occ_ring_push(&ring, &launch);
        for (int i = 0; i < FLUSHERS; i++)
            check(send(fds[i], "flush " SESSION, strlen("flush " SESSION), MSG_NOSIGNAL) > 0);
        for (int i = 0; i < FLUSHERS; i++)
            check(poll(&(struct pollfd){.fd = fds[i], .events = POLLIN}, 1, DEADLINE_MS) == 1 &&
                  recv(fds[i], answer, sizeof answer, 0) > 0);
    }
}

/* Sends hellos and requests, cut, extended and with changed bytes, with descriptors of many kinds. */
static void send_nonsense(const struct place *p, int uid)
{
    static const char *const texts[] = {"ping",        "status", ("flush " SESSION),          "sampler 99",
                                        "pause 1",     "resume", "flush ../../../etc/passwd", "quit",
                                        "pause-run 1", ""};
    struct occ_ring_producer ring;
    uint64_t random = 7;
    be_user(uid);
    make_ring(&ring, 1);
    const int kinds[] = {open("/dev/zero", O_RDWR | O_CLOEXEC),
                         open("/", O_RDONLY | O_CLOEXEC),
                         open("/proc/self/mem", O_RDWR | O_CLOEXEC),
                         open("/bin/sh", O_PATH | O_CLOEXEC),
                         memfd_create("unsealed", MFD_CLOEXEC),
                         p->leave[0],
                         ring.fd};
    const uint32_t n_kinds = sizeof kinds / sizeof *kinds, n_texts = sizeof texts / sizeof *texts;
    check(ftruncate(kinds[4], (off_t)1 << 40) == 0);
    for (int i = 0; i < 1500 || goes_on(p); i++) {
        uint8_t bytes[5000] = {0};
        struct occ_hello hello = {OCC_HELLO_MAGIC, OCC_RING_VERSION_MAJOR, 0, sizeof hello, {0}};
        int fds[8];
        uint32_t n_fds = next_random(&random) % 4 ? next_random(&random) % 2 : next_random(&random) % 9;
        size_t n = sizeof hello;
        if (next_random(&random) % 2)
            memcpy(bytes, &hello, n);
        else
            n = (size_t)snprintf((char *)bytes, sizeof bytes, "%s", texts[next_random(&random) % n_texts]);
        if (next_random(&random) % 3 == 0)
            n = next_random(&random) % sizeof bytes;
        if (next_random(&random) % 3 == 0)
            bytes[next_random(&random) % 40] = (uint8_t)next_random(&random);
        for (uint32_t k = 0; k < n_fds; k++)
            fds[k] = kinds[next_random(&random) % n_kinds];
        int fd = connect_to(p);
        send_packet(fd, bytes, n, fds, n_fds);
        (void)close(fd);
        if (i == 200)
            begin();
    }
}

/* Changes everything behind the header's geometry while the daemon reads the ring. */
static void change_bytes(const struct place *p, struct occ_ring_producer *ring)
{
    uint64_t random = (uint64_t)getpid();
    uint8_t *map = (uint8_t *)ring->header;
    while (goes_on(p)) {
        uint32_t at = next_random(&random) % 3;
        if (at == 0)
            map[0x80 + next_random(&random) % 0x280] = (uint8_t)next_random(&random);
        else if (at == 1)
            ring->log[next_random(&random) % 1024] = (uint8_t)next_random(&random);
        else
            ((uint8_t *)ring->slots)[next_random(&random) % 10240] = (uint8_t)next_random(&random);
    }
}

static void offer_rings_that_change(const struct place *p, int uid)
{
    struct occ_ring_producer ring;
    be_user(uid);
    begin();
    for (int i = 0; i < 150 || goes_on(p); i++) {
        make_ring(&ring, 200);
        pid_t changer = fork();
        check(changer >= 0);
        if (changer == 0) {
            change_bytes(p, &ring);
            _exit(0);
        }
        char answer[64];
        int fd = offer(p, &ring);
        pause_ms(i % 8);
        (void)occ_control_request(fd, "ping", DEADLINE_MS, answer, sizeof answer, NULL); /* may fail */
        (void)close(fd);
        check(kill(changer, SIGKILL) == 0 && waitpid(changer, NULL, 0) == changer);
        occ_ring_destroy(&ring);
    }
}

enum { STEPS = 10 };

/* Runs a program that kills itself at this step of its life. */
static void die_at(const struct place *p, int step)
{
    struct occ_ring_producer ring;
    be_user(ATTACKER);
    make_ring(&ring, 10);
    int fd = connect_to(p);
    if (step == 1)
        send_packet(fd, &ring, sizeof(struct occ_hello) / 2, &ring.fd, 1);
    if (step >= 2)
        send_hello(fd, &ring);
    if (step >= 3)
        meet(fd);
    if (step == 4)
        atomic_store(&ring.header->log_head, ring.log_head + 64);
    if (step == 5)
        atomic_store(&ring.header->head, ring.head + 1);
    if (step == 6)
        check(send(fd, "flush " SESSION, strlen("flush " SESSION), MSG_NOSIGNAL) > 0);
    if (step == 7)
        occ_ring_close(&ring);
    if (step == 8)
        (void)close(fd);
    if (step == 9)
        (void)offer(p, &ring);
    (void)raise(SIGKILL);
}

/* ---- tests ---- */

/* Checks that the attack harms neither a victim before it nor two beside it, and leaves nothing of the
 * attacker. */
static void assert_victim_is_unhurt(struct place *p, void (*attack)(const struct place *p, int variant))
{
    start_service(p);
    let_go(p, run(p, launch_in_portions, VICTIM));
    pid_t attacker = run(p, attack, ATTACKER);
    await_byte();
    run_beside(p, launch_in_portions, VICTIM);
    run_beside(p, launch_in_portions, VICTIM);
    let_go(p, attacker);
    await_status(p, "\nclients 1\nprograms 0\n");
    await_status(p, "\nstalled no\n");
    assert_int_equal(count_in(p, VICTIM, RAW_LAUNCHES), 3 * VICTIM_ROUNDS * ROUND_LAUNCHES);
}

static void sparse_rings_take_no_memory(void **state)
{
    struct place *p = *state;
    start_service(p);
    long before = anonymous_bytes(p);
    assert_stops(p);
    (void)close(p->control);
    assert_victim_is_unhurt(p, offer_sparse_rings);
    if (!SANITIZED)
        assert_true(anonymous_bytes(p) - before < 16L * MEGABYTE);
    assert_stops(p);
}

static void long_names_do_not_stop_the_loop(void **state)
{
    SKIP_IF_SANITIZED();
    struct place *p = *state;
    start_service(p);
    for (int i = 0; i < NAME_RINGS; i++)
        fill_names(&name_rings[i], (uint64_t)i);
    suspend(p); /* all rings are offered before the loop continues */
    pid_t attacker = run(p, offer_names, ATTACKER);
    int leave[2];
    memcpy(leave, p->leave, sizeof leave);
    await_byte();
    pid_t victim = run(p, launch_before_the_names_are_read, VICTIM);
    await_byte();
    assert_int_equal(kill(p->daemon, SIGCONT), 0);
    let_go(p, victim);
    for (int i = 0; i < NAME_RINGS; i++) {
        await_committed(&name_rings[i]);
        occ_ring_destroy(&name_rings[i]);
    }
    memcpy(p->leave, leave, sizeof leave);
    let_go(p, attacker);
    assert_int_equal(count_in(p, ATTACKER, "SELECT count(*) FROM stored_kernel"), NAMES * NAME_RINGS);
    assert_stops(p);
}

#define QUOTA (16 * MEGABYTE)

/* Waits until a history has at most `max` kernels. */
static void await_kernels(const struct place *p, int uid, int64_t max)
{
    for (int ms = 0; count_in(p, uid, "SELECT count(*) FROM stored_kernel") > max; ms += 50) {
        assert_true(ms < DEADLINE_MS);
        pause_ms(50);
    }
}

static void offer_many_names(const struct place *p, int uid)
{
    be_user(uid);
    (void)offer(p, &name_rings[0]);
    begin();
    wait_for_end(p);
}

/* A program names kernels without end: launches of others and of the user's other programs are all kept, and
 * the names are dropped after the program's end. */
static void names_have_a_share_of_the_quota(void **state)
{
    struct place *p = *state;
    int leave[2];
    p->max_bytes = QUOTA;
    start_service(p);
    fill_names(&name_rings[0], 0);
    pid_t attacker = run(p, offer_many_names, ATTACKER);
    memcpy(leave, p->leave, sizeof leave);
    await_byte();
    await_committed(&name_rings[0]);
    assert_in_range(count_in(p, ATTACKER, "SELECT count(*) FROM stored_kernel"), 2, NAMES - 1);
    assert_int_equal(count_in(p, ATTACKER, "SELECT launches FROM stored_loss WHERE cause = 'log_full'"), 1);
    let_go(p, run(p, launch_in_portions, VICTIM));
    let_go(p, run(p, launch_in_portions, ATTACKER));
    memcpy(p->leave, leave, sizeof leave);
    let_go(p, attacker);
    await_kernels(p, ATTACKER, 2);
    assert_stops(p);
    assert_int_equal(count_in(p, VICTIM, RAW_LAUNCHES), VICTIM_ROUNDS * ROUND_LAUNCHES);
    assert_int_equal(count_in(p, ATTACKER, RAW_LAUNCHES), VICTIM_ROUNDS * ROUND_LAUNCHES);
    assert_in_range(
        count_in(p, ATTACKER, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"), 1,
        QUOTA);
    occ_ring_destroy(&name_rings[0]);
}

static void impossible_times_make_no_rows(void **state)
{
    struct place *p = *state;
    assert_victim_is_unhurt(p, launch_at_any_time);
    assert_stops(p);
    assert_int_equal(count_in(p, ATTACKER, RAW_LAUNCHES), 0);
    assert_int_equal(
        count_in(p, ATTACKER, "SELECT (SELECT count(*) FROM stored_minute) + count(*) FROM stored_hour"), 0);
    assert_true(count_in(p, ATTACKER, "SELECT launches FROM stored_loss WHERE cause = 'bad_times'") >= 256);
}

static void fill_the_backlog(const struct place *p, int uid)
{
    int fd, n = 0;
    be_user(uid);
    while ((fd = connect_raw(p, SOCK_NONBLOCK)) >= 0)
        n++;
    check(n >= OCC_LISTEN_BACKLOG);
    begin();
    wait_for_end(p);
}

/* Waits until the user's last request is paid: the user rests for a multiple of the request's time. */
static void await_rest(const struct place *p)
{
    char answer[OCC_CONTROL_BYTES];
    int64_t begin_ns = occ_monotonic_ns();
    assert_true(ask(p, "ping", answer));
    pause_ms(200 + 2 * TURN_PRICE * (long)((occ_monotonic_ns() - begin_ns) / 1000000));
}

/* A request that meets a full backlog is answered after one turn of accepting. */
static void requests_do_not_wait_for_all_connections(void **state)
{
    struct place *p = *state;
    char answer[OCC_CONTROL_BYTES];
    start_service(p);
    await_rest(p);
    suspend(p);
    pid_t attacker = run(p, fill_the_backlog, ATTACKER);
    await_byte();
    assert_int_equal(send(p->control, "status", 6, MSG_NOSIGNAL), 6);
    assert_int_equal(kill(p->daemon, SIGCONT), 0);
    assert_int_equal(poll(&(struct pollfd){.fd = p->control, .events = POLLIN}, 1, DEADLINE_MS), 1);
    ssize_t n = recv(p->control, answer, sizeof answer - 1, 0);
    assert_true(n > 0);
    answer[n] = '\0';
    const char *clients = strstr(answer, "\nclients ");
    assert_non_null(clients);
    assert_in_range(strtoull(clients + strlen("\nclients "), NULL, 10), 1, 1 + ACCEPTS_AT_ONCE);
    let_go(p, attacker);
    assert_stops(p);
}

static void connections_without_end_harm_nobody(void **state)
{
    struct place *p = *state;
    assert_victim_is_unhurt(p, connect_and_leave);
    assert_stops(p);
}

#define NEWCOMERS 64

/* Sends each request on a new connection, with a single try. */
static void ask_as_newcomer(const struct place *p, int uid)
{
    if (uid != 0)
        be_user(uid);
    for (int i = 0; i < NEWCOMERS; i++) {
        int fd = -1;
        check(occ_control_connect(p->socket, &fd, NULL) == 0);
        check(answers(fd));
        (void)close(fd);
    }
}

static void offer_as_newcomer(const struct place *p, int uid)
{
    be_user(uid);
    for (int i = 0; i < NEWCOMERS; i++) {
        struct occ_ring_producer ring;
        int fd = -1;
        make_ring(&ring, 0);
        struct occ_ring_launch launch = launch_now(0);
        check(occ_ring_push(&ring, &launch));
        check(occ_control_connect(p->socket, &fd, NULL) == 0);
        send_hello(fd, &ring);
        await_committed(&ring);
        atomic_store(&ring.header->closed, 1);
        (void)close(fd);
        occ_ring_close(&ring);
    }
}

/* All connections of the newcomers begin during the flood. */
static void a_flood_keeps_no_newcomer_out(void **state)
{
    struct place *p = *state;
    int leave[2];
    pid_t attackers[3];
    start_service(p);
    for (int i = 0; i < 3; i++) {
        attackers[i] = run(p, flood, ATTACKER);
        await_byte();
        if (i < 2)
            (void)close(p->leave[0]);
        memcpy(leave, p->leave, sizeof leave);
    }
    let_go(p, run(p, ask_as_newcomer, 0));
    let_go(p, run(p, ask_as_newcomer, VICTIM));
    let_go(p, run(p, offer_as_newcomer, VICTIM));
    for (int i = 0; i < 3; i++)
        assert_true(kill(attackers[i], SIGKILL) == 0 && waitpid(attackers[i], NULL, 0) == attackers[i]);
    (void)close(leave[0]);
    (void)close(leave[1]);
    assert_stops(p);
    assert_int_equal(count_in(p, VICTIM, RAW_LAUNCHES), NEWCOMERS);
}

static void idle_connections_harm_nobody(void **state)
{
    struct place *p = *state;
    assert_victim_is_unhurt(p, connect_and_stay);
    assert_stops(p);
}

static void more_rings_than_a_share_harm_nobody(void **state)
{
    SKIP_IF_SANITIZED();
    struct place *p = *state;
    assert_victim_is_unhurt(p, offer_1100_rings);
    assert_stops(p);
}

/* Flushes that wait at the same time share a commit. */
static void flushes_without_end_make_few_commits(void **state)
{
    struct place *p = *state;
    char answer[OCC_CONTROL_BYTES];
    *counter = 0;
    assert_victim_is_unhurt(p, flush_without_end);
    assert_true(ask(p, "status", answer));
    const char *commits = strstr(answer, "\ncommits ");
    assert_non_null(commits);
    uint64_t made = strtoull(commits + strlen("\ncommits "), NULL, 10);
    if (made > 4 * *counter + 64)
        fail_msg("%llu commits for %llu rounds of %d flushes", (unsigned long long)made,
                 (unsigned long long)*counter, FLUSHERS);
    assert_stops(p);
}

static void nonsense_leaves_nothing(void **state)
{
    struct place *p = *state;
    assert_victim_is_unhurt(p, send_nonsense);
    size_t descriptors = count_descriptors(p);
    run_beside(p, send_nonsense, ATTACKER);
    await_byte();
    await_status(p, "\nclients 1\nprograms 0\n");
    await_descriptors(p, descriptors);
    assert_stops(p);
}

static void rings_that_change_break_alone(void **state)
{
    struct place *p = *state;
    assert_victim_is_unhurt(p, offer_rings_that_change);
    assert_stops(p);
}

static void a_program_may_die_at_any_step(void **state)
{
    struct place *p = *state;
    start_service(p);
    let_go(p, run(p, launch_in_portions, VICTIM));
    run_beside(p, launch_in_portions, ATTACKER); /* creates the attacker's history */
    await_status(p, "\nclients 1\nprograms 0\n");
    size_t descriptors = count_descriptors(p);
    for (int step = 0; step < STEPS; step++) {
        int status = 0;
        pid_t program = run(p, die_at, step);
        assert_int_equal(waitpid(program, &status, 0), program);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        let_go(p, run(p, launch_in_portions, VICTIM));
        await_status(p, "\nclients 1\nprograms 0\n");
        await_descriptors(p, descriptors);
    }
    assert_stops(p);
    assert_int_equal(count_in(p, VICTIM, RAW_LAUNCHES), (STEPS + 1) * VICTIM_ROUNDS * ROUND_LAUNCHES);
}

/* ---- long: the victim beside each attacker at full rate ---- */

#define RATE_SECONDS  5
#define RATE_LAUNCHES (RATE_SECONDS * 100000)
#define RATE_PINGS    100000

/* Schedules a process before all ordinary ones: the test measures the daemon's work, not the scheduler's
 * turns. */
static void run_first(pid_t pid)
{
    (void)sched_setscheduler(pid, SCHED_RR | SCHED_RESET_ON_FORK, &(struct sched_param){1});
}

/* Pushes 100 launches per millisecond, whatever the daemon does. */
static void launch_at_rate(const struct place *p, int uid)
{
    static const char text[] = "session\0" SESSION;
    struct occ_ring_producer ring;
    run_first(0);
    be_user(uid);
    check(occ_ring_create(&ring, OCC_RING_DEFAULT_SLOTS, 64u << 10) == 0 &&
          log_process(&ring, 1, text, sizeof text) && log_device(&ring, 0) &&
          log_kernel(&ring, 0, "_Z4axpyPf") && log_config(&ring, 0));
    (void)offer(p, &ring);
    int64_t start_ns = occ_monotonic_ns();
    for (uint64_t n = 0; n < RATE_LAUNCHES;) {
        uint64_t due = (uint64_t)(occ_monotonic_ns() - start_ns) / 10000;
        for (; n < due && n < RATE_LAUNCHES; n++) {
            struct occ_ring_launch launch = launch_now(n);
            (void)occ_ring_push(&ring, &launch);
        }
        pause_ms(1);
    }
    await_committed(&ring);
    *lost = atomic_load(&ring.header->lost[OCC_LOSS_RING_FULL]);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Pings until the victim has ended, and prints the row. */
static void measure(struct place *p, const char *name, pid_t victim)
{
    static int64_t pings[RATE_PINGS];
    char answer[OCC_CONTROL_BYTES];
    size_t n = 0;
    int status = -1;
    while (waitpid(victim, &status, WNOHANG) == 0) {
        int64_t from_ns = occ_monotonic_ns();
        assert_true(ask(p, "ping", answer));
        if (n < RATE_PINGS)
            pings[n++] = occ_monotonic_ns() - from_ns;
        pause_ms(2);
    }
    assert_int_equal(status, 0);
    qsort(pings, n, sizeof *pings, compare);
    static int64_t quiet_ns; /* p99 of the first row */
    int64_t p99_ns = pings[n * 99 / 100];
    quiet_ns = quiet_ns ? quiet_ns : p99_ns;
    print_message("| %-22s | %8d | %6llu | %8.2f | %8.2f | %8.2f | %5.1f | %5ld |\n", name, RATE_LAUNCHES,
                  (unsigned long long)*lost, (double)pings[n / 2] / 1e6, (double)p99_ns / 1e6,
                  (double)pings[n - 1] / 1e6, (double)p99_ns / (double)quiet_ns,
                  anonymous_bytes(p) / MEGABYTE);
}

static const char *only; /* a part of an attacker's name; NULL: all */

static void a_victim_at_full_rate_loses_nothing(void **state)
{
    static const struct {
        const char *name;
        void (*attack)(const struct place *p, int variant);
    } rows[] = {
        {"none", NULL},
        {"sparse rings", offer_sparse_rings},
        {"long kernel names", offer_names},
        {"impossible times", launch_at_any_time},
        {"connects and leaves", connect_and_leave},
        {"1100 idle connections", connect_and_stay},
        {"1100 rings", offer_1100_rings},
        {"32 flushers", flush_without_end},
        {"nonsense packets", send_nonsense},
        {"rings that change", offer_rings_that_change},
    };
    print_message(
        "| attacker               | launches |   lost | p50 (ms) | p99 (ms) | max (ms) | times |   MiB |\n"
        "|---|---|---|---|---|---|---|---|\n");
    (void)teardown(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int leave[2] = {-1, -1};
        pid_t attacker = 0;
        if (only && rows[i].attack && !strstr(rows[i].name, only))
            continue;
        assert_int_equal(setup(state), 0);
        struct place *p = *state;
        p->commit_interval_ns = SECOND_NS;
        start_service(p);
        run_first(p->daemon);
        run_first(0);
        for (uint64_t k = 0; rows[i].attack == offer_names && k < NAME_RINGS; k++)
            fill_names(&name_rings[k], k);
        if (rows[i].attack) {
            attacker = run(p, rows[i].attack, ATTACKER);
            memcpy(leave, p->leave, sizeof leave);
            await_byte();
        }
        measure(p, rows[i].name, run(p, launch_at_rate, VICTIM));
        assert_int_equal(*lost, 0);
        for (size_t k = 0; k < 2; k++)
            (void)close(p->leave[k]);
        memcpy(p->leave, leave, sizeof leave);
        if (attacker)
            let_go(p, attacker);
        assert_stops(p);
        assert_int_equal(count_in(p, VICTIM, RAW_LAUNCHES), RATE_LAUNCHES);
        (void)teardown(state);
    }
    *state = NULL;
    assert_int_equal(setup(state), 0);
}

static int open_shared(void **state)
{
    (void)state;
    counter = mmap(NULL, 2 * sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    lost = counter + 1;
    return counter == MAP_FAILED ? -1 : open_in_place(state);
}

static int close_shared(void **state)
{
    (void)state;
    (void)close(in_place[0]);
    (void)close(in_place[1]);
    return munmap(counter, 2 * sizeof *counter);
}

int main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(sparse_rings_take_no_memory),
        T(long_names_do_not_stop_the_loop),
        T(names_have_a_share_of_the_quota),
        T(impossible_times_make_no_rows),
        T(requests_do_not_wait_for_all_connections),
        T(connections_without_end_harm_nobody),
        T(a_flood_keeps_no_newcomer_out),
        T(idle_connections_harm_nobody),
        T(more_rings_than_a_share_harm_nobody),
        T(flushes_without_end_make_few_commits),
        T(nonsense_leaves_nothing),
        T(rings_that_change_break_alone),
        T(a_program_may_die_at_any_step),
    };
    const struct CMUnitTest long_tests[] = {T(a_victim_at_full_rate_loses_nothing)};
#undef T
    bool is_long = argc > 1 && strcmp(argv[1], "long") == 0;
    only = argc > 2 ? argv[2] : NULL;
    if (!is_long)
        choose_cases(argc, argv);
    return is_long
               ? cmocka_run_group_tests_name("daemon hostile, long", long_tests, open_shared, close_shared)
               : cmocka_run_group_tests_name("daemon hostile", tests, open_shared, close_shared);
}
