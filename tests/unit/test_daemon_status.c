/* A daemon's reports of its state: the reason why a history cannot be written, each user's view, and the
 * output of `occtraced --status`. SQLite's VFS uses the test's pwrite. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/serve/status.h"
#include "daemon_programs.h"

#define NEVER_NS INT64_C(3600000000000)

static volatile int *write_error; /* shared with the daemon; 0: it may write */

static ssize_t faulty_pwrite(int fd, const void *data, size_t n, off_t offset)
{
    if (*write_error) {
        errno = *write_error;
        return -1;
    }
    return pwrite(fd, data, n, offset);
}

static int replace_writes(void **state)
{
    (void)state;
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    int replaced = 0;
    write_error = mmap(NULL, sizeof *write_error, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (const char *const *name = (const char *const[]){"pwrite", "pwrite64", NULL}; *name; name++)
        replaced += vfs->xSetSystemCall(vfs, *name, (sqlite3_syscall_ptr)faulty_pwrite) == SQLITE_OK;
    return write_error != MAP_FAILED && replaced > 0 ? 0 : -1;
}

/* Waits until the first history's report contains both texts. */
static void await_history(const struct place *p, const char *what, const char *and)
{
    char answer[OCC_CONTROL_BYTES] = "";
    for (int ms = 0; !ask(p, "history 0", answer) || !strstr(answer, what) || !strstr(answer, and); ms += 5) {
        if (ms >= DEADLINE_MS || !is_alive(p))
            fail_msg("not '%s' and '%s': %s", what, and, answer);
        pause_ms(5);
    }
}

static void launch_twenty(const struct place *p, int variant)
{
    struct occ_ring_producer ring;
    (void)variant;
    make_ring(&ring, 20);
    int fd = offer(p, &ring);
    wait_for_end(p);
    (void)close(fd);
}

static int lock(sqlite3 **db, const struct place *p)
{
    int rc = sqlite3_open(p->db, db);
    (void)sqlite3_busy_timeout(*db, DEADLINE_MS); /* the daemon may be committing */
    return rc == SQLITE_OK ? sqlite3_exec(*db, "BEGIN IMMEDIATE", NULL, NULL, NULL) : rc;
}

/* A history that cannot be written reports the reason until it can be written again; then it takes the
 * waiting launches. */
static void a_state_has_its_reason(void **state)
{
    struct place *p = *state;
    const struct {
        int error; /* of every write; 0: another process has the lock */
        const char *state, *reason;
    } cases[] = {{ENOSPC, "\nstate full\n", "disk or quota full"},
                 {EIO, "\nstate stalled\n", "disk I/O error"},
                 {0, "\nstate locked\n", "in use by another process"}};
    start(p, NEVER_NS);
    await_history(p, "\nstate ok\n", "\nlaunches 0\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sqlite3 *db = NULL;
        if (cases[i].error == 0)
            assert_int_equal(lock(&db, p), SQLITE_OK);
        *write_error = cases[i].error;
        pid_t program = run(p, launch_twenty, 0);
        await_history(p, cases[i].state, cases[i].reason);
        await_status(p, "\nstalled yes\n");
        *write_error = 0;
        assert_int_equal(sqlite3_close_v2(db), SQLITE_OK); /* ends the transaction too */
        await_history(p, "\nstate ok\n", "\nlag_s 0\n");
        let_go(p, program);
    }
    await_status(p, "\nprograms 0\n");
    assert_int_equal(flush(p), 3 * 20);
    assert_stops(p);
}

static void a_replaced_history_says_so(void **state)
{
    struct place *p = *state;
    start(p, NEVER_NS);
    pid_t program = run(p, launch_twenty, 0);
    await_history(p, "\nstate ok\n", "\nlaunches 20\n");
    assert_int_equal(unlink(p->db), 0);
    assert_int_equal(mkdir(p->db, 0700), 0);
    await_history(p, "\nstate replaced\n", "\nprograms 1\n");
    assert_int_equal(rmdir(p->db), 0);
    await_history(p, "\nstate ok\n", "\nprograms 1\n");
    let_go(p, program);
    assert_stops(p);
}

static void be_user(int uid)
{
    check(setresgid((gid_t)uid, (gid_t)uid, (gid_t)uid) == 0 &&
          setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) == 0);
}

