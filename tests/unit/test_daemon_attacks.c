/*
 * Attacks on root's daemon without a flood (test_daemon_hostile.c has the floods): descriptors that block on
 * close, identities of ended processes, connections under many uids. After each attack the daemon serves a
 * victim at once, and the victim's launches are in the victim's history. Only root can start programs of
 * several users.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/un.h>

#include "daemon_users.h"

static int *held; /* number of answered connections; shared by all processes of a test */

/* ---- descriptors that block on close ---- */

/* Returns a TCP connection to a peer that reads nothing: the last close waits for SO_LINGER's time. */
static int make_lingering(void)
{
    const struct linger linger = {.l_onoff = 1, .l_linger = 3600};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    static char bytes[65536];
    int listening = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    check(bind(listening, (const struct sockaddr *)&address, size) == 0 && listen(listening, 1) == 0 &&
          getsockname(listening, (struct sockaddr *)&address, &size) == 0 &&
          connect(fd, (const struct sockaddr *)&address, size) == 0 && accept(listening, NULL, NULL) >= 0);
    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
    check(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
    return fd;
}

enum { WITH_HELLO, WITH_REQUEST, WITH_NOTHING, N_PACKETS };

/* Passes such descriptors with a hello, with a request and with an empty packet; the daemon has the last
 * copy. */
static void pass_lingering(const struct place *p, int uid)
{
    struct occ_ring_producer ring;
    be_user(uid);
    make_ring(&ring, 0);
    const struct occ_hello hello = occ_hello_of(&ring);
    const struct {
        const void *bytes;
        size_t n;
    } packets[N_PACKETS] = {[WITH_HELLO] = {&hello, sizeof hello}, [WITH_REQUEST] = {"ping", 4}};
    for (int i = 0; i < N_PACKETS; i++) {
        int fd = make_lingering();
        send_packet(connect_to(p), packets[i].bytes, packets[i].n, &fd, 1);
        (void)close(fd);
    }
    begin();
    wait_for_end(p);
}

static void a_descriptor_that_does_not_close_keeps_its_sender_alone(void **state)
{
    struct place *p = *state;
    start_service(p);
    size_t descriptors = count_descriptors(p);
    assert_int_equal(kill(p->daemon, SIGSTOP), 0); /* the daemon gets the last copies */
    pid_t attacker = run(p, pass_lingering, ATTACKER);
    await_byte();
    assert_int_equal(kill(p->daemon, SIGCONT), 0);
    run_beside(p, launch_in_portions, VICTIM);
    run_beside(p, launch_in_portions, VICTIM);
    assert_true(count_descriptors(p) < descriptors + 32);
    let_go(p, attacker); /* closes the connections' other ends, too */
    await_status(p, "\nclients 1\nprograms 0\n");
    assert_int_equal(count_in(p, VICTIM, RAW_LAUNCHES), 2 * VICTIM_ROUNDS * ROUND_LAUNCHES);
    assert_stops(p);
}

/* ---- identities ---- */

#define CONTAINER "3f1c0e9a8b7d6c5f4e3d2c1b0a99887766554433221100ffeeddccbbaa998877"

static void put_file(const struct place *p, const char *path, const char *text)
{
    char command[512];
    (void)snprintf(command, sizeof command, "mkdir -p $(dirname %s/%s) && printf '%s\n' > %s/%s", p->root,
                   path, text, p->root, path);
    check(system(command) == 0);
}

/* Makes the daemon see this process in these control groups. */
static void be_below(const struct place *p, const char *cgroups)
{
    char path[64];
    (void)snprintf(path, sizeof path, "proc/%d/cgroup", (int)getpid());
    put_file(p, path, cgroups);
}

static void be_in_container(const struct place *p, const char *id)
{
    char text[128];
    (void)snprintf(text, sizeof text, "0::/docker/%s", id);
    be_below(p, text);
}

static void start_with_root(struct place *p)
{
    (void)snprintf(p->root, sizeof p->root, "%s/root", p->directory);
    start_service(p);
}

static void leave_a_ring(const struct place *p, int uid)
{
    struct occ_ring_producer ring;
    be_user(uid);
    make_ring(&ring, 10);
    (void)offer(p, &ring);
}

static bool is_told(const struct place *p, const char *request, const char *what)
{
    char answer[OCC_CONTROL_BYTES];
    int fd = connect_to(p);
    bool told = occ_control_request(fd, request, DEADLINE_MS, answer, sizeof answer, NULL) == 0 &&
                strstr(answer, what) != NULL;
    (void)close(fd);
    return told;
}

static void hear_of_one(const struct place *p, int uid)
{
    char own[32];
    be_user(uid);
    (void)snprintf(own, sizeof own, "owner u%d\nrefused_ended 1\n", uid);
    check(is_told(p, "status", "\nrefused_ended 1\n"));
    check(is_told(p, "refusals 0", own) && !is_told(p, "refusals 1", "owner"));
}

static void hear_of_none(const struct place *p, int uid)
{
    be_user(uid);
    check(is_told(p, "status", "\nrefused 1\n") && !is_told(p, "status", "refused_"));
    check(!is_told(p, "refusals 0", "owner"));
}

/* An ended process is refused: its pid may soon belong to a process of another user. */
static void a_process_that_has_ended_is_nobody(void **state)
{
    struct place *p = *state;
    char path[160];
    start_service(p);
    assert_int_equal(kill(p->daemon, SIGSTOP), 0);
    let_go(p, run(p, leave_a_ring, ATTACKER));
    assert_int_equal(kill(p->daemon, SIGCONT), 0);
    await_status(p, "\nrefused 1\nrefused_ended 1\n");
    let_go(p, run(p, hear_of_one, ATTACKER));
    let_go(p, run(p, hear_of_none, VICTIM));
    (void)snprintf(path, sizeof path, "owner u%d\nrefused_ended 1\n", ATTACKER);
    assert_true(is_told(p, "refusals 0", path) && !is_told(p, "refusals 1", "owner")); /* asked by root */
    path_of(p, ATTACKER, path);
    assert_int_not_equal(access(path, F_OK), 0);
    let_go(p, run(p, launch_in_portions, VICTIM));
    assert_stops(p);
}

/* Sets the control groups and flags (4: PF_EXITING) that the daemon sees of this process. */
static void be_seen(const struct place *p, const char *cgroups, int flags)
{
    char path[64], text[64];
    (void)snprintf(path, sizeof path, "proc/%d/cgroup", (int)getpid());
    put_file(p, path, cgroups);
    (void)snprintf(path, sizeof path, "proc/%d/stat", (int)getpid());
    (void)snprintf(text, sizeof text, "%d (x) Z 1 1 1 0 -1 %d 0", (int)getpid(), flags);
    put_file(p, path, text);
}

static const struct seen {
    const char *cgroups;
    int flags;
    bool lives, is_taken;
} seen[] = {
    {"0::/docker/" CONTAINER, 4, false, true},
    {"0::/docker/" CONTAINER " (deleted)", 4, false, true},
    /* the kernel's view of a process of /docker/ID that ends */
    {"4:memory:/\\n0::/", 4, false, false},
    {"4:memory:/\\n0::/", 4, true, false}, /* the main thread has ended, another thread lives */
    {"4:memory:/docker/" CONTAINER "\\n0::/", 0, true, true},
};

static void offer_as_seen(const struct place *p, int i)
{
    struct occ_ring_producer ring;
    be_seen(p, seen[i].cgroups, seen[i].flags);
    make_ring(&ring, 0);
    for (uint64_t n = 0; n < 10; n++) {
        struct occ_ring_launch launch = launch_now(n);
        check(occ_ring_push(&ring, &launch));
    }
    (void)offer(p, &ring);
    begin();
    if (seen[i].lives)
        wait_for_end(p);
}

/* An ended process keeps its pid until its parent has waited for it. Its control groups of version 2 stay; in
 * hierarchies of version 1 the process moves to the root, outside of all containers. */
static void a_process_that_is_ending_is_known_by_lasting_control_groups(void **state)
{
    struct place *p = *state;
    char taken[32], refused[32];
    int n[2] = {0, 0};
    start_with_root(p);
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        siginfo_t ended;
        suspend(p);
        pid_t program = run(p, offer_as_seen, (int)i);
        await_byte();
        if (!seen[i].lives)
            assert_int_equal(waitid(P_PID, (id_t)program, &ended, WEXITED | WNOWAIT), 0);
        assert_int_equal(kill(p->daemon, SIGCONT), 0);
        n[seen[i].is_taken]++;
        (void)snprintf(taken, sizeof taken, "\nlaunches %d\n", 10 * n[true]);
        (void)snprintf(refused, sizeof refused, "\nrefused %d\n", n[false]);
        await_status(p, taken);
        await_status(p, refused);
        let_go(p, program);
    }
    await_status(p, "\nrefused_ended 2\n");
    await_status(p, "\nhistories 2\n"); /* root's history is empty */
    assert_stops(p);
}

