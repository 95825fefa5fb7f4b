/* Numbers, durations, moments, text from strangers, paths. */
#include "support/address.h"
#include "support/connection_ages.h"
#include "support/control.h"
#include "support/cut.h"
#include "support/error.h"
#include "support/map.h"
#include "support/node.h"
#include "support/paths.h"
#include "support/regexp.h"
#include "support/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

static void test_numbers(void **state)
{
    (void)state;
    uint64_t value = 7;
    assert_int_equal(occ_parse_u64("42", 0, 100, &value, NULL), 0);
    assert_int_equal(value, 42);
    static const char *const bad[] = {"",   " 1", "-1", "+1", "1x", "1 ", "0x10", "18446744073709551616",
                                      "101"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(occ_parse_u64(bad[i], 0, 100, &value, NULL), OCC_E_INVALID);
    assert_int_equal(value, 42); /* untouched on failure */
    assert_int_equal(occ_parse_u64("18446744073709551615", 0, UINT64_MAX, &value, NULL), 0);
    assert_true(value == UINT64_MAX);

    double number = 0;
    assert_int_equal(occ_parse_double("12.5", 0, 100, &number, NULL), 0);
    assert_true(number == 12.5);
    assert_int_equal(occ_parse_double("nan", 0, 100, &number, NULL), OCC_E_INVALID);
    assert_int_equal(occ_parse_double("1e999", 0, 100, &number, NULL), OCC_E_INVALID);
    assert_int_equal(occ_parse_double("101", 0, 100, &number, NULL), OCC_E_INVALID);
}

static void test_durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
    } good[] = {{"90s", 90000000000},    {"90", 90000000000},  {"1.5m", 90000000000}, {"2h", 7200000000000},
                {"3d", 259200000000000}, {"500ms", 500000000}, {"7us", 7000},         {"9ns", 9}};
    int64_t ns = 0;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(occ_parse_duration_ns(good[i].text, &ns, NULL), 0);
        assert_true(ns == good[i].ns);
    }
    static const char *const bad[] = {"",      "0",    "0.1ns",  "-1h", "h",  "1y",
                                      "1h30m", "0x5s", "1e300s", "inf", "nan"};
    struct occ_error err = OCC_ERROR_INIT;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(occ_parse_duration_ns(bad[i], &ns, &err), OCC_E_INVALID);
        assert_non_null(strstr(err.message, bad[i]));
    }
}

static void test_moments(void **state)
{
    (void)state;
    int64_t ns = 0;
    int64_t now = INT64_C(1700000000000000000);
    assert_int_equal(occ_parse_time_ns("1h", now, &ns, NULL), 0);
    assert_true(ns == now - INT64_C(3600000000000));
    assert_int_equal(occ_parse_time_ns("@1600000000", now, &ns, NULL), 0);
    assert_true(ns == INT64_C(1600000000000000000));
    (void)setenv("TZ", "UTC", 1);
    assert_int_equal(occ_parse_time_ns("2023-11-14 22:13:20", now, &ns, NULL), 0);
    assert_true(ns == now);
    assert_int_equal(occ_parse_time_ns("2023-11-14", now, &ns, NULL), 0);
    assert_true(ns == INT64_C(1699920000000000000));
    assert_int_equal(occ_parse_time_ns("yesterday", now, &ns, NULL), 0);
    assert_true(ns == INT64_C(1699833600000000000));
    assert_int_equal(occ_parse_time_ns("tomorrow", now, &ns, NULL), OCC_E_INVALID);
    assert_int_equal(occ_parse_time_ns("@-5", now, &ns, NULL), OCC_E_INVALID);
    assert_int_equal(occ_parse_time_ns("2024-02-29 12:00", now, &ns, NULL), 0);
    assert_int_equal(occ_parse_time_ns("2024-02-30 00:00", now, &ns, NULL), OCC_E_INVALID);
    assert_int_equal(occ_parse_time_ns("2023-02-29", now, &ns, NULL), OCC_E_INVALID);
    assert_int_equal(occ_parse_time_ns("2023-04-31T10:00:00", now, &ns, NULL), OCC_E_INVALID);
    /* a local time that daylight saving skips is refused; a day that would begin in the skipped hour begins
     * after it */
    (void)setenv("TZ", "EST5EDT,M3.2.0,M11.1.0", 1);
    assert_int_equal(occ_parse_time_ns("2026-03-08 02:30", now, &ns, NULL), OCC_E_INVALID);
    assert_int_equal(occ_parse_time_ns("2026-03-08 03:00", now, &ns, NULL), 0);
    assert_true(ns == INT64_C(1772953200000000000));
    (void)setenv("TZ", "EST5EDT,M3.2.0/0,M11.1.0", 1);
    assert_int_equal(occ_parse_time_ns("2026-03-08", now, &ns, NULL), 0);
    assert_true(ns == INT64_C(1772946000000000000));
    (void)setenv("TZ", "UTC", 1);
    assert_int_equal(occ_parse_time_ns("2262-04-01", now, &ns, NULL), 0); /* the last year of 2^63 ns */
    assert_int_equal(occ_parse_time_ns("2263-01-01", now, &ns, NULL), OCC_E_INVALID);
    assert_int_equal(occ_parse_time_ns("9999w", now, &ns, NULL), 0);
    assert_true(ns == 0); /* longer ago than the epoch: from the beginning */
}