/* Checks that a user sees only his own history, and, except for the first user, the number of all
 * histories, 3. */
static void see_own(const struct place *p, int uid)
{
    char answer[OCC_CONTROL_BYTES], own[32];
    struct occ_ring_producer ring;
    be_user(uid);
    make_ring(&ring, 20);
    int fd = offer(p, &ring);
    meet(fd);
    (void)snprintf(own, sizeof own, "owner u%d\n", uid);
    check(occ_control_request(fd, "history 0", DEADLINE_MS, answer, sizeof answer, NULL) == 0);
    check(strncmp(answer, own, strlen(own)) == 0);
    check(occ_control_request(fd, "history 1", DEADLINE_MS, answer, sizeof answer, NULL) == 0 && !answer[0]);
    check(occ_control_request(fd, "status", DEADLINE_MS, answer, sizeof answer, NULL) == 0);
    check(strstr(answer, "\nhistories 3\n") || uid == 61001);
}

static void a_user_sees_totals_and_his_own(void **state)
{
    struct place *p = *state;
    char answer[OCC_CONTROL_BYTES];
    if (geteuid() != 0)
        skip();
    p->split = true;
    assert_int_equal(chmod(p->directory, 0711), 0);
    start(p, NEVER_NS);
    let_go(p, run(p, see_own, 61001));
    let_go(p, run(p, see_own, 61002));
    const char *const owners[] = {"owner u0\n", "owner u61001\n", "owner u61002\n"};
    for (unsigned int i = 0; i < 3; i++) {
        char request[32];
        (void)snprintf(request, sizeof request, "history %u", i);
        assert_true(ask(p, request, answer));
        assert_memory_equal(answer, owners[i], strlen(owners[i]));
    }
    assert_true(ask(p, "history 3", answer));
    assert_string_equal(answer, "");
    assert_stops(p);
}

/* ---- printing ---- */

