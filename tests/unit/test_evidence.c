/* Why a process on a GPU is not recorded, by a /proc that the test makes; and GPU time by reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/coverage/table.h"

#define PID     4711
#define SECOND  INT64_C(1000000000)
#define SOCKET  "/run/occtrace/occtraced.sock"
#define GUEST   "CUDA_INJECTION64_PATH=/usr/lib/occtrace/libocctrace.so"
#define LINE    "7f0000000000-7f0000001000 r-xp 00000000 08:01 42 "
#define DRIVER  LINE "/usr/lib/libcuda.so.580.1\n"
#define GLIBC   LINE "/usr/lib/libc.so.6\n"
#define OURS    LINE "/usr/lib/occtrace/libocctrace.so\n"
#define CUPTI   LINE "/usr/local/cuda/lib64/libcupti.so.13\n"
#define START_S 100

static char root[64];

static int setup(void **state)
{
    char path[128];
    (void)state;
    (void)snprintf(root, sizeof root, "/tmp/occtrace-evidence-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    (void)snprintf(path, sizeof path, "%s/proc", root);
    if (mkdir(path, 0755) != 0)
        return -1;
    (void)snprintf(path, sizeof path, "%s/proc/%d", root, PID);
    return mkdir(path, 0755);
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static void put(const char *name, const void *bytes, size_t n)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/proc/%d/%s", root, PID, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

static const char *users = ""; /* the process's uid_map */

static void put_process(const char *environment, const char *maps, bool is_static)
{
    char stat[256], variables[1024];
    const Elf64_auxv_t vector[] = {{AT_PAGESZ, {4096}}, {AT_BASE, {is_static ? 0 : 0x7f00}}, {AT_NULL, {0}}};
    size_t n = strlen(environment);
    (void)snprintf(stat, sizeof stat, "%d (a) b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %ld 0 0\n", PID,
                   START_S * sysconf(_SC_CLK_TCK));
    for (size_t i = 0; i <= n; i++) /* blanks stand for the ends of variables */
        variables[i] = environment[i] == ' ' ? '\0' : environment[i];
    put_text("stat", stat);
    put_text("status", "Name:\ta\nUid:\t1000\t1000\t1000\t1000\n");
    put_text("comm", "py\033[2Jthon\n");
    put("environ", variables, n + 1);
    put("auxv", vector, sizeof vector);
    put_text("maps", maps);
    put_text("uid_map", users);
}

static const struct {
    const char *what, *environment, *maps;
    bool is_static, is_reporting, is_quiet;
    int64_t daemon_start_s;
    enum occ_coverage_reason reason;
} cases[] = {
    {"reports", "A=b", DRIVER GLIBC, false, true, false, 1, OCC_COVERAGE_RECORDED},
    {"nothing is set", "A=b", DRIVER GLIBC, false, false, false, 1, OCC_COVERAGE_ENVIRONMENT},
    {"began before the daemon", "A=b", DRIVER GLIBC, false, false, false, 200, OCC_COVERAGE_STARTED_BEFORE},
    {"an empty variable", "CUDA_INJECTION64_PATH=", DRIVER GLIBC, false, false, false, 1,
     OCC_COVERAGE_ENVIRONMENT},
    {"a name that only begins so", "CUDA_INJECTION64_PATHS=/x.so", DRIVER GLIBC, false, false, false, 1,
     OCC_COVERAGE_ENVIRONMENT},
    {"opted out", GUEST " OCCTRACE_DISABLE=1", DRIVER GLIBC OURS, false, false, false, 1,
     OCC_COVERAGE_OPTED_OUT},
    {"not opted out", GUEST " OCCTRACE_DISABLE=0", DRIVER GLIBC, false, false, false, 1,
     OCC_COVERAGE_NOT_LOADED},
    {"another profiler", "CUDA_INJECTION64_PATH=/opt/nsys/libToolsInjection64.so", DRIVER GLIBC, false, false,
     false, 1, OCC_COVERAGE_OTHER_PROFILER},
    {"static", "A=b", DRIVER, true, false, false, 1, OCC_COVERAGE_STATIC},
    {"musl", GUEST, DRIVER LINE "/lib/ld-musl-x86_64.so.1\n", false, false, false, 1, OCC_COVERAGE_MUSL},
    {"Debian's musl", "A=b", DRIVER LINE "/usr/lib/x86_64-linux-musl/libc.so\n", false, false, false, 1,
     OCC_COVERAGE_MUSL},
    {"glibc 2.12", GUEST, DRIVER LINE "/lib64/libc-2.12.so\n", false, false, false, 1,
     OCC_COVERAGE_OLD_GLIBC},
    {"glibc 2.17", GUEST, DRIVER LINE "/lib64/libc-2.17.so\n", false, false, false, 1,
     OCC_COVERAGE_NOT_LOADED},
    {"preloaded stub without a library", "LD_PRELOAD=/x.so:/usr/lib/libocctrace-preload.so", DRIVER GLIBC,
     false, false, false, 1, OCC_COVERAGE_NOT_LOADED},
    {"no libcupti", GUEST, DRIVER GLIBC OURS, false, true, true, 1, OCC_COVERAGE_NO_LIBCUPTI},
    {"records nothing beside libcupti", GUEST, DRIVER GLIBC OURS CUPTI, false, true, true, 1,
     OCC_COVERAGE_NOT_RECORDING},
    {"loaded, not reporting", GUEST, DRIVER GLIBC OURS CUPTI, false, false, false, 1,
     OCC_COVERAGE_NOT_REPORTING},
    {"this daemon's socket", GUEST " OCCTRACE_SOCKET=" SOCKET, DRIVER GLIBC OURS CUPTI, false, false, false,
     1, OCC_COVERAGE_NOT_RECORDING},
    {"another daemon's socket", GUEST " OCCTRACE_SOCKET=/tmp/s", DRIVER GLIBC OURS CUPTI, false, false, false,
     1, OCC_COVERAGE_OTHER_DAEMON},
    {"the library without its variable", "A=b", DRIVER GLIBC OURS, false, false, false, 1,
     OCC_COVERAGE_NOT_REPORTING},
    {"a process without the driver", "A=b", GLIBC, false, false, false, 1, OCC_COVERAGE_UNKNOWN},
    {"no mappings", "A=b", "", false, false, false, 1, OCC_COVERAGE_UNKNOWN},
};