/* Local times around the changes of clocks in 2024: laws change the rules of later years. Without tzdata, the
 * zones' rules apply. */
static void test_moments_that_occur_twice(void **state)
{
    (void)state;
    static const struct {
        const char *zones[2]; /* with tzdata, and without */
        const char *text;
        int64_t seconds; /* -1: refused */
    } cases[] = {
        {{"Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"}, "2024-10-27 01:59:59", 1729987199},
        {{"Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"}, "2024-10-27 02:00", -1},
        {{"Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"}, "2024-10-27 02:30", -1},
        {{"Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"}, "2024-10-27T02:59:59", -1},
        {{"Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"}, "2024-10-27 03:00", 1729994400},
        {{"Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"}, "2024-10-27", 1729980000},
        {{"Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"}, "2024-03-31 02:30", -1},
        {{"Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"}, "2024-07-01 12:00", 1719828000},
        {{"America/New_York", "EST5EDT,M3.2.0,M11.1.0"}, "2024-11-03 00:59:59", 1730609999},
        {{"America/New_York", "EST5EDT,M3.2.0,M11.1.0"}, "2024-11-03 01:00", -1},
        {{"America/New_York", "EST5EDT,M3.2.0,M11.1.0"}, "2024-11-03 01:30", -1},
        {{"America/New_York", "EST5EDT,M3.2.0,M11.1.0"}, "2024-11-03 02:00", 1730617200},
        {{"America/New_York", "EST5EDT,M3.2.0,M11.1.0"}, "2024-03-10 02:30", -1},
        {{"America/New_York", "EST5EDT,M3.2.0,M11.1.0"}, "2024-03-10 03:00", 1710054000},
        /* clocks go back by half an hour; midnight occurs twice, and the day begins with the first */
        {{"Australia/Lord_Howe", "LHST-10:30LHDT-11,M10.1.0,M4.1.0"}, "2024-04-07 01:45", -1},
        {{"Australia/Lord_Howe", "LHST-10:30LHDT-11,M10.1.0,M4.1.0"}, "2024-04-07 02:00", 1712417400},
        {{"America/Havana", "CST5CDT,M3.2.0/0,M11.1.0/1"}, "2024-11-03", 1730606400},
        {{"America/Havana", "CST5CDT,M3.2.0/0,M11.1.0/1"}, "2024-11-03 00:30", -1},
    };
    bool has_zones = access("/usr/share/zoneinfo/Europe/Berlin", R_OK) == 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = has_zones ? 0 : 1; k < 2; k++) {
            int64_t ns = 0;
            struct occ_error err = OCC_ERROR_INIT;
            (void)setenv("TZ", cases[i].zones[k], 1);
            tzset();
            int status = occ_parse_time_ns(cases[i].text, 0, &ns, &err);
            if (status != (cases[i].seconds < 0 ? OCC_E_INVALID : 0) ||
                (status == 0 && ns / 1000000000 != cases[i].seconds))
                fail_msg("%s %s: status %d, %lld", cases[i].zones[k], cases[i].text, status,
                         (long long)(ns / 1000000000));
        }
    struct occ_error err = OCC_ERROR_INIT;
    int64_t ns = 0;
    (void)setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    assert_int_equal(occ_parse_time_ns("2026-10-25 02:30", 0, &ns, &err), OCC_E_INVALID);
    assert_string_equal(err.message,
                        "'2026-10-25 02:30' occurs twice, since clocks are put back: @1792888200 "
                        "or @1792891800 names one of them");
    (void)setenv("TZ", "UTC", 1);
    tzset();
}