/* Asks once the process with this pid began an hour after the connection, as far as the daemon sees. */
static void ask_as_another(const struct place *p, int unused)
{
    char path[64], text[160], answer[64];
    (void)unused;
    be_below(p, "0::/system.slice/sshd.service");
    int fd = connect_to(p);
    (void)snprintf(path, sizeof path, "proc/%d/stat", (int)getpid());
    (void)snprintf(text, sizeof text, "%d (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %lld 0", (int)getpid(),
                   (long long)((occ_boot_ns() / SECOND_NS + 3600) * sysconf(_SC_CLK_TCK)));
    put_file(p, path, text);
    check(occ_control_request(fd, "pause 1", DEADLINE_MS, answer, sizeof answer, NULL) != 0);
}

/* Kernels before 6.5 do not tell the daemon whether a pid is still the peer's. */
static void a_process_younger_than_its_connection_is_another(void **state)
{
    struct place *p = *state;
    start_with_root(p);
    let_go(p, run(p, ask_as_another, 0));
    await_status(p, "\nrefused_ended 1\n");
    assert_stops(p);
}

static void command_as_root(const struct place *p, int in_container)
{
    be_below(p, in_container ? "0::/docker/" CONTAINER : "0::/system.slice/sshd.service");
    for (int i = 0; i < 3; i++) {
        char request[16];
        (void)snprintf(request, sizeof request, "history %d", i);
        check(!in_container || !is_told(p, request, "owner u"));
    }
    check(is_told(p, "history 0", "owner u0") == !in_container);
    check(is_told(p, "pause 1", "1") == !in_container);
    check(is_told(p, "status", "\nlaunches "));
}

