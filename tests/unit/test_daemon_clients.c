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
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "daemon_programs.h"

#define AT_ONCE_NS INT64_C(1000000)
#define NEVER_NS   INT64_C(3600000000000)
#define GROWN_MAX  (8 << 20) /* in bytes: caches of the history, which have their own limit */

static int programs_to_run; /* set for the test of many short programs */

/* ---- tests ---- */

static void hang_up_and_live(const struct place *p, int variant)
{
    struct occ_ring_producer ring;
    (void)variant;
    make_ring(&ring, 10);
    (void)close(offer(p, &ring));
    wait_for_end(p);
}

static void offer_and_read_the_answer(const struct place *p, int variant)
{
    struct occ_ring_producer ring;
    (void)variant;
    make_ring(&ring, 10);
    int fd = offer(p, &ring);
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    check(poll(&ready, 1, DEADLINE_MS) == 1 && occ_hello_receive(fd) == OCC_HELLO_OWNED);
}

/* The program ends after the answer, like a guest. */
static void a_program_hears_that_its_ring_is_owned(void **state)
{
    struct place *p = *state;
    start(p, AT_ONCE_NS);
    let_go(p, run(p, offer_and_read_the_answer, 0));
    await_launches(p, 10);
    assert_stops(p);
}

/* The run ends for silence, and later the program ends. */
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

/* After exec the daemon keeps nothing for the new program. */
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

/* Connects again and again, as after closefrom(); every other time before the old connection's end. */
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