static int64_t json_number(sqlite3 *db, const char *json, const char *path)
{
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT json_extract(?, ?)", -1, &stmt, NULL), SQLITE_OK);
    (void)sqlite3_bind_text(stmt, 1, json, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(stmt, 2, path, -1, SQLITE_STATIC);
    if (sqlite3_step(stmt) != SQLITE_ROW)
        fail_msg("%s: %s", sqlite3_errmsg(db), json);
    int64_t number = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return number;
}

static char *print(const struct place *p, enum occ_status_form form)
{
    char *text = NULL;
    size_t size = 0;
    struct occ_error err = OCC_ERROR_INIT;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    if (occ_status_print(p->control, form, out, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void it_is_printed_as_text_and_as_json(void **state)
{
    struct place *p = *state;
    sqlite3 *db = NULL;
    start(p, NEVER_NS);
    pid_t program = run(p, launch_twenty, 0);
    await_history(p, "\nlaunches 20\n", "\nlag_s 0\n");
    char *text = print(p, OCC_STATUS_ALL), *json = print(p, OCC_STATUS_JSON),
         *lines = print(p, OCC_STATUS_LINES);
    assert_non_null(strstr(text, "\n  launches             20\n"));
    assert_non_null(strstr(text, "\nhistory 0\n"));
    assert_non_null(strstr(text, p->db));
    assert_null(strstr(text, "lost:")); /* nothing is lost */
    assert_non_null(strstr(lines, "\n  launches             20\n"));
    assert_null(strstr(lines, "\nhistory 0\n"));
    assert_non_null(strstr(lines, "\n  OWNER  STATE  PROGRAMS  LAUNCHES  LOST  FAILED"));
    assert_non_null(strstr(lines, "\n  -      ok            1        20     0       0"));
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(json_number(db, json, "$.pid"), p->daemon);
    assert_int_equal(json_number(db, json, "$.programs"), 1);
    assert_int_equal(json_number(db, json, "$.open[0].launches"), 20);
    assert_true(json_number(db, json, "$.open[0].bytes") > 4096);
    assert_true(json_number(db, json, "$.memory_bytes") > 1 << 20);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    let_go(p, program);
    assert_stops(p);
    free(text);
    free(json);
    free(lines);
}

/* Answers of a program that is no daemon: invalid lines are left out, and control characters are replaced. */
static void answers_are_not_believed(void **state)
{
    (void)state;
    static const char *const answers[] = {"ok\npid 12x\nlaunches -1\nversion \x1b[2J\"\\\n\nconfig",
                                          "ok\n\n\nstate \"\n", "ok"};
    char packet[64], *text = NULL;
    size_t size = 0;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    for (size_t i = 0; i < 3; i++)
        assert_true(send(fds[1], answers[i], strlen(answers[i]), 0) > 0);
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(occ_status_print(fds[0], OCC_STATUS_JSON, out, NULL), 0);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(
        text, "{\"program\": \"occtraced\", \"version\": \"?[2J\\\"\\\\\", \"open\": [{\"number\": 0, "
              "\"state\": \"\\\"\"}]}\n");
    assert_true(recv(fds[1], packet, sizeof packet, 0) == 6);
    (void)close(fds[0]);
    (void)close(fds[1]);
    free(text);
}

/* Returns the status text for a daemon with these answers. */
static char *print_answers(const char *const *answers, enum occ_status_form form)
{
    char *text = NULL;
    size_t size = 0;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    for (; *answers; answers++)
        assert_true(send(fds[1], *answers, strlen(*answers), 0) > 0);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(occ_status_print(fds[0], form, out, NULL), 0);
    assert_int_equal(fclose(out), 0);
    (void)close(fds[0]);
    (void)close(fds[1]);
    return text;
}

static void the_worst_owner_comes_first(void **state)
{
    (void)state;
#define ROWS "programs 2\nlaunches 7\nstore_failures 0\nlag_s 0\n"
    static const char *const answers[] = {
        "ok\npid 7\n",
        "ok\nowner u0\nstate ok\n" ROWS "lost_ring_full 0\nring_fill 0.01\nbytes 4096\nquota_fill 0.5\n",
        "ok\nowner u1\nstate ok\n" ROWS
        "lost_ring_full 3\nlost_log_full 4\nring_fill 0\nbytes 4096\nquota_fill 0\n",
        "ok\nowner u2\nstate full\nreason no room \x1b[2J\n" ROWS
        "lost_ring_full 0\nring_fill 0\nbytes 4096\nquota_fill 0\n",
        "ok\nowner u3\nstate ok\n" ROWS "lost_ring_full 0\nring_fill 0.9\nbytes 4096\nquota_fill 0\n",
        "ok\nowner u4\nstate ok\nlaunches -1\nlost_ring_full x\n",
        "ok",
        NULL};
    char *lines = print_answers(answers, OCC_STATUS_LINES);
    assert_string_equal(
        lines,
        "occtraced\n  process              7\n\n"
        "  OWNER  STATE  PROGRAMS  LAUNCHES  LOST  FAILED  BEHIND    RING     SIZE   QUOTA  REASON\n"
        "  u2     full          2         7     0       0     0 s   0.0 %  4.0 KiB   0.0 %  no room ?[2J\n"
        "  u1     ok            2         7     7       0     0 s   0.0 %  4.0 KiB   0.0 %\n"
        "  u3     ok            2         7     0       0     0 s  90.0 %  4.0 KiB   0.0 %\n"
        "  u0     ok            2         7     0       0     0 s   1.0 %  4.0 KiB  50.0 %\n"
        "  u4     ok            -         -     -       -       -       -        -       -\n");
    free(lines);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_state_has_its_reason),
        T(a_replaced_history_says_so),
        T(a_user_sees_totals_and_his_own),
        T(it_is_printed_as_text_and_as_json),
        cmocka_unit_test(answers_are_not_believed),
        cmocka_unit_test(the_worst_owner_comes_first),
    };
    return cmocka_run_group_tests(tests, replace_writes, NULL);
}