static void each_reason_is_found(void **state)
{
    (void)state;
    bool is_seen[OCC_COVERAGE_REASON_COUNT] = {false};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct occ_evidence e;
        const struct occ_evidence_view view = {.daemon_start_boot_ns = cases[i].daemon_start_s * SECOND,
                                               .socket = SOCKET,
                                               .is_reporting = cases[i].is_reporting,
                                               .is_quiet = cases[i].is_quiet};
        put_process(cases[i].environment, cases[i].maps, cases[i].is_static);
        occ_evidence_read(root, PID, &e);
        assert_true(e.exists);
        assert_int_equal(e.uid, 1000);
        assert_int_equal(e.start_boot_ns, START_S * SECOND);
        assert_string_equal(e.name, "py?[2Jthon");
        enum occ_coverage_reason reason = occ_evidence_judge(&e, &view);
        is_seen[reason] = true;
        if (reason != cases[i].reason)
            fail_msg("%s: reason %d, not %d", cases[i].what, (int)reason, (int)cases[i].reason);
    }
    for (size_t i = 0; i < OCC_COVERAGE_REASON_COUNT; i++)
        assert_true(is_seen[i] || i == OCC_COVERAGE_ROOTLESS); /* the next test */
}

static enum occ_coverage_reason judge(struct occ_evidence *e)
{
    const struct occ_evidence_view view = {.socket = SOCKET};
    occ_evidence_read(root, PID, e);
    return occ_evidence_judge(e, &view);
}

/* A process in a user namespace reports by its own means only if the daemon's user exists there. */
static void a_rootless_container_needs_a_path(void **state)
{
    static const char with_path[] = GUEST " OCCTRACE_SOCKET=" SOCKET;
    char without[64], with[96], adjacent[64];
    struct occ_evidence e;
    unsigned int uid = geteuid();
    (void)state;
    (void)snprintf(without, sizeof without, "%10u %10u %10u\n", 0, uid + 1, 1);
    (void)snprintf(adjacent, sizeof adjacent, "0 %u 5\n7 %u 5\n", uid + 1, uid > 5 ? uid - 5 : uid + 9);
    (void)snprintf(with, sizeof with, "%s%10u %10u %10u\n", without, 1, uid, 65536);
    const struct {
        const char *users, *environment;
        enum occ_coverage_reason reason;
    } rows[] = {{without, GUEST, OCC_COVERAGE_ROOTLESS},
                {adjacent, GUEST, OCC_COVERAGE_ROOTLESS},
                {with, GUEST, OCC_COVERAGE_NOT_REPORTING},
                {"         0          0 4294967295\n", GUEST, OCC_COVERAGE_NOT_REPORTING},
                {without, with_path, OCC_COVERAGE_NOT_RECORDING},
                {without, GUEST " OCCTRACE_SOCKET=/tmp/s", OCC_COVERAGE_OTHER_DAEMON},
                {without, GUEST " OCCTRACE_DISABLE=1", OCC_COVERAGE_OPTED_OUT},
                {"", GUEST, OCC_COVERAGE_NOT_REPORTING},
                {"x y z\n", GUEST, OCC_COVERAGE_NOT_REPORTING},
                {"0 99999999999999999999 1\n", GUEST, OCC_COVERAGE_ROOTLESS}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        users = rows[i].users;
        put_process(rows[i].environment, DRIVER GLIBC OURS CUPTI, false);
        assert_int_equal(judge(&e), rows[i].reason);
    }
    users = without;
    put_process(GUEST, DRIVER GLIBC, false); /* the library is missing first */
    assert_int_equal(judge(&e), OCC_COVERAGE_NOT_LOADED);
    users = "";
}

