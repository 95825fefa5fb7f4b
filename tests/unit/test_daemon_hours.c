/*
 * Plays hours of two users of root's daemon in a few seconds, with launch times spread over these hours: one
 * user's launches exceed the history's quota and are evicted, the other user makes ten a minute, all
 * kept. `long`: 24 hours. Only root can act as two users.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "daemon_programs.h"
#include "support/clock.h"

#define NEVER_NS         INT64_C(3600000000000)
#define MINUTE_NS        INT64_C(60000000000)
#define QUIET            61001
#define NOISY            61003
#define QUIET_PER_MINUTE 10
#define QUOTA            (UINT64_C(16) << 20)
#define LOG_BYTES        (8 << 20) /* limit of a history's write-ahead log */
#define RING_SLOTS       65536

static int hours, noisy_per_minute;

struct user {
    struct occ_ring_producer ring;
    int fd;
    uint64_t random;
};

/* Offers a ring as this user: the daemon sees the connecting user. */
static void be_program_of(const struct place *p, uid_t uid, struct user *u)
{
    static const char text[] = "session\0" SESSION;
    assert_int_equal(occ_ring_create(&u->ring, RING_SLOTS, 64u << 10), 0);
    assert_true(log_process(&u->ring, 1, text, sizeof text) && log_device(&u->ring, 0) &&
                log_kernel(&u->ring, 0, "_Z4axpyPf") && log_config(&u->ring, 0));
    assert_int_equal(seteuid(uid), 0);
    u->fd = offer(p, &u->ring);
    assert_int_equal(seteuid(0), 0);
    u->random = uid;
}

/* Pushes `n` launches over the minute, with values that do not compress; waits for room, so that none is
 * lost. */
static void launch(struct user *u, int64_t minute_ns, unsigned int n)
{
    for (unsigned int i = 0; i < n; i++) {
        struct occ_ring_launch l = sample_launch(u->ring.head);
        u->random = u->random * 6364136223846793005u + 1442695040888963407u;
        l.start_ns = (uint64_t)(minute_ns + MINUTE_NS / n * i);
        l.duration_ns = u->random >> 44;
        l.graph_node = u->random;
        while (u->ring.head - atomic_load(&u->ring.header->tail) >= RING_SLOTS)
            pause_ms(1);
        check(occ_ring_push(&u->ring, &l));
    }
}

static void leave(struct user *u)
{
    meet(u->fd);
    occ_ring_close(&u->ring); /* the daemon hangs up once it has read everything */
    (void)close(u->fd);
    occ_ring_destroy(&u->ring);
}

static int64_t ask_history(const struct place *p, int uid, const char *sql)
{
    char path[160];
    struct occ_store *store = NULL;
    sqlite3_stmt *stmt = NULL;
    (void)snprintf(path, sizeof path, "%s/u%d/history.db", p->directory, uid);
    assert_int_equal(occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &store, NULL),
                     0);
    assert_int_equal(sqlite3_prepare_v2(occ_store_sqlite(store), sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    occ_store_close(store);
    return value;
}

static int64_t bytes_of(const struct place *p, int uid, const char *suffix)
{
    char path[160];
    struct stat status;
    (void)snprintf(path, sizeof path, "%s/u%d/history.db%s", p->directory, uid, suffix);
    return stat(path, &status) == 0 ? status.st_size : 0;
}

static void the_quiet_users_launches_stay(void **state)
{
    struct place *p = *state;
    struct user quiet, noisy;
    if (geteuid() != 0) {
        print_message("skipped: only root can be two users\n");
        skip();
    }
    p->split = true;
    p->round_ns = 5000000;
    p->max_bytes = QUOTA;
    p->idle_ns = NEVER_NS;
    assert_int_equal(chmod(p->directory, 0755), 0);
    start(p, NEVER_NS);
    be_program_of(p, QUIET, &quiet);
    be_program_of(p, NOISY, &noisy);
    const int minutes = 60 * hours;
    int64_t first_ns = occ_now_ns() - minutes * MINUTE_NS, log_bytes = 0;
    for (int i = 0; i < minutes; i++) {
        launch(&noisy, first_ns + i * MINUTE_NS, (unsigned int)noisy_per_minute);
        launch(&quiet, first_ns + i * MINUTE_NS, QUIET_PER_MINUTE);
        assert_true(bytes_of(p, NOISY, "") <= (int64_t)QUOTA);
        int64_t log = bytes_of(p, NOISY, "-wal");
        log_bytes = log > log_bytes ? log : log_bytes;
    }
    leave(&quiet);
    leave(&noisy);
    await_status(p, "\nclients 1\nprograms 0\n");
    assert_stops(p);
    assert_true(log_bytes < LOG_BYTES);
    assert_int_equal(ask_history(p, QUIET, "SELECT count(*) FROM launch"), minutes * QUIET_PER_MINUTE);
    int64_t kept = ask_history(p, NOISY, "SELECT count(*) FROM launch");
    assert_in_range(kept, 1, (int64_t)minutes * noisy_per_minute - 1); /* some are evicted, not all */
    assert_int_equal(ask_history(p, NOISY, "SELECT sum(launches) FROM minute"),
                     (int64_t)minutes * noisy_per_minute);
    assert_int_equal(ask_history(p, NOISY, "SELECT coalesce(sum(launches), 0) FROM loss"), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_quiet_users_launches_stay, setup, teardown)};
    bool is_long = argc > 1 && strcmp(argv[1], "long") == 0;
    hours = is_long ? 24 : 1;
    noisy_per_minute = is_long ? 6000 : 30000; /* many times the quota */
    return cmocka_run_group_tests_name("daemon hours", tests, NULL, NULL);
}