static void test_sizes_and_formats(void **state)
{
    (void)state;
    uint64_t bytes = 0;
    char buffer[32];
    assert_int_equal(occ_parse_bytes("64k", 1u << 20, &bytes, NULL), 0);
    assert_int_equal(bytes, 65536);
    assert_int_equal(occ_parse_bytes("2M", 1u << 20, &bytes, NULL), OCC_E_INVALID);
    assert_int_equal(occ_parse_bytes("2Q", 1u << 20, &bytes, NULL), OCC_E_INVALID);
    assert_string_equal(occ_format_digits(-0.0, "k", buffer, sizeof buffer), "0.000k");
    assert_string_equal(occ_format_digits(-0.0004, "", buffer, sizeof buffer), "0.000");
    assert_string_equal(occ_format_digits(-0.0006, "", buffer, sizeof buffer), "-0.001");
    assert_string_equal(occ_format_bytes(0, buffer, sizeof buffer), "0 B");
    assert_string_equal(occ_format_bytes(1536, buffer, sizeof buffer), "1.5 KiB");
    assert_string_equal(occ_format_duration(45, buffer, sizeof buffer), "45 ns");
    assert_string_equal(occ_format_duration(0, buffer, sizeof buffer), "0 ns");
    assert_string_equal(occ_format_duration(1234567, buffer, sizeof buffer), "1.235 ms");
    assert_string_equal(occ_format_duration(INT64_C(7200000000000), buffer, sizeof buffer), "2 h");
    assert_string_equal(occ_format_duration(INT64_C(7500000000000), buffer, sizeof buffer), "2.083 h");
    assert_string_equal(occ_format_duration(-1500000000, buffer, sizeof buffer), "-1.5 s");
    assert_string_equal(occ_format_duration(-1, buffer, sizeof buffer), "-1 ns");
    assert_string_equal(occ_format_duration(INT64_MIN, buffer, sizeof buffer), "-1.068e+05 d");
    assert_string_equal(occ_format_duration(999, buffer, sizeof buffer), "999 ns");
    assert_string_equal(occ_format_duration(1000, buffer, sizeof buffer), "1 us");
    assert_string_equal(occ_format_duration_digits(1000, buffer, sizeof buffer), "1.000 us");
    assert_string_equal(occ_format_duration_digits(-325000000, buffer, sizeof buffer), "-325.0 ms");
    assert_string_equal(occ_format_duration_digits(45, buffer, sizeof buffer), "45 ns");
    assert_string_equal(occ_format_digits(10.499, "k", buffer, sizeof buffer), "10.50k");
    assert_string_equal(occ_format_digits(9.9996, "", buffer, sizeof buffer), "10.00");
    assert_string_equal(occ_format_digits(99.996, "", buffer, sizeof buffer), "100.0");
    assert_string_equal(occ_format_digits(1234.4, "", buffer, sizeof buffer), "1234");
}

static void test_sanitise(void **state)
{
    (void)state;
    char name[] = "a\x1b[2Jb\xff"
                  "c\xc3\xa9\x7f\xc2\x85\xed\xa0\x80";
    occ_text_sanitise(name);
    assert_string_equal(name, "a?[2Jb?c\xc3\xa9?"
                              "??"
                              "???");
    char turned[] = "a\xe2\x80\xae"  /* U+202E */
                    "b\xef\xbb\xbf"  /* U+FEFF */
                    "c\xe2\x80\xa6"; /* an ellipsis is seen */
    occ_text_sanitise(turned);
    assert_string_equal(turned, "a???b???c\xe2\x80\xa6");
}