/* A process with an unreadable file has an unknown reason. */
static void unreadable_is_unknown(void **state)
{
    static const char *const files[] = {"environ", "auxv", "maps", "stat", "status"};
    char path[128];
    struct occ_evidence e;
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        put_process(GUEST, DRIVER GLIBC, false);
        assert_int_equal(judge(&e), OCC_COVERAGE_NOT_LOADED);
        (void)snprintf(path, sizeof path, "%s/proc/%d/%s", root, PID, files[i]);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(judge(&e), OCC_COVERAGE_UNKNOWN);
    }
}

static void huge_files_are_unknown(void **state)
{
    struct occ_evidence e;
    size_t n = (size_t)8 << 20;
    char *bytes = malloc(n);
    (void)state;
    assert_non_null(bytes);
    memset(bytes, 'A', n);
    put_process(GUEST, DRIVER GLIBC, false);
    put("environ", bytes, n);
    assert_int_equal(judge(&e), OCC_COVERAGE_UNKNOWN);
    put_process(GUEST, DRIVER GLIBC, false);
    put("comm", bytes, n);
    assert_int_equal(judge(&e), OCC_COVERAGE_NOT_LOADED);
    assert_string_equal(e.name, "");
    put_process(GUEST, DRIVER GLIBC, false);
    for (size_t i = 0; i < n; i++)
        bytes[i] = i % 16 == 15 ? '\n' : '/';
    put("maps", bytes, n);
    assert_int_equal(judge(&e), OCC_COVERAGE_UNKNOWN);
    free(bytes);
}

/* ---- GPU time ---- */

static void add(struct occ_coverage_table *t, const char *gpu, int32_t pid, int64_t start_ns,
                enum occ_coverage_reason reason)
{
    struct occ_coverage_row *row = &t->rows[t->n++];
    *row = (struct occ_coverage_row){.pid = pid, .start_boot_ns = start_ns, .reason = reason};
    (void)snprintf(row->gpu, sizeof row->gpu, "%s", gpu);
}

static void time_is_divided_between_holders(void **state)
{
    struct occ_coverage_table *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
    (void)state;
    assert_true(a && b);
    add(a, "GPU-1", 1, 5, OCC_COVERAGE_RECORDED);
    occ_coverage_table_advance(a, b, 100 * SECOND); /* the first scan has no interval */
    assert_true(a->held_s[OCC_COVERAGE_RECORDED] == 0);
    add(b, "GPU-1", 1, 5, OCC_COVERAGE_RECORDED);
    add(b, "GPU-1", 2, 5, OCC_COVERAGE_MUSL);
    add(b, "GPU-2", 1, 5, OCC_COVERAGE_RECORDED);
    occ_coverage_table_advance(b, a, 110 * SECOND);
    assert_true(b->rows[0].held_s == 5 && b->rows[1].held_s == 5 && b->rows[2].held_s == 10);
    assert_true(b->held_s[OCC_COVERAGE_RECORDED] == 15 && b->held_s[OCC_COVERAGE_MUSL] == 5);
    a->n = 0; /* a reused pid, and a process with a changed reason, begin anew */
    add(a, "GPU-1", 1, 6, OCC_COVERAGE_RECORDED);
    add(a, "GPU-2", 1, 5, OCC_COVERAGE_ENVIRONMENT);
    occ_coverage_table_advance(a, b, 120 * SECOND);
    assert_true(a->rows[0].held_s == 10 && a->rows[1].held_s == 10);
    assert_true(a->held_s[OCC_COVERAGE_RECORDED] == 25 && a->held_s[OCC_COVERAGE_ENVIRONMENT] == 10);
    b->n = 0; /* no request for an hour */
    add(b, "GPU-1", 1, 6, OCC_COVERAGE_RECORDED);
    occ_coverage_table_advance(b, a, 3720 * SECOND);
    assert_true(b->rows[0].held_s == 10 && b->held_s[OCC_COVERAGE_RECORDED] == 25);
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_reason_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(a_rootless_container_needs_a_path, setup, teardown),
        cmocka_unit_test_setup_teardown(unreadable_is_unknown, setup, teardown),
        cmocka_unit_test_setup_teardown(huge_files_are_unknown, setup, teardown),
        cmocka_unit_test(time_is_divided_between_holders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