/* Loses a connection through either side, then offers a new ring of the same process, as after exec. */
static void lose_connection(const struct place *p, int variant)
{
    struct occ_ring_producer old, fresh;
    struct pollfd end = {.events = 0};
    make_ring(&old, 10);
    make_ring(&fresh, 0);
    end.fd = connect_to(p);
    if (variant == NO_ANSWER)
        check(shutdown(end.fd, SHUT_RD) == 0);
    send_hello(end.fd, &old);
    if (variant == SECOND_HELLO)
        send_hello(end.fd, &old);
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

/* Ends at once or after the daemon has taken the ring; closes the ring, the connection, or neither. */
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

/* Leaked records would make the daemon refuse later programs, since their number at a time is limited. */
static void many_short_programs_leave_nothing(void **state)
{
    SKIP_IF_SANITIZED();
    struct place *p = *state;
    const int first = programs_to_run / 5 / MAX_PRODUCERS * MAX_PRODUCERS;
    start(p, NEVER_NS);
    size_t descriptors = count_descriptors(p);
    run_short_programs(p, 0, first);
    long before = resident_bytes(p);
    run_short_programs(p, first, programs_to_run);
    long grown = resident_bytes(p) - before;
    await_descriptors(p, descriptors);
    if (!SANITIZED) /* sanitizers keep freed memory */
        assert_true(grown < GROWN_MAX);
    assert_stops(p);
}

/* ---- a daemon that is killed below many programs ---- */

#define PROGRAMS 120
#define AFTER    100 /* launches per program with the second daemon */

static struct both { /* shared by all processes */
    _Atomic uint64_t pushed;
    atomic_bool is_back; /* the second daemon listens */
} * both;

static bool has_room(const struct occ_ring_producer *ring)
{
    return ring->head - atomic_load(&ring->header->tail) < ring->mask + 1u;
}

static void push_one(struct occ_ring_producer *ring)
{
    struct occ_ring_launch launch = sample_launch(ring->head);
    check(occ_ring_push(ring, &launch));
}

static bool has_hung_up(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

/* Pushes only while the ring has room, so that no launch is lost: the daemon may be killed while the ring is
 * full. */
static void launch_below_two_daemons(const struct place *p, int variant)
{
    struct occ_ring_producer ring;
    (void)variant;
    make_ring(&ring, 0);
    for (int fd = offer(p, &ring); !has_hung_up(fd); pause_ms(5))
        if (has_room(&ring))
            push_one(&ring);
    while (!both->is_back)
        pause_ms(5);
    int fd = offer(p, &ring);
    for (int i = 0; i < AFTER; i++) {
        while (!has_room(&ring))
            pause_ms(1);
        push_one(&ring);
    }
    (void)atomic_fetch_add(&both->pushed, ring.head);
    meet(fd);
    occ_ring_close(&ring); /* the daemon hangs up once it has read everything */
}

static int64_t ask_history(const struct place *p, const char *sql)
{
    struct occ_store *store = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(occ_store_open(p->db, &(struct occ_store_options){.mode = OCC_STORE_READ}, &store, NULL),
                     0);
    assert_int_equal(sqlite3_prepare_v2(occ_store_sqlite(store), sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    occ_store_close(store);
    return value;
}

static void kill_daemon(struct place *p)
{
    assert_int_equal(kill(p->daemon, SIGKILL), 0);
    assert_int_equal(waitpid(p->daemon, NULL, 0), p->daemon);
    (void)close(p->control);
}

/* Each launch of all programs is in the history once. */
static void a_killed_daemon_loses_nothing_of_many_programs(void **state)
{
    struct place *p = *state;
    pid_t programs[PROGRAMS];
    both = mmap(NULL, sizeof *both, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(both, MAP_FAILED);
    p->max_producers = PROGRAMS;
    start(p, NEVER_NS);
    for (int i = 0; i < PROGRAMS; i++) {
        programs[i] = run(p, launch_below_two_daemons, 0);
        (void)close(p->leave[0]);
        (void)close(p->leave[1]);
    }
    p->leave[0] = p->leave[1] = -1;
    char status[32];
    (void)snprintf(status, sizeof status, "\nprograms %d\n", PROGRAMS);
    await_status(p, status);
    while (flush(p) < 2 * PROGRAMS)
        pause_ms(5);
    kill_daemon(p);
    start(p, NEVER_NS);
    both->is_back = true;
    for (int i = 0; i < PROGRAMS; i++)
        let_go(p, programs[i]);
    await_status(p, "\nclients 1\nprograms 0\n");
    assert_stops(p);
    assert_true(both->pushed >= PROGRAMS * (AFTER + 2));
    assert_int_equal(ask_history(p, "SELECT count(*) FROM launch"), both->pushed);
    assert_int_equal(
        ask_history(p, "SELECT count(*) FROM (SELECT DISTINCT run_id, correlation_id FROM launch)"),
        both->pushed);
    assert_int_equal(ask_history(p, "SELECT count(*) FROM run"), PROGRAMS);
    assert_int_equal(ask_history(p, "SELECT coalesce(sum(launches), 0) FROM loss"), 0);
    assert_int_equal(munmap(both, sizeof *both), 0);
}

/* A program changes to another daemon when this one is killed. Its run here ends with the program, although
 * no history is opened then. */
static void a_run_of_a_killed_daemon_ends_with_its_program(void **state)
{
    struct place *p = *state;
    p->upkeep_ns = AT_ONCE_NS;
    start(p, NEVER_NS);
    pid_t program = run(p, hang_up_and_live, 0);
    while (flush(p) < 10)
        pause_ms(5);
    kill_daemon(p);
    start(p, NEVER_NS);
    for (int i = 0; i < 20; i++)
        assert_int_equal(flush(p), 10);
    assert_int_equal(ask_history(p, "SELECT count(*) FROM run WHERE end_ns IS NULL"), 1);
    assert_int_equal(kill(program, SIGKILL), 0); /* the daemon has inherited the pipe that would let it go */
    assert_int_equal(waitpid(program, NULL, 0), program);
    while (ask_history(p, "SELECT count(*) FROM run WHERE end_ns IS NULL") > 0)
        pause_ms(5);
    assert_int_equal(ask_history(p, "SELECT count(*) FROM recording_period WHERE level = 'unknown'"), 1);
    assert_stops(p);
}

/* Pushes launches [from, from + 10). */
static void push_ten(struct occ_ring_producer *ring, uint64_t from)
{
    for (uint64_t i = from; i < from + 10; i++) {
        struct occ_ring_launch launch = sample_launch(i);
        assert_true(occ_ring_push(ring, &launch));
    }
}

static void shell(const struct place *p, const char *command)
{
    char text[256];
    (void)snprintf(text, sizeof text, "cd %s && %s", p->directory, command);
    assert_int_equal(system(text), 0);
}

/* Deletes or replaces the history beneath the daemon: only the launches in the old file are gone. */
static void assert_recording_goes_on(struct place *p, const char *command, uint64_t kept)
{
    struct occ_ring_producer ring;
    char answer[OCC_CONTROL_BYTES];
    struct occ_store *store = NULL;
    uint64_t launches = 0;
    start(p, NEVER_NS);
    make_ring(&ring, 10);
    int fd = offer(p, &ring);
    await_launches(p, 10);
    shell(p, command);
    push_ten(&ring, 10);
    await_launches(p, kept + 10);
    push_ten(&ring, 20);
    occ_ring_close(&ring);
    await_status(p, "\nprograms 0\n");
    assert_true(ask(p, "ping", answer));
    assert_stops(p);
    (void)close(fd);
    occ_ring_destroy(&ring);
    assert_int_equal(occ_store_open(p->db, &(struct occ_store_options){.mode = OCC_STORE_READ}, &store, NULL),
                     0);
    assert_int_equal(occ_store_session_launches(store, SESSION, &launches, NULL), 0);
    assert_int_equal(launches, kept + 20);
    occ_store_close(store);
}

static void a_deleted_history_is_opened_anew(void **state)
{
    assert_recording_goes_on(*state, "rm history.db history.db-wal history.db-shm", 0);
}

static void a_deleted_file_leaves_a_log_that_is_not_read(void **state)
{
    assert_recording_goes_on(*state, "rm history.db", 0);
}

/* Replaces the history by an empty one; the old file's log stays behind. */
static void a_replaced_history_is_written_on(void **state)
{
    struct place *p = *state;
    struct occ_store *store = NULL;
    char path[128];
    (void)snprintf(path, sizeof path, "%s/other.db", p->directory);
    assert_int_equal(occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_WRITE}, &store, NULL),
                     0);
    occ_store_close(store);
    assert_recording_goes_on(p, "mv other.db history.db", 0);
}

/* Launches wait in the ring until the path can hold a history. */
static void what_is_no_history_is_waited_for(void **state)
{
    struct place *p = *state;
    struct occ_ring_producer ring;
    start(p, NEVER_NS);
    make_ring(&ring, 10);
    int fd = offer(p, &ring);
    await_launches(p, 10);
    shell(p, "rm history.db* && echo no history > history.db");
    push_ten(&ring, 10);
    await_status(p, "\nstalled yes\n");
    shell(p, "rm history.db");
    await_status(p, "\nstalled no\n");
    await_launches(p, 10);
    occ_ring_close(&ring);
    assert_stops(p);
    (void)close(fd);
    occ_ring_destroy(&ring);
}

static int64_t monotonic_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Each flush commits, so a client that flushes in a loop gets one commit per 100 ms: more would keep the disk
 * busy. */
static void flushes_have_a_rate(void **state)
{
    struct place *p = *state;
    start(p, NEVER_NS);
    pid_t program = run(p, hang_up_and_live, 0);
    await_launches(p, 10); /* the history exists */
    int64_t from_ns = monotonic_ns();
    for (int i = 0; i < 6; i++)
        assert_int_equal(flush(p), 10);
    assert_true(monotonic_ns() - from_ns >= INT64_C(500000000));
    let_go(p, program);
    assert_stops(p);
}

int main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_program_hears_that_its_ring_is_owned),
        T(a_silent_program_may_end_after_its_run),
        T(a_program_that_execs_leaves_nothing),
        T(a_program_that_connects_again_has_one_record),
        T(a_lost_connection_ends_the_run_at_the_next_ring),
        T(flushes_have_a_rate),
        T(many_short_programs_leave_nothing),
        T(a_killed_daemon_loses_nothing_of_many_programs),
        T(a_run_of_a_killed_daemon_ends_with_its_program),
        T(a_deleted_history_is_opened_anew),
        T(a_deleted_file_leaves_a_log_that_is_not_read),
        T(a_replaced_history_is_written_on),
        T(what_is_no_history_is_waited_for),
    };
    const struct CMUnitTest long_tests[] = {T(many_short_programs_leave_nothing)};
#undef T
    bool is_long = argc > 1 && strcmp(argv[1], "long") == 0;
    programs_to_run = is_long ? 20000 : 2000;
    return is_long ? cmocka_run_group_tests_name("daemon clients, long", long_tests, NULL, NULL)
                   : cmocka_run_group_tests_name("daemon clients", tests, NULL, NULL);
}
