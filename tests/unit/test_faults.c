/*
 * Whole programs without memory and with failing disks: each allocation and each write fails once in turn
 * (fault_shim.c). No program crashes or hangs. A program answers as without the fault, or fails with a
 * message. The history stays valid, and holds a recording entirely or not at all.
 *
 *   test_faults [all [PATTERN]]
 *
 * By default few points of each case are tested, with `all` many points, spread over the whole case; PATTERN
 * selects cases.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sqlite3.h>

#include "daemon_programs.h"
#include "store/store.h"

#define POINTS     60   /* points of each case */
#define ALL_POINTS 2000 /* points of each case with `all` */
#define PATIENCE_S 60
#define NEVER_NS   INT64_C(3600000000000)

static bool is_all;

enum fault { NO_FAULT, ALLOCATION, WRITE };

/* Result of a program that has ended. */
struct outcome {
    int code; /* exit code; -1: a signal */
    char out[65536], err[8192];
    long counts[3]; /* by fault: number of points where it can happen */
};

static void read_file(const char *directory, const char *name, char *text, size_t size)
{
    char path[128];
    size_t n = 0;
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "r");
    if (file) {
        n = fread(text, 1, size - 1, file);
        (void)fclose(file);
    }
    text[n] = '\0';
}

static void set_number(const char *name, long value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%ld", value);
    (void)setenv(name, text, 1);
}

/* Runs the program with the fault in the child process. */
static void become(const struct place *p, const char *const arguments[], enum fault fault, long nth)
{
    const char *const files[] = {"out", "err"};
    char path[128];
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", p->directory, files[i]);
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        check(fd >= 0 && dup2(fd, i + 1) == i + 1);
    }
    (void)snprintf(path, sizeof path, "%s/counts", p->directory);
    (void)unlink(path);
    (void)setenv("OCC_FAULT_COUNTS", path, 1);
    set_number("OCC_FAULT_ALLOCATION", fault == ALLOCATION ? nth : 0);
    set_number("OCC_FAULT_WRITE", fault == WRITE ? nth : 0);
    (void)setenv("LD_PRELOAD", OCC_FAULT_SHIM, 1);
    (void)setenv("TZ", "UTC", 1);
    (void)setenv("LC_ALL", "C", 1); /* without memory, setlocale() takes it silently */
    (void)alarm(PATIENCE_S);
    (void)execv(arguments[0], (char *const *)arguments);
    _exit(98);
}

static pid_t begin(const struct place *p, const char *const arguments[], enum fault fault, long nth)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        become(p, arguments, fault, nth);
    return pid;
}

/* Waits for the program's end and reads its result. */
static void end(const struct place *p, pid_t pid, struct outcome *o)
{
    char counts[64];
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    o->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    read_file(p->directory, "out", o->out, sizeof o->out);
    read_file(p->directory, "err", o->err, sizeof o->err);
    read_file(p->directory, "counts", counts, sizeof counts);
    o->counts[ALLOCATION] = o->counts[WRITE] = 0;
    (void)sscanf(counts, "%ld %ld", &o->counts[ALLOCATION], &o->counts[WRITE]);
}

/* Returns the distance between tested points that keeps their number within the maximum. */
static long step_of(long count)
{
    long points = is_all ? ALL_POINTS : POINTS;
    return (count + points - 1) / points;
}

/* Checks that the program succeeded, or failed with a message. */
static void assert_clear(const char *what, enum fault fault, long nth, const struct outcome *o)
{
    if (o->code != 0 && o->code != 1)
        fail_msg("%s, fault %d at %ld: exit code %d: %s", what, fault, nth, o->code, o->err);
    if (o->code == 1 && !strstr(o->err, "memory") && !strstr(o->err, "cannot"))
        fail_msg("%s, fault %d at %ld: says '%s'", what, fault, nth, o->err);
}

/* ---- questions ---- */