static void root_in_a_container_is_not_root(void **state)
{
    struct place *p = *state;
    start_with_root(p);
    let_go(p, run(p, launch_in_portions, VICTIM));
    let_go(p, run(p, command_as_root, true));
    let_go(p, run(p, command_as_root, false));
    assert_false(is_told(p, "pause 1", "1")); /* the daemon sees no control group of this process */
    assert_stops(p);
}

/* Reads /metrics from the Unix socket. */
static bool is_on_page(const struct place *p, const char *what)
{
    static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
    static char page[1 << 17];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t n = 0;
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", p->http);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    check(connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
          send(fd, request, sizeof request - 1, MSG_NOSIGNAL) == sizeof request - 1);
    for (ssize_t got; (got = recv(fd, page + n, sizeof page - 1 - n, 0)) > 0;)
        n += (size_t)got;
    page[n] = '\0';
    (void)close(fd);
    check(strstr(page, "\nocctrace_gpu_launches_total{"));
    return strstr(page, what) != NULL;
}

static const struct {
    const char *cgroups, *status; /* "": not readable */
} places_of_root[] = {
    {"0::/system.slice/prometheus.service", "Name:\\tx\\nNSpid:\\t7\\nNSpgid:\\t7\\n"},
    {"0::/docker/" CONTAINER, ""},
    {"0::/kubepods.slice/kubepods-pod0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0.slice/crio-" CONTAINER ".scope",
     ""},
    /* systemd-nspawn, LXC, podman --cgroups=disabled: no id of an engine, but a pid namespace */
    {"0::/machine.slice/machine-guest.scope", "Name:\\tx\\nNSpid:\\t7\\t1\\nNSpgid:\\t7\\t1\\n"},
};

