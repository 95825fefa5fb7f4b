/*
 * The output of ncu without --csv: versions with and without names above the columns, copies that lost their
 * alignment, the number of SMs, numbers of other locales, and other text.
 */
#include "import/import.h"

#include <dirent.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define N_OF(array) (sizeof(array) / sizeof *(array))

struct world {
    char directory[64], db[96], file[512];
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    if (!w)
        return -1;
    (void)snprintf(w->directory, sizeof w->directory, "/tmp/test_import_ncu_XXXXXX");
    if (!mkdtemp(w->directory))
        return -1;
    (void)snprintf(w->db, sizeof w->db, "%s/history.db", w->directory);
    (void)snprintf(w->file, sizeof w->file, "%s/printed.txt", w->directory);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    DIR *directory = opendir(w->directory);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        (void)unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        (void)closedir(directory);
    (void)rmdir(w->directory);
    free(w);
    return 0;
}

static void write_text(const struct world *w, const char *text)
{
    FILE *file = fopen(w->file, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int import(const struct world *w, const char *gpu, struct occ_import_result *result,
                  struct occ_error *err)
{
    static const struct occ_store_options writing = {.mode = OCC_STORE_WRITE};
    const struct occ_import_options options = {.gpu = gpu, .again = true};
    struct occ_store *store = NULL;
    assert_int_equal(occ_store_open(w->db, &writing, &store, err), 0);
    int status = occ_import_file(store, w->file, &options, result, err);
    occ_store_close(store);
    return status;
}

static struct occ_import_result import_well(const struct world *w, const char *gpu)
{
    struct occ_import_result result;
    struct occ_error err = OCC_ERROR_INIT;
    if (import(w, gpu, &result, &err) != 0)
        fail_msg("%s", err.message);
    assert_string_equal(result.source, "ncu");
    return result;
}

static struct occ_import_result import_text(const struct world *w, const char *text, const char *gpu)
{
    (void)unlink(w->db);
    write_text(w, text);
    return import_well(w, gpu);
}

static void must_fail(const struct world *w, const char *text, const char *gpu, const char *says)
{
    struct occ_import_result result;
    struct occ_error err = OCC_ERROR_INIT;
    write_text(w, text);
    if (import(w, gpu, &result, &err) == 0)
        fail_msg("'%s' was expected; it was imported", says);
    if (!strstr(err.message, says) || !strstr(err.message, w->file))
        fail_msg("'%s' does not have '%s' and the file", err.message, says);
}

/* Returns the text that a query of the history returns; valid until the next call. */
static const char *ask(const struct world *w, const char *sql)
{
    static const struct occ_store_options reading = {.mode = OCC_STORE_READ};
    static char text[1024];
    struct occ_store *store = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(occ_store_open(w->db, &reading, &store, NULL), 0);
    if (sqlite3_prepare_v2(occ_store_sqlite(store), sql, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(occ_store_sqlite(store)));
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    const char *got = (const char *)sqlite3_column_text(stmt, 0);
    (void)snprintf(text, sizeof text, "%s", got ? got : "NULL");
    (void)sqlite3_finalize(stmt);
    occ_store_close(store);
    return text;
}

#define SMS     "SELECT group_concat(sm_count) FROM (SELECT sm_count FROM stored_device ORDER BY device_id)"
#define MISSING "SELECT missing_fields FROM stored_run"

/* ---- versions ---- */

static void version_2024(void **state)
{
    struct world *w = *state;
    (void)snprintf(w->file, sizeof w->file, "%s", OCC_TEST_DATA "/import/ncu-printed.txt");
    struct occ_import_result r = import_well(w, NULL);
    assert_int_equal(r.launches, 2);
    assert_int_equal(r.kernels, 2);
    assert_int_equal(r.devices, 1);
    assert_true(r.time_base_unknown);
    assert_string_equal(
        ask(w, "SELECT group_concat(mangled, '; ') FROM stored_kernel"),
        "void smooth<(int)4, float>(float *, const float *, int); gather(float *, const int *, int)");
    assert_string_equal(ask(w, "SELECT grid_x || ' ' || grid_y || ' ' || block_x || ' ' || block_y || ' ' || "
                               "registers_per_thread FROM launch WHERE correlation_id = 1"),
                        "1280 2 64 4 40");
    assert_string_equal(ask(w, "SELECT static_shared_bytes || ' ' || dynamic_shared_bytes || ' ' || "
                               "shared_config_bytes FROM launch WHERE correlation_id = 1"),
                        "8192 100 65536");
    assert_string_equal(ask(w, "SELECT duration_ns || ' ' || achieved || ' ' || round(elapsed, 3) || ' ' || "
                               "theoretical FROM launch WHERE correlation_id = 1"),
                        "95040 0.6625 0.596 0.75");
    assert_string_equal(ask(w,
                            "SELECT group_concat(value) FROM (SELECT value FROM ncu_metric WHERE metric LIKE "
                            "'gpu__compute_memory%' OR metric LIKE 'sm__throughput%' ORDER BY metric)"),
                        "61.25,12.75");
    assert_string_equal(ask(w, "SELECT cc || ' ' || sm_count FROM stored_device"), "80 108");
    assert_string_equal(
        ask(w, "SELECT stream_id || ' ' || (achieved IS NULL) || ' ' || shared_config_bytes FROM launch "
               "WHERE correlation_id = 2"),
        "9 1 8192");
    assert_string_equal(ask(w, MISSING), "start times (its launches follow one another), durations of some "
                                         "launches (0), local memory, launch type, "
                                         "the number of SMs (computed from the waves), exact sizes of shared "
                                         "memory (the roundest number that prints "
                                         "like that)");
}

/* The headings have no grid, device or compute capability, so a GPU must be named. */
static void version_2022(void **state)
{
    struct world *w = *state;
    struct occ_import_result r;
    struct occ_error err = OCC_ERROR_INIT;
    (void)snprintf(w->file, sizeof w->file, "%s", OCC_TEST_DATA "/import/ncu-printed-2022.txt");
    assert_int_equal(import(w, NULL, &r, &err), OCC_E_INVALID);
    assert_non_null(strstr(err.message, "ncu printed no compute capability: name the GPU with --gpu NAME"));
    r = import_well(w, "v100");
    assert_int_equal(r.launches, 1);
    assert_string_equal(ask(w, "SELECT mangled FROM stored_kernel"), "smooth(float *,int)");
    assert_string_equal(
        ask(w, "SELECT grid_x || ' ' || block_x || ' ' || duration_ns || ' ' || achieved || ' ' || "
               "theoretical || ' ' || round(elapsed, 4) FROM launch"),
        "640 256 1250000 0.625 1.0 0.5625");
    assert_string_equal(ask(w,
                            "SELECT group_concat(value) FROM (SELECT value FROM ncu_metric WHERE metric LIKE "
                            "'gpu__%pct%' OR metric LIKE 'sm__throughput%' ORDER BY metric)"),
                        "77.25,36.5,2.5");
    assert_string_equal(ask(w, SMS), "80");
}

/* ---- a result in pieces ---- */

#define LAUNCHED "(1080, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 8.0\n"
#define LINES    "  ------------------------------- --------------- ------------\n"
#define TABLE(rows)                                                                                          \
    "  Section: Occupancy\n" LINES                                                                           \
    "  Metric Name                         Metric Unit Metric Value\n" LINES rows LINES "\n"
#define REGISTERS          "  Registers Per Thread            register/thread           32\n"
#define SMS_108            "  # SMs                                        SM          108\n"
#define RESULT(name, rows) "  " name " " LAUNCHED TABLE(REGISTERS SMS_108 rows)

/* Any text can precede a result, and other output can stand between results. */
static void beginnings(void **state)
{
    struct world *w = *state;
    static const char *const texts[] = {
        RESULT("k(int *)", ""),
        "[77] a.out@127.0.0.1\n" RESULT("k(int *)", ""),
        "$ ncu ./a.out\nhello\n\n" RESULT("k(int *)", ""),
        "==WARNING== Backing up\n" RESULT("k(int *)", ""),
        "# Notes\n```\n" RESULT("k(int *)", "") "```\nMore notes, Context\n",
    };
    for (size_t i = 0; i < N_OF(texts); i++) {
        struct occ_import_result r = import_text(w, texts[i], NULL);
        assert_int_equal(r.launches, 1);
        assert_string_equal(
            ask(w, "SELECT mangled || ' ' || grid_x FROM launch JOIN stored_kernel USING(kernel_id)"),
            "k(int *) 1080");
    }
    static char long_line[2 << 20];
    memset(long_line, 'x', sizeof long_line - 1);
    write_text(w, long_line);
    FILE *file = fopen(w->file, "ab");
    assert_non_null(file);
    assert_true(fputs("\n" RESULT("k(int *)", ""), file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(import_well(w, NULL).launches, 1);
}

/* Copied reports lose indentation, alignment and the lines below tables, and gain remarks and Windows line
 * ends. */
static void copies(void **state)
{
    struct world *w = *state;
    static const char text[] = "k(int *) (1080, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 8.0\r\n"
                               "Section: Launch Statistics\r\n"
                               "---- ---- ----\r\n"
                               "Metric Name Metric Unit Metric Value\r\n"
                               "---- ---- ----\r\n"
                               "Registers Per Thread register/thread 32 # few of them\r\n"
                               "# SMs\tSM\t108\r\n"
                               "Static Shared Memory Per Block Kbyte/block 4.10   <- 1 table\r\n"
                               "\r\n"
                               "INF Achieved Occupancy 50 is no row\r\n"
                               "Section: Occupancy\r\n"
                               "---- ---- ----\r\n"
                               "Achieved Occupancy % 45.50\r\n";
    struct occ_import_result r = import_text(w, text, NULL);
    assert_int_equal(r.launches, 1);
    assert_string_equal(
        ask(w, "SELECT registers_per_thread || ' ' || static_shared_bytes || ' ' || achieved FROM launch"),
        "32 4096 0.455");
}

/* PowerShell on Windows writes UTF-16; a kernel's name can have any character. */
static void utf16(void **state)
{
    struct world *w = *state;
    static const char text[] = RESULT("k(int *)", "  Achieved Occupancy % 25\n");
    FILE *file = fopen(w->file, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite("\xff\xfe\x3d\xd8\x00\xde\xe9\x00", 1, 8, file), 8); /* U+1F600, U+00E9 */
    for (size_t i = 0; text[i]; i++)
        assert_true(fputc(text[i], file) != EOF && fputc(0, file) != EOF);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(import_well(w, NULL).launches, 1);
    assert_string_equal(
        ask(w, "SELECT mangled || ' ' || achieved FROM launch JOIN stored_kernel USING(kernel_id)"),
        "\360\237\230\200\303\251  k(int *) 0.25");
    assert_int_equal(truncate(w->file, 301), 0);
    assert_true(import(w, NULL, &(struct occ_import_result){0}, NULL) != 0);
}

/* The page "raw" has one metric per row, in the units of --print-units base. */
static void raw_page(void **state)
{
    struct world *w = *state;
    static const char text[] =
        "  k(int *) " LAUNCHED
        "  ---------------------------------------------- ---------- ------------------\n"
        "  Metric Name                                    Metric Unit      Metric Value\n"
        "  ---------------------------------------------- ---------- ------------------\n"
        "  device__attribute_display_name                               NVIDIA A100 80GB\n"
        "  device__attribute_multiprocessor_count                                    108\n"
        "  gpu__time_duration.sum                             nsecond             12,345\n"
        "  launch__registers_per_thread               register/thread                 48\n"
        "  launch__shared_mem_per_block_static             byte/block              4,224\n"
        "  sm__warps_active.avg.pct_of_peak_sustained_active        %              37.50\n"
        "  unknown__metric_that_is_not_a_number                                   1,2,3\n"
        "  ---------------------------------------------- ---------- ------------------\n";
    (void)import_text(w, text, NULL);
    assert_string_equal(
        ask(w, "SELECT registers_per_thread || ' ' || static_shared_bytes || ' ' || achieved || ' ' || "
               "duration_ns || ' ' || device FROM launch"),
        "48 4224 0.375 12345 NVIDIA A100 80GB");
}

/* Ranges and graphs have no launch; a heading ends the result before it. */
static void ranges(void **state)
{
    struct world *w = *state;
    struct occ_import_result r = import_text(
        w,
        RESULT("k(int *)", "") "  range, Context 1, Device 0, CC 8.0\n" TABLE("  Achieved Occupancy   % 99\n")
            RESULT("m(int *)", "  Achieved Occupancy % 25\n"),
        NULL);
    assert_int_equal(r.launches, 2);
    assert_int_equal(r.skipped[OCC_IMPORT_SKIP_NO_CONFIGURATION], 1);
    assert_string_equal(
        ask(w, "SELECT group_concat(ifnull(achieved, '-')) FROM (SELECT achieved FROM launch ORDER BY "
               "correlation_id)"),
        "-,0.25");
}

/* ---- the number of SMs ---- */

#define WAVES(waves, warps)                                                                                  \
    TABLE(REGISTERS "  Waves Per SM       " waves "\n  Theoretical Active Warps per SM   warp   " warps "\n")
#define ON(device, grid)                                                                                     \
    "  k(int *) (" grid ", 1, 1)x(256, 1, 1), Context 1, Stream 7, Device " device ", CC 8.0\n"

static void sms(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *text, *sms;
    } cases[] = {
        {ON("0", "864") WAVES("1", "64"), "108"},
        {ON("0", "5000") WAVES("5.79", "64"), "108"},
        {ON("0", "5000") WAVES("5.79", "64") ON("1", "5000") WAVES("15.63", "64"), "108,40"},
        /* the waves of a small grid fit many GPUs; with a large grid, only one GPU */
        {ON("0", "17") WAVES("0.02", "64") ON("0", "5000") WAVES("5.79", "64"), "108"},
        {ON("0", "17") WAVES("0.02", "64") ON("0", "17") TABLE(REGISTERS SMS_108), "108"},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        (void)import_text(w, cases[i].text, NULL);
        assert_string_equal(ask(w, SMS), cases[i].sms);
    }
    must_fail(w, ON("0", "17") WAVES("0.02", "64"), NULL,
              "nor enough to compute it: name the GPU with --gpu NAME");
    /* contradictory waves give no number of SMs; clusters do not fill SMs one by one */
    must_fail(w, ON("0", "864") WAVES("1", "64") ON("0", "864") WAVES("2", "64"), NULL, "--gpu NAME");
    must_fail(w,
              ON("0", "864")
                  TABLE(REGISTERS "  Waves Per SM 1\n  Max Active Clusters cluster 50\n  Theoretical "
                                  "Active Warps per SM warp 64\n"),
              NULL, "--gpu NAME");
    assert_int_equal(
        import_text(w, ON("0", "17") WAVES("0.02", "64") ON("1", "9") WAVES("0.01", "64"), "a100").devices,
        2);
    assert_string_equal(ask(w, SMS), "108,108");
    assert_int_equal(import_text(w, ON("0", "17") WAVES("0.02", "64"), "a100").launches, 1);
    assert_string_equal(ask(w, SMS), "108");
    must_fail(w, ON("0", "864") WAVES("1", "64"), "h100", "capability 8.0, and --gpu h100 has 9.0");
    must_fail(w, ON("0", "320") WAVES("1", "64"), "a100", "40 SMs by its waves, and --gpu a100 has 108");
}

/* ---- numbers ---- */

static void numbers(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *printed;
        const char *ns; /* NULL: refused */
    } cases[] = {
        {"1,234.50", "1234"},          {"1234.50", "1234"}, {"1,234,567", "1234567"}, {"12", "12"},
        {"1.5e+03", "1500"},           {"(!) n/a", "0"},    {"875,84", NULL},         {"13.181,50", NULL},
        {"1.234.567", NULL},           {"13 181", NULL},    {"13'181", NULL},         {"13\302\240181", NULL},
        {"13\342\200\257181,5", NULL}, {"1234,567", NULL},  {"1,23,456", NULL},       {"1,", NULL},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        char text[2048];
        (void)snprintf(text, sizeof text, RESULT("k(int *)", "  Duration     ns   %s\n"), cases[i].printed);
        if (!cases[i].ns) {
            must_fail(w, text, NULL, "is a number in another locale; print the report with LC_ALL=C");
            continue;
        }
        (void)import_text(w, text, NULL);
        assert_string_equal(ask(w, "SELECT duration_ns FROM launch"), cases[i].ns);
    }
}

static void units(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *printed, *ns;
    } cases[] = {{"ns 5", "5"},           {"nsecond 5", "5"},        {"us 5.5", "5500"},
                 {"usecond 5.5", "5500"}, {"ms 5.5", "5500000"},     {"msecond 5", "5000000"},
                 {"s 1.5", "1500000000"}, {"second 2", "2000000000"}};
    for (size_t i = 0; i < N_OF(cases); i++) {
        char text[2048];
        (void)snprintf(text, sizeof text, RESULT("k(int *)", "  Duration     %s\n"), cases[i].printed);
        (void)import_text(w, text, NULL);
        assert_string_equal(ask(w, "SELECT duration_ns FROM launch"), cases[i].ns);
    }
}

/* ---- lines of ranks ---- */

#define LAUNCHES                                                                                             \
    "SELECT group_concat(mangled || ' ' || grid_x || ' ' || block_x || ' ' || registers_per_thread || ' ' "  \
    "|| duration_ns || ' ' || ifnull(achieved, '-'), '; ') FROM (SELECT * FROM launch JOIN stored_kernel "   \
    "USING(kernel_id) ORDER BY correlation_id)"
#define RANK "SELECT rank FROM stored_run"

/* Writes each line of the file once behind each prefix ("": without a prefix). */
static void write_prefixed(const struct world *w, const char *path, const char *const prefixes[2])
{
    static char line[1 << 16];
    FILE *in = fopen(path, "rb"), *out = fopen(w->file, "wb");
    assert_non_null(in);
    assert_non_null(out);
    while (fgets(line, sizeof line, in))
        for (size_t i = 0; i < 2 && prefixes[i]; i++)
            assert_true(fprintf(out, "%s%s", prefixes[i], line) > 0);
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

/* Files of ncu's output, and the same lines behind the prefixes of launchers. */
static void ranks(void **state)
{
    struct world *w = *state;
    static const char *const files[][2] = {{"ncu-printed.txt", "a100"},
                                           {"ncu-printed-2022.txt", "v100"},
                                           {"ncu-details.csv", "a100"},
                                           {"ncu-raw.csv", "a100"}};
    static const struct {
        const char *prefixes[2], *rank;
    } cases[] = {
        {{"\xef\xbb\xbf"}, "NULL"},
        {{"[rank0]: "}, "0"},
        {{"[rank12] "}, "12"},
        {{"[default3]:"}, "NULL"}, /* a rank within a node */
        {{"[1,4]<stdout>:"}, "4"},
        {{"[prterun-host-88@1,5]<stdout>: "}, "5"},
        {{" 7: "}, "7"},
        {{"[9] "}, "9"},
        {{"[1,0]<stdout>:", "[1,1]<stdout>:"}, "NULL"},
        {{"0: ", "1: "}, "NULL"},
    };
    for (size_t i = 0; i < N_OF(files); i++) {
        char path[256], alone[1024], twice[2100];
        (void)snprintf(path, sizeof path, OCC_TEST_DATA "/import/%s", files[i][0]);
        write_prefixed(w, path, (const char *const[]){"", NULL});
        (void)import_well(w, files[i][1]);
        (void)snprintf(alone, sizeof alone, "%s", ask(w, LAUNCHES));
        (void)snprintf(twice, sizeof twice, "%s; %s", alone, alone);
        for (size_t k = 0; k < N_OF(cases); k++) {
            (void)unlink(w->db);
            write_prefixed(w, path, cases[k].prefixes);
            (void)import_well(w, files[i][1]);
            assert_string_equal(ask(w, LAUNCHES), cases[k].prefixes[1] ? twice : alone);
            assert_string_equal(ask(w, RANK), cases[k].rank);
        }
        (void)unlink(w->db);
    }
}

/* Lines of the program, and of ranks without a result, stand between a result's lines. */
static void lines_between(void **state)
{
    struct world *w = *state;
    static const char text[] =
        "0: step 1\n[rank5]: a warning\nplain\n0:   k(int *) " LAUNCHED "0:   Section: Launch Statistics\n"
        "1: step 1\n"
        "0:   ---- ---- ----\n"
        "not of any rank\n"
        "0:   Metric Name Metric Unit Metric Value\n"
        "0:   ---- ---- ----\n"
        "1:   Registers Per Thread register/thread 99\n"
        "0:   Registers Per Thread register/thread 32\n"
        "0:   # SMs SM 108\n"
        "0:   ---- ---- ----\n";
    struct occ_import_result r = import_text(w, text, NULL);
    assert_int_equal(r.launches, 1);
    assert_string_equal(ask(w, "SELECT registers_per_thread FROM launch"), "32");
    assert_string_equal(ask(w, RANK), "0");
}

static void too_many_ranks(void **state)
{
    struct world *w = *state;
    FILE *file = fopen(w->file, "wb");
    struct occ_error err = OCC_ERROR_INIT;
    assert_non_null(file);
    for (int i = 0; i < 65; i++)
        assert_true(fprintf(file, "%d:   k(int *) " LAUNCHED, i) > 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(import(w, NULL, &(struct occ_import_result){0}, &err), OCC_E_FULL);
    assert_non_null(strstr(err.message, "more than 64 ranks"));
}

/* ---- other text ---- */

static void other_text(void **state)
{
    struct world *w = *state;
    must_fail(w, "plain text\nwithout a kernel, Context 1, Stream 7\n", NULL, "byte 0: neither");
    must_fail(w, "==PROF== Connected to process 5\n", NULL, "no kernel as ncu prints it without");
    must_fail(w, "  k(int *) " LAUNCHED, NULL, "no_configuration 1");
    must_fail(w, "[77] a.out@127.0.0.1\n", NULL, "byte 0: neither");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(version_2024), TEST(version_2022), TEST(beginnings),    TEST(copies),         TEST(raw_page),
        TEST(utf16),        TEST(ranges),       TEST(sms),           TEST(numbers),        TEST(units),
        TEST(other_text),   TEST(ranks),        TEST(lines_between), TEST(too_many_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