static void test_quote(void **state)
{
    static const char *const cases[][2] = {
        {"a-b/c.db", "a-b/c.db"}, {"", "''"}, {"a b", "'a b'"}, {"it's", "'it'\\''s'"}, {"f<8>", "'f<8>'"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *quoted = occ_text_quote(cases[i][0]);
        assert_string_equal(quoted, cases[i][1]);
        free(quoted);
    }
}

static void test_nearest(void **state)
{
    (void)state;
    static const char *const words[] = {"top", "show", "runs", "launches", NULL};
    assert_string_equal(occ_text_nearest("tpo", words), "top");
    assert_string_equal(occ_text_nearest("launchs", words), "launches");
    assert_string_equal(occ_text_nearest("xtop", words), "top");
    assert_null(occ_text_nearest("foo", words));
    assert_null(occ_text_nearest("frobnicate", words));
    static const char *const gpus[] = {"rtx3060", "rtx3070", "rtx3090", "t4", NULL};
    assert_string_equal(occ_text_nearest("rtx3900", gpus), "rtx3090"); /* a swap is one edit */
    static const char *const starts[] = {"k20x", "h200", "h20", NULL};
    assert_string_equal(occ_text_nearest("h20x", starts), "h200"); /* the same first letter */
}

static void test_cut_names(void **state)
{
    (void)state;
    static const struct {
        const char *cut, *name;
        bool is_cut;
    } cases[] = {{"gemm\xe2\x80\xa6tn", "gemm_64x64_tn", true},
                 {"gemm..tn", "gemm_64x64_tn", true},
                 {"gemm\xe2\x80\xa6tn", "gemmtn", true},
                 {"gemm\xe2\x80\xa6tn", "gemtn", false},
                 {"gemm\xe2\x80\xa6tn", "gemm_64x64_tn_align", false},
                 {"\xe2\x80\xa6tn", "gemm_tn", true},
                 {"gemm\xe2\x80\xa6", "gemm_tn", true},
                 {"a\xe2\x80\xa6xb\xe2\x80\xa6xc", "a_xb_xc_xb_xc", true},
                 {"a\xe2\x80\xa6xb\xe2\x80\xa6xc", "a_xc_xb", false},
                 {"xyx\xe2\x80\xa6xyx", "xyxyx", false}, /* a part stands for its own characters */
                 {"gemm", "gemm", true},
                 {"gemm", "gemm_tn", false},
                 {"\xe2\x80\xa6", "", true},
                 {"", "", true},
                 {"", "gemm", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (occ_text_is_cut_of(cases[i].cut, cases[i].name) != cases[i].is_cut)
            fail_msg("'%s' of '%s'", cases[i].cut, cases[i].name);
}

/* Patterns that let regcomp(3) or regexec(3) use unbounded memory or time are refused; ordinary patterns are
 * accepted. */
static void test_regexps(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *why; /* NULL: taken, and "gemm128" matches */
    } cases[] = {{"^gemm[0-9]+$", NULL},
                 {"(gemm|conv)[[:digit:]]{1,4}", NULL},
                 {"g(e(m+)+)+.*(x?y?)*", NULL},
                 {"(.{0,9}){0,9}", NULL},
                 {"[]{1,900}[:alpha:]+(]{4}1", NULL},
                 {"\\\\?m{2}", NULL},
                 {"(gemm", "'(gemm' is not a regular expression: Unmatched ("},
                 {"a++++++++++++++++++++++", "too long with"},
                 {"((((((((((a+)+)+)+)+)+)+)+)+)+)+", "too long with"},
                 {"(a?){4000}b", "too long with"},
                 {"((x{30}){30}){30}", "too long with"},
                 {"([)]a{90}){90}", "too long with"},
                 {"([]()]a{90}){90}", "too long with"},
                 {"([^])[:alpha:])]a{90}){90}", "too long with"},
                 {"x{999999999999999999999999}", "too long with"},
                 {"(a*)*\\1b", "back-references"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct occ_error err = OCC_ERROR_INIT;
        struct occ_regexp *regexp = NULL;
        int status = occ_regexp_compile(cases[i].pattern, &regexp, &err);
        assert_int_equal(status, cases[i].why ? OCC_E_INVALID : 0);
        if (cases[i].why) {
            assert_non_null(strstr(err.message, cases[i].why));
            continue;
        }
        assert_true(occ_regexp_matches(regexp, "gemm128"));
        occ_regexp_free(regexp);
    }
    char deep[OCC_REGEXP_MAX_DEPTH + 1] = "";
    memset(deep, '(', OCC_REGEXP_MAX_DEPTH);
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_regexp *regexp = NULL;
    assert_int_equal(occ_regexp_compile(deep, &regexp, &err), OCC_E_INVALID);
    assert_non_null(strstr(err.message, "too deep"));
}

static bool matches(const char *pattern, const char *text)
{
    struct occ_regexp *regexp = NULL;
    assert_int_equal(occ_regexp_compile(pattern, &regexp, NULL), 0);
    bool is_match = occ_regexp_matches(regexp, text);
    occ_regexp_free(regexp);
    return is_match;
}

static void test_regexps_of_long_texts(void **state)
{
    (void)state;
    char text[OCC_REGEXP_MAX_TEXT + 2];
    memset(text, 'a', sizeof text);
    text[OCC_REGEXP_MAX_TEXT - 1] = 'b';
    text[OCC_REGEXP_MAX_TEXT] = '\0';
    assert_true(matches("^a*b$", text));
    text[OCC_REGEXP_MAX_TEXT] = 'c';
    text[OCC_REGEXP_MAX_TEXT + 1] = '\0';
    assert_true(matches("b", text));
    assert_false(matches("b$", text)); /* not the end of the text */
    assert_false(matches("c", text));
}

static size_t peak_mib(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (size_t)usage.ru_maxrss / 1024;
}

/* The C library keeps a state for each new sequence of letters: these names take more than a gigabyte of
 * states. A sanitizer keeps 256 MiB of freed memory. */
static void test_memory_of_regexps(void **state)
{
    (void)state;
    struct occ_regexp *regexp = NULL;
    uint64_t random = 1;
    char text[3001] = "";
    assert_int_equal(occ_regexp_compile("^(a|b)*a(a|b){200}c", &regexp, NULL), 0);
    size_t before_mib = peak_mib();
    for (int name = 0; name < 100; name++) {
        for (size_t i = 0; i < sizeof text - 1; i++) {
            random = random * UINT64_C(6364136223846793005) + 1;
            text[i] = random >> 63 ? 'a' : 'b';
        }
        assert_false(occ_regexp_matches(regexp, text));
    }
    occ_regexp_free(regexp);
    print_message("peak: %zu MiB\n", peak_mib() - before_mib);
    assert_in_range(peak_mib() - before_mib, 0, 512);
}

static void test_hex(void **state)
{
    (void)state;
    uint8_t bytes[4] = {0};
    char text[9];
    assert_true(occ_hex_decode("00fF1a2b", bytes, 4));
    occ_hex_encode(bytes, 4, text);
    assert_string_equal(text, "00ff1a2b");
    assert_false(occ_hex_decode("00ff1a2", bytes, 4));
    assert_false(occ_hex_decode("00ff1a2b3", bytes, 4));
    assert_false(occ_hex_decode("00ff1a2g", bytes, 4));
}

/* Keys that differ in their upper bits alone must not share a place, and no two tables have the same order.
 */
static void test_map_spreads_keys(void **state)
{
    (void)state;
    enum { KEYS = 1000, CAPACITY = 65536 };
    static bool taken[CAPACITY];
    struct occ_map map = {0}, other = {0};
    while (map.capacity < CAPACITY)
        assert_true(occ_map_grow(&map) && occ_map_grow(&other));
    assert_int_equal(map.capacity, CAPACITY);
    uint32_t places = 0, same = 0;
    for (uint64_t i = 0; i < KEYS; i++) {
        uint32_t home = occ_map_home(&map, i << 48);
        places += !taken[home];
        taken[home] = true;
        same += home == occ_map_home(&other, i << 48);
        assert_int_equal(occ_map_put(&map, i << 48, (uint32_t)i), i);
    }
    assert_true(places > KEYS * 9 / 10);
    assert_true(same < KEYS / 10);
    for (uint64_t i = 0; i < KEYS; i++)
        assert_int_equal(occ_map_get(&map, i << 48), i);
    assert_int_equal(occ_map_get(&map, 1), OCC_MAP_NONE);
    occ_map_free(&map);
    occ_map_free(&other);
}

static void test_errors(void **state)
{
    (void)state;
    struct occ_error err = OCC_ERROR_INIT;
    assert_int_equal(occ_fail_errno(&err, ENOENT, "cannot open %s", "x"), OCC_E_NOT_FOUND);
    assert_string_equal(err.message, "cannot open x: No such file or directory");
    assert_int_equal(occ_error_prefix(&err, "line %d", 3), OCC_E_NOT_FOUND);
    assert_string_equal(err.message, "line 3: cannot open x: No such file or directory");
    assert_int_equal(occ_fail(NULL, OCC_E_FULL, "no %s", "room"), OCC_E_FULL);
    assert_true(occ_error_prefix(NULL, "line %d", 3) < 0);
}

static void test_paths(void **state)
{
    (void)state;
    char *path = NULL;
    (void)setenv("XDG_STATE_HOME", "/state", 1);
    assert_int_equal(occ_path_default_history(&path, NULL), 0);
    assert_string_equal(path, "/state/occtrace/history.db");
    free(path);
    (void)setenv("XDG_STATE_HOME", "relative", 1); /* ignored, as the XDG rules say */
    (void)setenv("HOME", "/home/u", 1);
    assert_int_equal(occ_path_default_history(&path, NULL), 0);
    assert_string_equal(path, "/home/u/.local/state/occtrace/history.db");
    free(path);
    (void)unsetenv("XDG_STATE_HOME");
    (void)unsetenv("HOME"); /* then only the service is in the service's directory */
    assert_int_equal(occ_path_default_history(&path, NULL), 0);
    assert_ptr_equal(strstr(path, OCC_PATH_SERVICE_DIRECTORY), NULL);
    assert_non_null(strstr(path, "/.local/state/occtrace/history.db"));
    free(path);
    assert_int_equal(occ_path_daemon_history(&path, NULL), 0);
    assert_true((strncmp(path, OCC_PATH_SERVICE_DIRECTORY "/", 18) == 0) == (geteuid() == 0));
    free(path);
    (void)setenv("OCCTRACE_SOCKET", "/s/sock", 1);
    assert_int_equal(occ_path_default_socket(&path, NULL), 0);
    assert_string_equal(path, "/s/sock");
    free(path);

    char base[] = "/tmp/occ-test-XXXXXX";
    assert_non_null(mkdtemp(base));
    char file[128], directory[128];
    (void)snprintf(file, sizeof file, "%s/a/b/file", base);
    (void)snprintf(directory, sizeof directory, "%s/a/b", base);
    assert_int_equal(occ_path_make_parents(file, NULL), 0);
    struct stat info;
    assert_int_equal(stat(directory, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    assert_int_equal(rmdir(directory), 0);
    (void)snprintf(directory, sizeof directory, "%s/a", base);
    assert_int_equal(rmdir(directory), 0);
    assert_int_equal(rmdir(base), 0);
}

static void test_nobody_listens(void **state)
{
    (void)state;
    int fd = -1;
    struct occ_error err = OCC_ERROR_INIT;
    assert_int_equal(occ_control_connect("/nonexistent/occ.sock", &fd, &err), OCC_E_NOT_FOUND);
    assert_int_equal(fd, -1);
    char path[300];
    memset(path, 'a', sizeof path);
    path[sizeof path - 1] = '\0';
    assert_int_equal(occ_control_connect(path, &fd, &err), OCC_E_INVALID);
}

static void test_node_name(void **state)
{
    char name[OCC_NODE_NAME_BYTES], host[OCC_NODE_NAME_BYTES], text[300] = "";
    (void)state;
    assert_int_equal(gethostname(host, sizeof host), 0);
    memset(text, 'n', 254);
    const char *const refused[] = {"", "a b", "a\n", "\xc3\xa4", text};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        (void)setenv("OCCTRACE_NODE", refused[i], 1);
        assert_int_equal(occ_node_name(name, NULL), 0);
        assert_string_equal(name, host);
    }
    (void)setenv("OCCTRACE_NODE", text + 1, 1);
    assert_int_equal(occ_node_name(name, NULL), 0);
    assert_string_equal(name, text + 1);
    (void)unsetenv("OCCTRACE_NODE");
}

static void test_node_listen(void **state)
{
    struct occ_error err = OCC_ERROR_INIT;
    const char *const bad[] = {"",
                               ":",
                               ":1",
                               "127.0.0.1",
                               "127.0.0.1:",
                               "127.0.0.1:65536",
                               "localhost:1",
                               "::1:1",
                               "[::1:1",
                               "[]:1",
                               "]:1",
                               "[127.0.0.1]:1",
                               "127.0.0.1:1x",
                               "[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa]:1"};
    int fd = -1, again = -1;
    uint16_t port = 0, other = 0;
    char text[32];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(occ_address_listen(bad[i], &fd, &port, &err), OCC_E_INVALID);
    assert_int_equal(occ_address_listen("127.0.0.1:0", &fd, &port, &err), 0);
    assert_true(port > 0);
    (void)snprintf(text, sizeof text, "127.0.0.1:%u", port);
    assert_true(occ_address_listen(text, &again, &other, &err) != 0); /* in use */
    assert_int_equal(again, -1);
    assert_int_equal(close(fd), 0);
}

enum { ALL_ADDRESSES = 1, OTHER_FAMILY = 2, LOOPBACK_REFUSED = 4, NO_FILTER = 64 };

/* As on a kernel with ipv6.disable=1: socket(2) knows no AF_INET6. */
static int listen_without_ipv6(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)), /* little endian */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof code / sizeof code[0], code};
    struct occ_error err = OCC_ERROR_INIT;
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    int fd = -1, result = 0;
    uint16_t port = 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return NO_FILTER;
    if (occ_address_listen("[::]:0", &fd, &port, &err) == 0 && port > 0)
        result |= ALL_ADDRESSES;
    if (getsockname(fd, (struct sockaddr *)&address, &size) == 0 && address.ss_family == AF_INET)
        result |= OTHER_FAMILY;
    if (occ_address_listen("[::1]:0", &fd, &port, &err) != 0)
        result |= LOOPBACK_REFUSED;
    return result;
}

static void test_listen_without_ipv6(void **state)
{
    (void)state;
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(listen_without_ipv6());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_FILTER)
        skip();
    assert_int_equal(WEXITSTATUS(status), ALL_ADDRESSES | OTHER_FAMILY | LOOPBACK_REFUSED);
}