static void read_names(const struct place *p, int i)
{
    char path[64];
    be_below(p, places_of_root[i].cgroups);
    (void)snprintf(path, sizeof path, "proc/%d/status", (int)getpid());
    if (places_of_root[i].status[0])
        put_file(p, path, places_of_root[i].status);
    check(is_told(p, "pause 1", "1") == (i == 0));
    check(is_on_page(p, "\nocctrace_run_info{") == (i == 0));
    check(is_on_page(p, "\nocctrace_job_launches_total{") == (i == 0));
}

/* uid 0 may open the socket, in a container too: a container that mounts its directory gets the page without
 * names. */
static void root_in_a_container_reads_no_names(void **state)
{
    struct place *p = *state;
    (void)snprintf(p->http, sizeof p->http, "%s/metrics/metrics.sock", p->directory);
    start_with_root(p);
    let_go(p, run(p, launch_in_portions, VICTIM));
    for (size_t i = 0; i < sizeof places_of_root / sizeof *places_of_root; i++)
        let_go(p, run(p, read_names, (int)i));
    assert_false(
        is_on_page(p, "\nocctrace_run_info{")); /* the daemon sees no control group of this process */
    assert_stops(p);
}

/* ---- pods ---- */

#define POD_UID "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f"

/* Creates the pod's log directory under kubelet's name. */
static void name_pod(const struct place *p, const char *name, int pod)
{
    char path[160];
    (void)snprintf(path, sizeof path, "var/log/pods/%s_" POD_UID "%d/app/0.log", name, pod);
    put_file(p, path, "");
}

/* Pushes ten launches and waits for their commit. */
static void launch_ten(const struct place *p)
{
    struct occ_ring_producer ring;
    int asking = connect_to(p);
    uint64_t before = flushed(asking);
    make_ring(&ring, 0);
    (void)offer(p, &ring);
    for (uint64_t i = 0; i < 10; i++) {
        struct occ_ring_launch launch = launch_now(i);
        check(occ_ring_push(&ring, &launch));
    }
    while (flushed(asking) != before + 10)
        pause_ms(1);
}

/* A program of the pod, which claims another namespace. */
static void launch_in_pod(const struct place *p, int pod)
{
    char text[256];
    (void)snprintf(text, sizeof text,
                   "0::/kubepods.slice/kubepods-pod" POD_UID "%d.slice/crio-" CONTAINER ".scope", pod);
    be_below(p, text);
    check(setenv("POD_NAMESPACE", "team-b", 1) == 0);
    launch_ten(p);
}

static int64_t count_of(const struct place *p, const char *owner, const char *sql)
{
    char path[192];
    (void)snprintf(path, sizeof path, "%s/%s/history.db", p->directory, owner);
    return count_in_file(path, sql);
}

