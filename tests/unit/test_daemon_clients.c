/*
 * The records of connections in daemon/server.c: in whatever order a program says hello, hangs up, execs,
 * connects again and ends, its record goes with its run: not later (a leak), not earlier (a use after free,
 * which a sanitizer or the daemon's death shows).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <sys/socket.h>

#include "daemon_served.h"
#include "ring/handshake.h"
#include "ring_samples.h"

#define AT_ONCE_NS     INT64_C(1000000)
#define NEVER_NS       INT64_C(3600000000000)
#define MEMORY_PER_RUN 2048 /* bytes: the history's caches grow with its file */

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED true
#elif defined __has_feature
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED false
#endif

static int programs_to_run; /* by the test of many short programs */

/* ---- a program; it fails by its exit code ---- */

static void check(bool good)
{
    if (!good)
        _exit(99);
}

/* With `n` launches in it. */
static void make_ring(struct occ_ring_producer *ring, uint64_t n)
{
    static const char text[] = "session\0" SESSION;
    check(occ_ring_create(ring, 256, 64u << 10) == 0);
    check(log_process(ring, 1, text, sizeof text) && log_device(ring, 0) &&
          log_kernel(ring, 0, "_Z4axpyPf") && log_config(ring, 0));
    for (uint64_t i = 0; i < n; i++) {
        struct occ_ring_launch launch = sample_launch(i);
        check(occ_ring_push(ring, &launch));
    }
}

static void say_hello(int fd, const struct occ_ring_producer *ring)
{
    struct occ_hello hello = {.magic = OCC_HELLO_MAGIC,
                              .version_major = OCC_RING_VERSION_MAJOR,
                              .version_minor = OCC_RING_VERSION_MINOR,
                              .bytes = sizeof hello};
    memcpy(hello.uuid, ring->header->uuid, sizeof hello.uuid);
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec iov = {.iov_base = &hello, .iov_len = sizeof hello};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &ring->fd, sizeof(int));
    check(sendmsg(fd, &message, MSG_NOSIGNAL) == sizeof hello);
}

static int connect_to(const struct place *p)
{
    int fd = -1, status = 0;
    for (int ms = 0; (status = occ_control_connect(p->socket, &fd, NULL)) != 0 && ms < DEADLINE_MS; ms += 5)
        pause_ms(5); /* others are in the queue before us */
    check(status == 0);
    return fd;
}

static int offer(const struct place *p, const struct occ_ring_producer *ring)
{
    int fd = connect_to(p);
    say_hello(fd, ring);
    return fd;
}

/* Until the daemon has handled all that was sent before. */
static void meet(int fd)
{
    char answer[64];
    check(occ_control_request(fd, "ping", DEADLINE_MS, answer, sizeof answer, NULL) == 0);
}

static void wait_for_end(const struct place *p)
{
    char byte;
    (void)!read(p->leave[0], &byte, 1);
}

/* Runs `program` in a child; wait_for_end() there waits for let_go() here. Returns its pid. */
static pid_t run(struct place *p, void (*program)(const struct place *p, int variant), int variant)
{
    (void)fflush(NULL);
    assert_int_equal(pipe(p->leave), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(p->leave[1]);
        program(p, variant);
        _exit(0);
    }
    return pid;
}