static int64_t number_in(const char *path, const char *sql)
{
    struct occ_store *store = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    sqlite3_stmt *stmt = NULL;
    if (occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &store, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(sqlite3_prepare_v2(occ_store_sqlite(store), sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    occ_store_close(store);
    return number;
}

static void assert_whole(const char *path)
{
    assert_int_equal(number_in(path, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
}

/* A program with a fault gives the same answer as without the fault, or fails. */
static void ask_with_faults(const struct place *p, const char *const arguments[])
{
    static struct outcome good, bad;
    end(p, begin(p, arguments, NO_FAULT, 0), &good);
    assert_int_equal(good.code, 0);
    assert_true(good.counts[ALLOCATION] > 100 && good.out[0]);
    int failures = 0;
    long step = step_of(good.counts[ALLOCATION]);
    for (long nth = 1; nth <= good.counts[ALLOCATION]; nth += step) {
        end(p, begin(p, arguments, ALLOCATION, nth), &bad);
        assert_clear(arguments[1], ALLOCATION, nth, &bad);
        if (bad.code == 0 && strcmp(bad.out, good.out) != 0)
            fail_msg("%s: another answer without allocation %ld:\n%s", arguments[1], nth, bad.out);
        failures += bad.code != 0;
    }
    assert_true(failures > 0);
}

static void import(const struct place *p, enum fault fault, long nth, struct outcome *o)
{
    const char *const arguments[] = {OCC_OCCQ, "import", "-d", p->db, OCC_RECORDING, NULL};
    end(p, begin(p, arguments, fault, nth), o);
}

/* Asks questions with each form of output: text, JSON, CSV, JSON lines. */
static void questions_are_answered_or_fail(void **state)
{
    struct place *p = *state;
    static struct outcome o;
    import(p, NO_FAULT, 0, &o);
    if (o.code != 0)
        fail_msg("%s", o.err);
    static const char *const questions[][6] = {
        {"top"},
        {"runs"},
        {"top", "--json"},
        {"show", "1"},
        {"show", "1", "--json"},
        {"launches", "--csv"},
        {"sql", "--json", "SELECT kernel, 'a' || char(0) || 'b' AS nul, x'0102' AS bytes FROM kernel"},
        {"sql", "--csv", "SELECT kernel, 'a' || char(0) || 'b' AS nul, x'0102' AS bytes FROM kernel"},
        {"history", "--by", "minute"},
        {"export", "--csv", "-o", "/dev/stdout"},
        {"export", "--format", "jsonl", "-o", "/dev/stdout"},
    };
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        const char *arguments[10] = {OCC_OCCQ, questions[i][0], "-d", p->db};
        for (size_t k = 1; k < 6 && questions[i][k]; k++)
            arguments[3 + k] = questions[i][k];
        ask_with_faults(p, arguments);
    }
    assert_whole(p->db);
}

/* ---- recordings ---- */

static void remove_history(const struct place *p)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < 4; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "%s%s", p->db, suffixes[i]);
        (void)unlink(path);
    }
}

/* An import succeeds or changes nothing, and succeeds without the fault after a failure. */
static void imports_are_whole_or_fail(void **state)
{
    struct place *p = *state;
    static struct outcome good, bad;
    static const enum fault faults[] = {ALLOCATION, WRITE};
    import(p, NO_FAULT, 0, &good);
    int64_t launches = number_in(p->db, "SELECT count(*) FROM launch");
    assert_true(launches > 0 && good.counts[WRITE] > 10);
    for (size_t i = 0; i < 2; i++) {
        enum fault fault = faults[i];
        long step = step_of(good.counts[fault]);
        int failures = 0;
        for (long nth = 1; nth <= good.counts[fault]; nth += step) {
            remove_history(p);
            import(p, fault, nth, &bad);
            assert_clear("import", fault, nth, &bad);
            failures += bad.code != 0;
            if (bad.code != 0)
                import(p, NO_FAULT, 0, &bad);
            if (bad.code != 0)
                fail_msg("after fault %d at %ld: %s", fault, nth, bad.err);
            assert_int_equal(number_in(p->db, "SELECT count(*) FROM run"), 1);
            assert_int_equal(number_in(p->db, "SELECT count(*) FROM launch"), launches);
            assert_whole(p->db);
        }
        assert_true(failures > 0);
    }
}

/* ---- a daemon with a program ---- */

/* Writes settings without limits of age, since the launches are old. */
static void write_settings(const struct place *p, char path[128])
{
    (void)snprintf(path, 128, "%s/occtrace.yaml", p->directory);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("retention: {raw: 0, minutes: 0, hours: 0}\n", file);
    assert_int_equal(fclose(file), 0);
}

/* Runs a daemon that takes a program's launches, then stops it. *ret_taken: the number of launches that the
 * daemon confirmed; 0: it ended or refused the program. */
static void record(struct place *p, enum fault fault, long nth, struct outcome *o, uint64_t *ret_taken)
{
    char answer[OCC_CONTROL_BYTES], settings[128];
    const char *const arguments[] = {OCC_DAEMON, "-d",       p->db,    "--socket",
                                     p->socket,  "--config", settings, NULL};
    struct occ_ring_producer ring;
    int fd = -1, status = 0;
    write_settings(p, settings);
    pid_t daemon = begin(p, arguments, fault, nth);
    siginfo_t ended = {0};
    *ret_taken = 0;
    while (occ_control_connect(p->socket, &fd, NULL) != 0 &&
           waitid(P_PID, (id_t)daemon, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0)
        pause_ms(1);
    if (fd >= 0) {
        pid_t program = fork();
        assert_true(program >= 0);
        if (program == 0) {
            make_ring(&ring, 20);
            send_hello(fd, &ring);
            _exit(occ_control_request(fd, "ping", PATIENCE_S * 1000, answer, sizeof answer, NULL) == 0 ? 0
                                                                                                       : 1);
        }
        assert_int_equal(waitpid(program, &status, 0), program);
        int asking = -1;
        if (status == 0 && occ_control_connect(p->socket, &asking, NULL) == 0 &&
            occ_control_request(asking, "flush " SESSION, PATIENCE_S * 1000, answer, sizeof answer, NULL) ==
                0)
            assert_int_equal(occ_parse_u64(answer, 0, UINT64_MAX, ret_taken, NULL), 0);
        (void)close(asking);
        (void)close(fd);
    }
    (void)kill(daemon, SIGTERM);
    end(p, daemon, o);
}

static void a_daemon_keeps_what_it_says(void **state)
{
    struct place *p = *state;
    static struct outcome good, bad;
    static const enum fault faults[] = {ALLOCATION, WRITE};
    uint64_t kept = 0, taken = 0;
    record(p, NO_FAULT, 0, &good, &kept);
    assert_int_equal(kept, 20);
    record(p, NO_FAULT, 0, &good, &kept); /* from here on a history exists, as usual */
    assert_int_equal(kept, 40);
    const long counts[] = {0, good.counts[ALLOCATION], good.counts[WRITE]};
    for (size_t i = 0; i < 2; i++) {
        enum fault fault = faults[i];
        int whole = 0, failures = 0;
        for (long nth = 1; nth <= counts[fault]; nth += step_of(counts[fault])) {
            uint64_t before = kept;
            record(p, fault, nth, &bad, &taken);
            assert_clear("occtraced", fault, nth, &bad);
            whole += taken == before + 20;
            failures += bad.code != 0;
            record(p, NO_FAULT, 0, &good, &kept); /* the next daemon */
            int64_t found = number_in(p->db, "SELECT count(*) FROM launch");
            if (good.code != 0 || found != (int64_t)kept || kept % 20 != 0 || kept < before + 20 ||
                kept < taken + 20)
                fail_msg("fault %d at %ld: %lld launches, of %llu, %llu and %llu: %s", fault, nth,
                         (long long)found, (unsigned long long)before, (unsigned long long)taken,
                         (unsigned long long)kept, good.err);
            assert_whole(p->db);
        }
        assert_true(whole > 0 && failures > 0);
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    is_all = argc > 1 && strcmp(argv[1], "all") == 0;
    const struct CMUnitTest tests[] = {T(questions_are_answered_or_fail), T(imports_are_whole_or_fail),
                                       T(a_daemon_keeps_what_it_says)};
    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