static void read_as_user(const struct place *p, int uid)
{
    char path[192];
    be_user(uid);
    (void)snprintf(path, sizeof path, "%s/ns-team-a/history.db", p->directory);
    check(open(path, O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES);
}

static void pods_of_a_namespace_share_a_history(void **state)
{
    struct place *p = *state;
    static const char runs[] =
        "SELECT count(DISTINCT k8s_pod_uid) FROM stored_run WHERE k8s_namespace = 'team-a'";
    start_with_root(p);
    put_file(p, "etc/passwd", "root:x:0:0::/root:/bin/sh");
    name_pod(p, "team-a_trainer-0", 1);
    name_pod(p, "team-a_trainer-1", 2);
    name_pod(p, "team-b_trainer-0", 3);
    for (int pod = 1; pod <= 4; pod++)
        let_go(p, run(p, launch_in_pod, pod));
    assert_int_equal(count_of(p, "ns-team-a", RAW_LAUNCHES), 20);
    assert_int_equal(count_of(p, "ns-team-a", runs), 2);
    assert_int_equal(count_of(p, "ns-team-b", RAW_LAUNCHES), 10);
    assert_int_equal(count_of(p, "ns-team-a", "SELECT count(user) FROM stored_run"), 0);
    assert_int_equal(count_of(p, "pod-" POD_UID "4", RAW_LAUNCHES), 10);
    name_pod(p, "team-a_late-0", 4); /* a pod's later runs stay with its earlier ones */
    let_go(p, run(p, launch_in_pod, 4));
    assert_int_equal(count_of(p, "ns-team-a", RAW_LAUNCHES), 20);
    assert_int_equal(count_of(p, "pod-" POD_UID "4", RAW_LAUNCHES), 20);
    let_go(p, run(p, read_as_user, VICTIM));
    assert_stops(p);
}

#define CONNECTIONS 300

/* Opens `n` connections. Returns the number of answered ones. */
static int hold_connections(const struct place *p, int n)
{
    static int fds[CONNECTIONS];
    char answer[64];
    int alive = 0;
    for (int i = 0; i < n; i++)
        fds[i] = connect_to(p);
    for (int i = 0; i < n; i++)
        alive += occ_control_request(fds[i], "ping", DEADLINE_MS, answer, sizeof answer, NULL) == 0;
    return alive;
}

static void hold_as_root(const struct place *p, int in_container)
{
    if (in_container)
        be_in_container(p, CONTAINER);
    *held += hold_connections(p, CONNECTIONS / 2);
    begin();
    wait_for_end(p);
}

static void launch_in_container(const struct place *p, int unused)
{
    (void)unused;
    be_in_container(p, CONTAINER);
    launch_in_portions(p, 0);
}

/* Root inside and root outside a container have more connections together than one share. */
static void a_container_has_a_share_of_its_own(void **state)
{
    struct place *p = *state;
    int leave[2];
    start_with_root(p);
    *held = 0;
    pid_t inside = run(p, hold_as_root, true);
    memcpy(leave, p->leave, sizeof leave);
    await_byte();
    pid_t outside = run(p, hold_as_root, false);
    await_byte();
    assert_int_equal(*held, CONNECTIONS);
    let_go(p, outside);
    memcpy(p->leave, leave, sizeof leave);
    let_go(p, inside);
    let_go(p, run(p, launch_in_container, 0));
    assert_stops(p);
}

/* Root of a container connects and hangs up as fast as the daemon lets it, and keeps what it can. */
static void flood_in_container(const struct place *p, int unused)
{
    int fds[CONNECTIONS];
    bool has_begun = false;
    (void)unused;
    for (int i = 0; i < CONNECTIONS; i++)
        fds[i] = -1;
    be_in_container(p, CONTAINER);
    for (int i = 0; goes_on(p); i = (i + 1) % CONNECTIONS) {
        char byte;
        if (fds[i] >= 0 && recv(fds[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
            continue;
        if (fds[i] >= 0)
            (void)close(fds[i]);
        if (occ_control_connect(p->socket, &fds[i], NULL) != 0)
            fds[i] = -1;
        if (i == CONNECTIONS - 1 && !has_begun) {
            has_begun = true;
            begin();
        }
    }
}

static void launch_in_another_container(const struct place *p, int unused)
{
    (void)unused;
    be_in_container(p, "0f1c0e9a8b7d6c5f4e3d2c1b0a99887766554433221100ffeeddccbbaa998877");
    launch_in_portions(p, 0);
}

static void ask_as_root(const struct place *p, int unused)
{
    (void)unused;
    be_below(p, "0::/system.slice/kubelet.service");
    check(is_told(p, "status", "\nlaunches "));
}

/* Containers mostly run as root: the flood of one of them leaves places and allowance to the others and to
 * the machine's root. */
static void a_container_that_floods_keeps_itself_alone(void **state)
{
    struct place *p = *state;
    start_with_root(p);
    pid_t flooding = run(p, flood_in_container, 0);
    await_byte();
    run_beside(p, launch_in_another_container, 0);
    for (int i = 0; i < 5; i++)
        run_beside(p, ask_as_root, 0);
    run_beside(p, launch_in_portions, VICTIM);
    let_go(p, flooding);
    await_status(p, "\nclients 1\nprograms 0\n");
    assert_stops(p);
}

/* ---- names ---- */

#define NAMES "SELECT count(*) FROM stored_run WHERE user = 'victim'"

static const struct named {
    const char *cgroups, *owner;
    int uid;
    bool has_name;
} named[] = {
    {"0::/user.slice/user-61001.slice/session-1.scope", "u61001", 61001, true},
    /* a container of Slurm's task, without an engine */
    {"0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0", "u61001", 61001, true},
    {"0::/user.slice/user-61001.slice/user@61001.service/app.slice/libpod-" CONTAINER ".scope", "u61001",
     61001, true},
    /* the same user's container, under a subordinate uid */
    {"0::/user.slice/user-61001.slice/user@61001.service/app.slice/libpod-" CONTAINER ".scope", "u61001",
     100033, true},
    {"0::/system.slice/docker-" CONTAINER ".scope", "container-" CONTAINER, 61001, false},
    {"0::/kubepods.slice/kubepods-pod0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0.slice/crio-" CONTAINER ".scope",
     "pod-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", 61001, false},
};

static void launch_named(const struct place *p, int i)
{
    be_below(p, named[i].cgroups);
    be_user(named[i].uid);
    launch_ten(p);
}

/* Whoever starts a container chooses its uids. */
static void a_container_gets_no_name_of_the_host(void **state)
{
    struct place *p = *state;
    int64_t of_user = 0;
    start_with_root(p);
    put_file(p, "etc/passwd", "victim:x:61001:61001::/:/bin/sh");
    put_file(p, "etc/subuid", "61001:100000:65536");
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        let_go(p, run(p, launch_named, (int)i));
        of_user += named[i].has_name;
        assert_int_equal(count_of(p, named[i].owner, "SELECT count(uid) - count(*) FROM stored_run"), 0);
        assert_int_equal(count_of(p, named[i].owner, NAMES), named[i].has_name ? of_user : 0);
    }
    assert_stops(p);
}

static void hold_as_subordinate(const struct place *p, int uid)
{
    be_user(uid);
    (void)hold_connections(p, CONNECTIONS / 2);
    begin();
    wait_for_end(p);
}

/* A user can become any of 65536 subordinate uids in a namespace. */
static void subordinate_uids_share_what_their_user_has(void **state)
{
    struct place *p = *state;
    pid_t attackers[4];
    char answer[OCC_CONTROL_BYTES];
    uint64_t clients = 0;
    start_with_root(p);
    put_file(p, "etc/subuid", "61003:100000:65536");
    for (int i = 0; i < 4; i++) {
        attackers[i] = run(p, hold_as_subordinate, i == 0 ? ATTACKER : 100000 + i);
        await_byte();
        (void)close(p->leave[0]); /* the write end stays open, so the attacker waits */
    }
    assert_true(ask(p, "status", answer));
    char *text = occ_control_value(answer, "clients");
    assert_int_equal(occ_parse_u64(text, 0, UINT64_MAX, &clients, NULL), 0);
    assert_in_range(clients, 2, 1 + SHARE_PROGRAMS + 64);
    free(text);
    run_beside(p, launch_in_portions, VICTIM);
    for (int i = 0; i < 4; i++)
        assert_true(kill(attackers[i], SIGKILL) == 0 && waitpid(attackers[i], NULL, 0) == attackers[i]);
    await_status(p, "\nclients 1\nprograms 0\n");
    assert_stops(p);
}

/* ---- an owner's access to the own history ---- */

/* Waits until status reports this state of the user's history. */
static void await_state(const struct place *p, int uid, const char *state)
{
    char owner[32], line[32], answer[OCC_CONTROL_BYTES];
    (void)snprintf(owner, sizeof owner, "owner u%d\n", uid);
    (void)snprintf(line, sizeof line, "\nstate %s\n", state);
    for (int ms = 0; ms < DEADLINE_MS; ms += 5) {
        for (int i = 0; i < 3; i++) {
            char request[16];
            (void)snprintf(request, sizeof request, "history %d", i);
            if (ask(p, request, answer) && strstr(answer, owner) && strstr(answer, line))
                return;
        }
        pause_ms(5);
    }
    fail_msg("the history of uid %d is not %s", uid, state);
}

/* Locks a whole file of the history, with the owner's read access. */
static void lock_file(const struct place *p, const char *suffix)
{
    char path[192];
    path_of(p, ATTACKER, path);
    (void)strcat(path, suffix);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    check(fd >= 0 && fcntl(fd, F_SETLK, &(struct flock){.l_type = F_RDLCK}) == 0);
}

static void lock_history(const struct place *p, int is_index)
{
    be_user(ATTACKER);
    lock_file(p, is_index ? "-shm" : "");
    begin();
    wait_for_end(p);
}

#define WAITING 100

static void launch_and_wait(const struct place *p, int uid)
{
    struct occ_ring_producer ring;
    be_user(uid);
    make_ring(&ring, WAITING);
    (void)offer(p, &ring);
    await_committed(&ring);
}

static void a_lock_on_a_file_keeps_its_owner_alone(void **state)
{
    struct place *p = *state;
    int leave[2];
    start_for_all(p); /* no age limits, since these launches are old */
    let_go(p, run(p, launch_in_portions, ATTACKER));
    for (int is_index = 0; is_index < 2; is_index++) {
        int64_t before = count_in(p, ATTACKER, RAW_LAUNCHES);
        pid_t attacker = run(p, lock_history, is_index);
        memcpy(leave, p->leave, sizeof leave);
        await_byte();
        pid_t waiting = run(p, launch_and_wait, ATTACKER);
        if (is_index)
            await_state(p, ATTACKER, "locked");
        run_beside(p, launch_in_portions, VICTIM);
        memcpy(p->leave, leave, sizeof leave);
        assert_int_equal(write(p->leave[1], "x", 1), 1); /* the waiting program holds this end, too */
        let_go(p, attacker);
        await_state(p, ATTACKER, "ok");
        let_go(p, waiting);
        assert_int_equal(count_in(p, ATTACKER, RAW_LAUNCHES), before + WAITING);
    }
    assert_stops(p);
    assert_int_equal(count_in(p, VICTIM, RAW_LAUNCHES), 2 * VICTIM_ROUNDS * ROUND_LAUNCHES);
}

#define QUOTA     (16 * MEGABYTE)
#define LOG_BYTES (32 * MEGABYTE) /* log beyond the quota that a reader may cause */

/* Begins a transaction that reads the current content. */
static sqlite3 *begin_reading(const struct place *p)
{
    char path[160];
    sqlite3 *db = NULL;
    path_of(p, ATTACKER, path);
    check(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
          sqlite3_exec(db, "BEGIN; SELECT count(*) FROM stored_run", NULL, NULL, NULL) == SQLITE_OK);
    return db;
}

static void push_varied(struct occ_ring_producer *ring)
{
    struct occ_ring_launch launch = launch_now(ring->head);
    launch.duration_ns = (ring->head * UINT64_C(2654435761)) % 1000000; /* incompressible */
    (void)occ_ring_push(ring, &launch);
}

/* Pushes launches until some are dropped, since an open reader stops all commits; then closes the reader and
 * checks that all accepted launches are committed. */
static void launch_beside_a_reader(const struct place *p, int uid)
{
    static const char text[] = "session\0" SESSION;
    struct occ_ring_producer ring;
    be_user(uid);
    int asking = connect_to(p);
    check(occ_ring_create(&ring, 65536, 64u << 10) == 0 && log_process(&ring, 1, text, sizeof text) &&
          log_device(&ring, 0) && log_kernel(&ring, 0, "_Z4axpyPf") && log_config(&ring, 0));
    (void)offer(p, &ring);
    push_varied(&ring);
    await_committed(&ring);
    sqlite3 *db = begin_reading(p);
    while (atomic_load(&ring.header->lost[OCC_LOSS_RING_FULL]) == 0)
        if (ring.head - atomic_load(&ring.header->tail) <= ring.mask ||
            is_told(p, "history 0", "\nstate full\n"))
            push_varied(&ring);
        else
            pause_ms(1);
    begin();
    wait_for_end(p);
    check(sqlite3_close(db) == SQLITE_OK);
    await_committed(&ring);
    check(flushed(asking) == ring.head);
    occ_ring_close(&ring);
}

static void a_reader_that_stays_keeps_its_owner_alone(void **state)
{
    struct place *p = *state;
    char path[192];
    struct stat log;
    p->max_bytes = QUOTA;
    p->commit_interval_ns = 10000000;
    start_service(p);
    pid_t attacker = run(p, launch_beside_a_reader, ATTACKER);
    await_byte();
    await_state(p, ATTACKER, "full");
    run_beside(p, launch_in_portions, VICTIM);
    path_of(p, ATTACKER, path);
    assert_int_equal(stat(strcat(path, "-wal"), &log), 0);
    assert_in_range(log.st_size, LOG_BYTES, LOG_BYTES + QUOTA);
    let_go(p, attacker);
    await_state(p, ATTACKER, "ok");
    await_status(p, "\nclients 1\nprograms 0\n");
    assert_stops(p);
    assert_int_equal(count_in(p, VICTIM, RAW_LAUNCHES), VICTIM_ROUNDS * ROUND_LAUNCHES);
    assert_true(count_in(p, ATTACKER, "SELECT launches FROM stored_loss WHERE cause = 'ring_full'") > 0);
}

/* ---- obstacles in the daemon's directory ---- */

static void offer_and_be_refused(const struct place *p, int uid)
{
    struct occ_ring_producer ring;
    struct pollfd end = {.events = 0};
    be_user(uid);
    make_ring(&ring, 10);
    end.fd = offer(p, &ring);
    check(poll(&end, 1, DEADLINE_MS) == 1); /* the daemon has closed it */
}

/* Through the link the daemon would set access lists and write a history elsewhere. */
static void a_link_is_no_owners_directory(void **state)
{
    struct place *p = *state;
    char target[128], link[128];
    struct stat before, after;
    start_service(p);
    (void)snprintf(target, sizeof target, "%s/elsewhere", p->directory);
    (void)snprintf(link, sizeof link, "%s/u%d", p->directory, ATTACKER);
    assert_int_equal(mkdir(target, 0700), 0);
    assert_int_equal(symlink(target, link), 0);
    assert_int_equal(stat(target, &before), 0);
    let_go(p, run(p, offer_and_be_refused, ATTACKER));
    assert_int_equal(stat(target, &after), 0);
    assert_int_equal(after.st_mode, before.st_mode);
    assert_int_equal(rmdir(target), 0); /* still empty */
    let_go(p, run(p, launch_in_portions, VICTIM));
    assert_stops(p);
}

static void meet_with_ten(const struct place *p, int uid)
{
    struct occ_ring_producer ring;
    be_user(uid);
    make_ring(&ring, 10);
    meet(offer(p, &ring));
}

static void signals_that_end_it_drain_it(void **state)
{
    struct place *p = *state;
    static const int signals[] = {SIGUSR1, SIGUSR2, SIGINT};
    for (int i = 0; i < 3; i++) {
        int status = -1;
        start_for_all(p);
        let_go(p, run(p, meet_with_ten, VICTIM));
        assert_int_equal(kill(p->daemon, signals[i]), 0);
        assert_int_equal(waitpid(p->daemon, &status, 0), p->daemon);
        assert_int_equal(status, 0);
        p->daemon = 0;
        (void)close(p->control);
        assert_int_equal(count_in(p, VICTIM, RAW_LAUNCHES), 10 * (i + 1));
    }
    p->control = -1;
}

static int open_shared(void **state)
{
    held = mmap(NULL, sizeof *held, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return held == MAP_FAILED ? -1 : open_in_place(state);
}

int main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_descriptor_that_does_not_close_keeps_its_sender_alone),
        T(a_process_that_has_ended_is_nobody),
        T(a_process_that_is_ending_is_known_by_lasting_control_groups),
        T(root_in_a_container_is_not_root),
        T(a_process_younger_than_its_connection_is_another),
        T(root_in_a_container_reads_no_names),
        T(pods_of_a_namespace_share_a_history),
        T(a_container_has_a_share_of_its_own),
        T(a_container_that_floods_keeps_itself_alone),
        T(a_container_gets_no_name_of_the_host),
        T(subordinate_uids_share_what_their_user_has),
        T(a_lock_on_a_file_keeps_its_owner_alone),
        T(a_reader_that_stays_keeps_its_owner_alone),
        T(a_link_is_no_owners_directory),
        T(signals_that_end_it_drain_it),
    };
#undef T
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("daemon attacks", tests, open_shared, NULL);
}