static void let_go(struct place *p, pid_t pid)
{
    int status = -1;
    for (int i = 0; i < 2; i++) {
        (void)close(p->leave[i]);
        p->leave[i] = -1;
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ---- tests ---- */

static void hang_up_and_live(const struct place *p, int variant)
{
    struct occ_ring_producer ring;
    (void)variant;
    make_ring(&ring, 10);
    (void)close(offer(p, &ring));
    wait_for_end(p);
}

/* Its run ends for silence, then it ends itself. */
static void a_silent_program_may_end_after_its_run(void **state)
{
    struct place *p = *state;
    start(p, AT_ONCE_NS);
    size_t descriptors = count_descriptors(p);
    pid_t program = run(p, hang_up_and_live, 0);
    await_launches(p, 10);
    await_status(p, "\nprograms 0\n");
    let_go(p, program);
    await_status(p, "\nclients 1\nprograms 0\n");
    await_descriptors(p, descriptors);
    assert_stops(p);
}

static void exec_another(const struct place *p, int variant)
{
    struct occ_ring_producer ring;
    (void)variant;
    make_ring(&ring, 10);
    (void)offer(p, &ring);
    check(dup2(p->leave[0], STDIN_FILENO) == STDIN_FILENO);
    (void)execlp("cat", "cat", (char *)NULL);
    _exit(98);
}

/* Nothing is kept for what it has become. */
static void a_program_that_execs_leaves_nothing(void **state)
{
    struct place *p = *state;
    start(p, AT_ONCE_NS);
    size_t descriptors = count_descriptors(p);
    pid_t program = run(p, exec_another, 0);
    await_launches(p, 10);
    await_status(p, "\nclients 1\nprograms 0\n");
    await_descriptors(p, descriptors);
    let_go(p, program);
    await_status(p, "\nclients 1\nprograms 0\n");
    assert_stops(p);
}

/* As after closefrom(); also with the new connection before the old one's end. */
static void connect_again(const struct place *p, int variant)
{
    struct occ_ring_producer ring;
    (void)variant;
    make_ring(&ring, 10);
    int fd = offer(p, &ring);
    for (int i = 0; i < 20; i++) {
        int old = fd;
        if (i % 4 < 2)
            meet(fd);
        if (i % 2)
            (void)close(fd);
        fd = offer(p, &ring);
        if (i % 2 == 0)
            (void)close(old);
    }
    meet(fd);
    wait_for_end(p);
}

static void a_program_that_connects_again_has_one_record(void **state)
{
    struct place *p = *state;
    start(p, NEVER_NS);
    size_t descriptors = count_descriptors(p);
    pid_t program = run(p, connect_again, 0);
    await_launches(p, 10);
    await_status(p, "\nclients 2\nprograms 1\n");
    await_descriptors(p, descriptors + 3); /* connection, process, ring */
    let_go(p, program);
    await_status(p, "\nclients 1\nprograms 0\n");
    await_descriptors(p, descriptors);
    assert_stops(p);
}

enum loss { HANG_UP, SECOND_HELLO, NO_ANSWER, N_LOSSES };

/* A connection that either side gives up; then a new ring of the same process, as after exec. */
static void lose_connection(const struct place *p, int variant)
{
    struct occ_ring_producer old, fresh;
    struct pollfd end = {.events = 0};
    make_ring(&old, 10);
    make_ring(&fresh, 0);
    end.fd = connect_to(p);
    if (variant == NO_ANSWER)
        check(shutdown(end.fd, SHUT_RD) == 0);
    say_hello(end.fd, &old);
    if (variant == SECOND_HELLO)
        say_hello(end.fd, &old);
    if (variant == NO_ANSWER)
        check(send(end.fd, "ping", 4, MSG_NOSIGNAL) == 4);
    if (variant == HANG_UP)
        (void)close(end.fd);
    else
        check(poll(&end, 1, DEADLINE_MS) == 1); /* the daemon has closed it */
    meet(offer(p, &fresh));
    wait_for_end(p);
}

static void a_lost_connection_ends_the_run_at_the_next_ring(void **state)
{
    struct place *p = *state;
    start(p, NEVER_NS);
    size_t descriptors = count_descriptors(p);
    for (int loss = 0; loss < N_LOSSES; loss++) {
        pid_t program = run(p, lose_connection, loss);
        await_launches(p, 10 * ((uint64_t)loss + 1));
        await_status(p, "\nclients 2\nprograms 1\n");
        let_go(p, program);
        await_status(p, "\nclients 1\nprograms 0\n");
        await_descriptors(p, descriptors);
    }
    assert_stops(p);
}

/* Ends at once, or after the daemon has taken its ring; with a ring closed, a connection closed, or neither.
 */
static void be_short(const struct place *p, int variant)
{
    struct occ_ring_producer ring;
    make_ring(&ring, 1);
    int fd = offer(p, &ring);
    if (variant % 2)
        meet(fd);
    if (variant % 3 == 1)
        (void)close(fd);
    if (variant % 3 == 2)
        occ_ring_close(&ring);
}

static void run_short_programs(struct place *p, int from, int to)
{
    for (int i = from; i < to; i++) {
        let_go(p, run(p, be_short, i));
        if ((i + 1) % (MAX_PRODUCERS / 2) == 0)
            assert_int_equal(flush(p), i + 1);
    }
    await_status(p, "\nclients 1\nprograms 0\n");
}

/* A leak of records would refuse the later ones: MAX_PRODUCERS and some dozens are taken at a time. */
static void many_short_programs_leave_nothing(void **state)
{
    struct place *p = *state;
    const int first = programs_to_run / 5 / MAX_PRODUCERS * MAX_PRODUCERS;
    start(p, NEVER_NS);
    size_t descriptors = count_descriptors(p);
    run_short_programs(p, 0, first);
    long before = resident_bytes(p);
    run_short_programs(p, first, programs_to_run);
    long grown = resident_bytes(p) - before;
    await_descriptors(p, descriptors);
    if (!SANITIZED) /* these keep what is freed */
        assert_true(grown < (programs_to_run - first) * MEMORY_PER_RUN);
    assert_stops(p);
}

int main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_silent_program_may_end_after_its_run),
        T(a_program_that_execs_leaves_nothing),
        T(a_program_that_connects_again_has_one_record),
        T(a_lost_connection_ends_the_run_at_the_next_ring),
        T(many_short_programs_leave_nothing),
    };
    const struct CMUnitTest long_tests[] = {T(many_short_programs_leave_nothing)};
#undef T
    bool is_long = argc > 1 && strcmp(argv[1], "long") == 0;
    programs_to_run = is_long ? 5000 : 320;
    return is_long ? cmocka_run_group_tests_name("daemon clients, long", long_tests, NULL, NULL)
                   : cmocka_run_group_tests_name("daemon clients", tests, NULL, NULL);
}