/* A full table takes no connection; an old request ends, younger ones and free entries stay. */
static void test_old_requests_end(void **state)
{
    struct occ_connection_age entries[3];
    const struct occ_connection_ages ages = {entries, 3};
    int old[2], young[2];
    char byte;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, old), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, young), 0);
    occ_connection_ages_clear(ages);
    assert_true(occ_connection_ages_end(ages, 10, 1000) == UINT64_MAX);
    assert_ptr_equal(occ_connection_ages_add(ages, old[0], 0), &entries[0]);
    assert_ptr_equal(occ_connection_ages_add(ages, young[0], 5000000), &entries[1]);
    assert_int_equal(occ_connection_ages_end(ages, 10000000, 2000000), 9);  /* 8 ms are left, rounded up */
    assert_int_equal(occ_connection_ages_end(ages, 10000000, 10000000), 6); /* the younger one's 5 ms */
    assert_int_equal(read(old[1], &byte, 1), 0);
    assert_int_equal(read(young[1], &byte, 1), -1);
    entries[0].fd = -1; /* closed */
    assert_ptr_equal(occ_connection_ages_add(ages, old[0], 0), &entries[0]);
    assert_non_null(occ_connection_ages_add(ages, old[1], 0));
    assert_null(occ_connection_ages_add(ages, young[1], 0));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(close(old[i]), 0);
        assert_int_equal(close(young[i]), 0);
    }
}

/* A daemon's socket at `path`, made by the user `uid`. Returns the listening descriptor. */
static int listen_as(uid_t uid, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    (void)unlink(path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    assert_int_equal(seteuid(uid), 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(seteuid(0), 0);
    return fd;
}

/* Connects as the user `uid`, to a daemon of `owner`. */
static int trust(uid_t uid, uid_t owner, const char *path)
{
    int listener = listen_as(owner, path), fd = -1;
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(seteuid(uid), 0);
    int status = occ_control_connect_trusted(path, &fd, NULL);
    assert_int_equal(seteuid(0), 0);
    assert_true((fd >= 0) == (status == 0));
    struct pollfd waiting = {.fd = listener, .events = POLLIN};
    if (status == OCC_E_NOT_FOUND || (status == OCC_E_DENIED && owner == 0))
        assert_int_equal(poll(&waiting, 1, 0), 0); /* it has not even connected */
    if (fd >= 0)
        assert_int_equal(close(fd), 0);
    assert_int_equal(close(listener), 0);
    return status;
}

static void test_trusted_daemons(void **state)
{
    enum { USER = 61001, OTHER = 61003 };
    static const struct {
        uid_t directory;
        mode_t mode;
        uid_t link, daemon;
        int status;
    } cases[] = {
        {USER, 0700, USER, USER, 0},
        {0, 0755, 0, 0, 0},
        {USER, 0755, USER, 0, 0},
        {OTHER, 0755, OTHER, OTHER, OCC_E_DENIED},
        {OTHER, 0755, OTHER, 0,
         OCC_E_DENIED}, /* such as a link to the service's socket, to be changed later */
        {USER, 0755, OTHER, 0, OCC_E_DENIED},
        {OTHER, 0755, USER, 0, OCC_E_DENIED},
        {USER, 0777, USER, 0, OCC_E_DENIED},
        {0, 01777, 0, 0, OCC_E_DENIED},
        {USER, 0775, USER, 0, OCC_E_DENIED},
    };
    char base[] = "/tmp/occ-test-XXXXXX", directory[64], link[64], path[80];
    int fd = -1;
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can be other users\n");
        skip();
    }
    assert_non_null(mkdtemp(base));
    assert_int_equal(chmod(base, 0755), 0);
    (void)snprintf(directory, sizeof directory, "%s/d", base);
    (void)snprintf(link, sizeof link, "%s/link", base);
    (void)snprintf(path, sizeof path, "%s/socket", link);
    assert_int_equal(mkdir(directory, 0700), 0);
    assert_int_equal(symlink(directory, link), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(chown(directory, cases[i].directory, 0), 0);
        assert_int_equal(chmod(directory, cases[i].mode), 0);
        assert_int_equal(lchown(link, cases[i].link, 0), 0);
        int status = trust(USER, cases[i].daemon, path);
        if (status != cases[i].status)
            fail_msg("case %zu: %d", i, status);
    }
    /* another user's daemon in a directory that nobody else can write, and root has no user's daemon */
    assert_int_equal(chown(directory, 0, 0), 0);
    assert_int_equal(chmod(directory, 0777), 0);
    int listener = listen_as(OTHER, path);
    assert_int_equal(chmod(directory, 0755), 0);
    assert_int_equal(lchown(link, 0, 0), 0);
    assert_int_equal(occ_control_connect_trusted(path, &fd, NULL), OCC_E_DENIED);
    assert_int_equal(close(listener), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(occ_control_connect_trusted(path, &fd, NULL), OCC_E_NOT_FOUND);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(rmdir(directory), 0);
    assert_int_equal(rmdir(base), 0);
    assert_int_equal(occ_control_connect_trusted(path, &fd, NULL), OCC_E_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_node_name),
        cmocka_unit_test(test_node_listen),
        cmocka_unit_test(test_listen_without_ipv6),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_moments_that_occur_twice),
        cmocka_unit_test(test_sizes_and_formats),
        cmocka_unit_test(test_sanitise),
        cmocka_unit_test(test_quote),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_cut_names),
        cmocka_unit_test(test_regexps),
        cmocka_unit_test(test_regexps_of_long_texts),
        cmocka_unit_test(test_memory_of_regexps),
        cmocka_unit_test(test_hex),
        cmocka_unit_test(test_map_spreads_keys),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_old_requests_end),
        cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_trusted_daemons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
