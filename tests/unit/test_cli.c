/* The command line's parser, values, columns, and the three renderers. One thread. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/all_users.h"
#include "cli/gather.h"
#include "cli/json.h"
#include "cli/occq/commands.h"
#include "cli/occtrace/trace_options.h"
#include "cli/options.h"
#include "cli/table.h"
#include "cli/usage.h"
#include "cli/values.h"

/* ---- options ---- */

struct sample {
    struct cli_args common;
    bool flag;
    const char *text, *word;
    int64_t number, moment, bytes;
    double percent;
};

static const char *const words[] = {"red", "green", NULL};

static const struct cli_option rows[] = {
    CLI_OPTION_DB,
    CLI_OPTION('f', "flag", CLI_FLAG, struct sample, flag, NULL, "a flag"),
    CLI_OPTION('t', "text", CLI_TEXT, struct sample, text, "TEXT", "a text"),
    CLI_OPTION(0, "word", CLI_WORD, struct sample, word, "WORD", "a word", .words = words),
    CLI_OPTION('n', "number", CLI_NUMBER, struct sample, number, "N", "a number", .min = 1, .max = 100),
    CLI_OPTION(0, "bytes", CLI_BYTES, struct sample, bytes, "BYTES", "a size", .min = 1024, .max = 1048576),
    CLI_OPTION(0, "since", CLI_MOMENT, struct sample, moment, "WHEN", "a moment"),
    CLI_OPTION('p', "percent", CLI_PERCENT, struct sample, percent, "PCT", "a percentage", .without = "50"),
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

static const struct cli_command command = {.program = "sample",
                                           .operands = "THING",
                                           .min_operands = 0,
                                           .max_operands = 2,
                                           .summary = "",
                                           .description = "",
                                           .options = rows};

enum { MAX_ARGUMENTS = 8 };

static int parse(const struct cli_command *with, struct sample *args, struct occ_error *err,
                 const char *const *list)
{
    static char *argv[MAX_ARGUMENTS + 1];
    size_t n = 0;
    for (; list[n]; n++)
        argv[n] = (char *)(uintptr_t)list[n];
    argv[n] = NULL;
    *args = (struct sample){0};
    *err = (struct occ_error)OCC_ERROR_INIT;
    return cli_parse(with, argv, &args->common, err);
}

#define PARSE(args, err, ...) parse(&command, args, err, (const char *const[]){__VA_ARGS__, NULL})

static void test_values_of_every_kind(void **state)
{
    (void)state;
    struct sample args;
    struct occ_error err;
    assert_int_equal(PARSE(&args, &err, "-f", "--text=a b", "-n5", "--word", "green", "--since", "@7"), 0);
    assert_true(args.flag);
    assert_string_equal(args.text, "a b");
    assert_ptr_equal(args.word, words[1]);
    assert_int_equal(args.number, 5);
    assert_int_equal(args.moment, 7000000000);
    assert_int_equal(PARSE(&args, &err, "--bytes", "1k"), 0); /* the minimum */
    assert_int_equal(args.bytes, 1024);
    assert_true(args.percent == 0);
    assert_int_equal(args.common.operand_count, 0);
}

static void test_operands_between_options(void **state)
{
    (void)state;
    struct sample args;
    struct occ_error err;
    assert_int_equal(PARSE(&args, &err, "one", "-n", "7", "--", "-f"), 0);
    assert_int_equal(args.common.operand_count, 2);
    assert_string_equal(args.common.operands[0], "one");
    assert_string_equal(args.common.operands[1], "-f");
    assert_null(args.common.operands[2]);
    assert_int_equal(args.number, 7);
    assert_false(args.flag);
    assert_int_equal(PARSE(&args, &err, "-"), 0);
    assert_string_equal(args.common.operands[0], "-");
}

static void test_joined_letters(void **state)
{
    (void)state;
    struct sample args;
    struct occ_error err;
    assert_int_equal(PARSE(&args, &err, "-fn9"), 0);
    assert_true(args.flag);
    assert_int_equal(args.number, 9);
    assert_int_equal(PARSE(&args, &err, "-ftxyz"), 0);
    assert_string_equal(args.text, "xyz");
}

static void test_value_that_may_be_left_out(void **state)
{
    (void)state;
    struct sample args;
    struct occ_error err;
    assert_int_equal(PARSE(&args, &err, "--percent", "30"), 0);
    assert_true(fabs(args.percent - 0.5) < 1e-12);
    assert_string_equal(args.common.operands[0], "30"); /* only "=" gives it a value */
    assert_int_equal(PARSE(&args, &err, "--percent=30"), 0);
    assert_true(fabs(args.percent - 0.3) < 1e-12);
}

/* Each usage fails, and the message contains the text. */
static void test_wrong_usage_names_the_option(void **state)
{
    (void)state;
    static const struct {
        const char *arguments[4];
        const char *says;
    } cases[] = {
        {{"--flog"}, "unknown option '--flog'; did you mean '--flag'?"},
        {{"--zzzzzzz"}, "unknown option '--zzzzzzz'"},
        {{"-z"}, "unknown option '-z'"},
        {{"-fz"}, "unknown option '-z'"},
        {{"--flag=1"}, "--flag takes no value"},
        {{"--text"}, "--text needs a value (TEXT)"},
        {{"-t"}, "-t needs a value (TEXT)"},
        {{"--text="}, "--text: the value is empty"},
        {{"--number", "x"}, "--number: 'x' is not a whole number"},
        {{"-n", "101"}, "-n: '101' is out of range (1 to 100)"},
        {{"--number=-1"}, "--number: '-1' is not a whole number"},
        {{"--bytes=1023"}, "--bytes: '1023' is less than 1024 bytes"},
        {{"--bytes=2M"}, "--bytes: '2M' is more than 1048576 bytes"},
        {{"--word", "blue"}, "--word: 'blue' is none of red, green"},
        {{"--since", "soon"}, "--since: 'soon' is neither a duration"},
        {{"--percent=0"}, "--percent: '0' is out of range"},
        {{"--percent=101"}, "--percent: '101' is out of range"},
        {{"--percent=nan"}, "--percent: 'nan' is not a number"},
        {{"a", "b", "c"}, "unexpected argument 'c'"},
        {{"--t\033[1m"}, "unknown option '--t?[1m'"},
        {{"--word=\033[1m"}, "--word: '?[1m' is none of"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sample args;
        struct occ_error err;
        assert_int_equal(parse(&command, &args, &err, cases[i].arguments), OCC_E_INVALID);
        if (!strstr(err.message, cases[i].says))
            fail_msg("'%s' does not hold '%s'", err.message, cases[i].says);
    }
}

static void test_help_needs_no_operand(void **state)
{
    (void)state;
    struct sample args;
    struct occ_error err;
    struct cli_command strict = command;
    strict.min_operands = 1;
    assert_int_equal(parse(&strict, &args, &err, (const char *const[]){NULL}), OCC_E_INVALID);
    assert_string_equal(err.message, "THING is missing");
    assert_int_equal(parse(&strict, &args, &err, (const char *const[]){"--help", NULL}), 0);
    assert_true(args.common.help);
}

static int parse_trace(struct trace_options *options, struct occ_error *err, const char *const *list)
{
    static char *argv[MAX_ARGUMENTS + 1];
    size_t n = 0;
    for (; list[n]; n++)
        argv[n] = (char *)(uintptr_t)list[n];
    argv[n] = NULL;
    *options = (struct trace_options){0};
    return trace_options_parse(argv, options, err);
}

static void test_the_rest_is_the_programs(void **state)
{
    (void)state;
    struct trace_options options;
    struct occ_error err;
    assert_int_equal(
        parse_trace(&options, &err, (const char *const[]){"-q", "ls", "-d", "--", "--help", NULL}), 0);
    assert_true(options.quiet);
    assert_null(options.common.db);
    assert_false(options.common.help);
    assert_int_equal(options.common.operand_count, 4);
    assert_string_equal(options.common.operands[2], "--");
    assert_int_equal(parse_trace(&options, &err, (const char *const[]){"--", "-x", NULL}), 0);
    assert_string_equal(options.common.operands[0], "-x");
    assert_int_equal(
        parse_trace(&options, &err, (const char *const[]){"--db", "a", "--socket", "b", "ls", NULL}),
        OCC_E_INVALID);
}

/* ---- values ---- */

static const char *text_of(enum cli_unit unit, double real)
{
    static char buffer[64];
    struct cli_value value = cli_real(real);
    return cli_value_text(&value, unit, buffer, sizeof buffer);
}

static void test_numbers_for_people(void **state)
{
    (void)state;
    assert_string_equal(text_of(CLI_RATIO, 0.375), "37.5%");
    assert_string_equal(text_of(CLI_RATIO, NAN), "-");
    assert_string_equal(text_of(CLI_DURATION, 1234567), "1.235 ms");
    assert_string_equal(text_of(CLI_FACTOR, 2.4), "2.40");
    assert_string_equal(text_of(CLI_AMOUNT, 0), "0.000");
    assert_string_equal(text_of(CLI_AMOUNT, 12345.6), "12.35k");
    assert_string_equal(text_of(CLI_AMOUNT, 999.96), "1.000k");
    assert_string_equal(text_of(CLI_AMOUNT, 3e20), "300.0E");
    assert_string_equal(text_of(CLI_AMOUNT, INFINITY), "-");
}

static void test_numbers_read_back(void **state)
{
    (void)state;
    static const double numbers[] = {0, 1, 0.1, 1.0 / 3, 1e300, 5e-324, -2.5, 123456789.123};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char buffer[64];
        struct cli_value value = cli_real(numbers[i]);
        assert_true(strtod(cli_value_raw(&value, buffer), NULL) == numbers[i]);
    }
    char buffer[64];
    struct cli_value none = cli_real(NAN);
    assert_string_equal(cli_value_raw(&none, buffer), "");
}

/* ---- columns and tables ---- */

struct thing {
    const char *name;
    double ratio;
    bool is_known;
    char note[8];
    uint32_t count;
    uint64_t large;
    int64_t small;
};

static const struct cli_column columns[] = {
    CLI_FIELD("name", "name", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, struct thing, name, "a name"),
    CLI_FIELD("share", "share_ratio", CLI_RATIO, CLI_DEFAULT, struct thing, ratio, "a ratio"),
    CLI_FIELD("known", "known", CLI_PLAIN, 0, struct thing, is_known, "a flag"),
    CLI_COLUMN_END,
};

static const struct thing things[] = {
    {.name = "plain", .ratio = 0.5, .is_known = true},
    {.name = "has \"quotes\", and\ncommas", .ratio = NAN},
    {.name = "esc\033[31m\x1f\xff", .ratio = 1, .is_known = true},
};

static struct cli_value value_of(const struct cli_column *column, const struct thing *thing)
{
    return column->get(column, thing);
}

/* Fields of every type; unknown ones (NULL, "", NaN) have no value. */
static void test_fields(void **state)
{
    (void)state;
    static const struct cli_column fields[] = {
        CLI_FIELD("note", "note", CLI_PLAIN, 0, struct thing, note, ""),
        CLI_FIELD("count", "count", CLI_PLAIN, 0, struct thing, count, ""),
        CLI_FIELD("large", "large", CLI_PLAIN, 0, struct thing, large, ""),
        CLI_FIELD("small", "small", CLI_PLAIN, 0, struct thing, small, ""),
    };
    const struct thing full = {
        .name = "a", .note = "b", .count = UINT32_MAX, .large = UINT64_MAX, .small = INT64_MIN};
    const struct thing empty = {.name = "", .ratio = NAN};
    assert_string_equal(value_of(&columns[0], &full).string, "a");
    assert_int_equal(value_of(&columns[0], &empty).type, CLI_NONE);
    assert_int_equal(value_of(&columns[0], &(struct thing){0}).type, CLI_NONE);
    assert_int_equal(value_of(&columns[1], &empty).type, CLI_NONE);
    assert_int_equal(value_of(&columns[2], &empty).type, CLI_BOOL);
    assert_string_equal(value_of(&fields[0], &full).string, "b");
    assert_int_equal(value_of(&fields[0], &empty).type, CLI_NONE);
    assert_true(value_of(&fields[1], &full).number == UINT32_MAX);
    assert_true(value_of(&fields[2], &full).number == UINT64_MAX);
    assert_true(value_of(&fields[3], &full).integer == INT64_MIN);
}

static void test_selection(void **state)
{
    (void)state;
    struct cli_selection selection;
    struct occ_error err;
    cli_select(columns, CLI_DEFAULT, 0, &selection);
    assert_int_equal(selection.n, 2);
    assert_int_equal(cli_select_list(columns, "+known", &selection, &err), 0);
    assert_int_equal(selection.n, 3);
    assert_int_equal(cli_select_list(columns, "share_ratio,name", &selection, &err), 0); /* keys work, too */
    assert_int_equal(selection.n, 2);
    assert_ptr_equal(selection.columns[0], &columns[1]);
    assert_int_equal(cli_select_list(columns, "nam", &selection, &err), OCC_E_INVALID);
    assert_string_equal(err.message, "-o: unknown column 'nam'; did you mean 'name'?");
    assert_int_equal(cli_select_list(columns, "name,name", &selection, &err), OCC_E_INVALID);
    assert_int_equal(cli_select_list(columns, "name,", &selection, &err), OCC_E_INVALID);
}

/* Returns the rendered things; the caller frees the text. */
static char *rendered(enum cli_format format, size_t n)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct cli_table *table = NULL;
    struct cli_selection selection = {.format = format};
    struct occ_error err = OCC_ERROR_INIT;
    cli_select(columns, 0, 0, &selection);
    assert_int_equal(cli_table_new(out, "things", &selection, &table, &err), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(cli_table_add(table, &things[i], &err), 0);
    assert_int_equal(cli_table_finish(table, &err), 0);
    cli_table_freep(&table);
    (void)fclose(out);
    return text;
}

static void assert_rendered(enum cli_format format, size_t n, const char *expected)
{
    char *text = rendered(format, n);
    assert_string_equal(text, expected);
    free(text);
}

static void test_text_table(void **state)
{
    (void)state;
    assert_rendered(CLI_FORMAT_TEXT, 3,
                    "NAME                      SHARE KNOWN\n"
                    "plain                     50.0%   yes\n"
                    "has \"quotes\", and?commas      -    no\n"
                    "esc?[31m??               100.0%   yes\n");
    assert_rendered(CLI_FORMAT_TEXT, 0, "");
}

static void test_csv(void **state)
{
    (void)state;
    assert_rendered(CLI_FORMAT_CSV, 3,
                    "name,share_ratio,known\n"
                    "plain,0.5,true\n"
                    "\"has \"\"quotes\"\", and\ncommas\",,false\n"
                    "esc?[31m??,1,true\n");
    assert_rendered(CLI_FORMAT_CSV, 0, "name,share_ratio,known\n");
}

static void test_json(void **state)
{
    (void)state;
    assert_rendered(
        CLI_FORMAT_JSON, 3,
        "{\n  \"schema\": 1,\n  \"things\": [\n"
        "    {\"name\": \"plain\", \"share_ratio\": 0.5, \"known\": true},\n"
        "    {\"name\": \"has \\\"quotes\\\", and\\ncommas\", \"share_ratio\": null, \"known\": false},\n"
        "    {\"name\": \"esc\\u001b[31m\\u001f\\ufffd\", \"share_ratio\": 1, \"known\": true}\n"
        "  ]\n}\n");
    assert_rendered(CLI_FORMAT_JSON, 0, "{\n  \"schema\": 1,\n  \"things\": []\n}\n");
}

/* ---- rows of several histories ---- */

static const struct cli_column gathered_columns[] = {
    CLI_FIELD("name", "name", CLI_PLAIN, CLI_LEFT, struct thing, name, "a name"),
    CLI_FIELD("part", "part", CLI_RATIO, 0, struct thing, ratio, "a part of large"),
    CLI_FIELD("large", "large", CLI_PLAIN, CLI_ADDS, struct thing, large, "a number"),
    CLI_FIELD("small", "small", CLI_PLAIN, 0, struct thing, small, "a time"),
    CLI_COLUMN_END,
};
static const struct cli_part gathered_parts[] = {{"part", "large", false}, {0}};

/* Adds rows of an owner, with the times `first`, `first` + 2 ... and the numbers 1. */
static void gather_rows(struct cli_gather *gather, const char *owner, int64_t first, size_t n)
{
    struct cli_selection selection = {.format = CLI_FORMAT_JSON};
    struct cli_table *table = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    char name[16];
    cli_gather_of(gather, owner);
    assert_int_equal(cli_select_list(gathered_columns, "part,name,large", &selection, &err), 0);
    selection.gather = gather;
    assert_int_equal(cli_table_new(stdout, "things", &selection, &table, &err), 0);
    for (size_t i = 0; i < n; i++) {
        struct thing thing = {.name = name, .ratio = 1, .large = 1, .small = first + 2 * (int64_t)i};
        (void)snprintf(name, sizeof name, "%lld", (long long)thing.small % 10000);
        assert_int_equal(cli_table_add(table, &thing, &err), 0);
    }
    assert_int_equal(cli_table_finish(table, &err), 0);
    cli_table_freep(&table);
}

static char *gathered(struct cli_gather *gather)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct occ_error err = OCC_ERROR_INIT;
    assert_int_equal(cli_gather_print(gather, out, &err), 0);
    (void)fclose(out);
    return text;
}

/* Times with more digits than a double holds stay in order; dropped rows still count in the totals of the
 * parts; texts outlive their row. */
static void test_gathered_rows(void **state)
{
    (void)state;
    const struct cli_merge merge = {.keys = {"small"}, .parts = gathered_parts, .number = 3};
    const int64_t first = INT64_C(1700000000000000000);
    struct cli_gather *gather = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    char cut[96];
    assert_int_equal(cli_gather_new(&merge, &gather, &err), 0);
    gather_rows(gather, "ada", first, 2000);
    gather_rows(gather, "bob", first + 1, 2000);
    char *text = gathered(gather);
    assert_string_equal(text,
                        "{\n  \"schema\": 1,\n  \"things\": [\n"
                        "    {\"owner\": \"bob\", \"part\": 0.00025, \"name\": \"3999\", \"large\": 1},\n"
                        "    {\"owner\": \"ada\", \"part\": 0.00025, \"name\": \"3998\", \"large\": 1},\n"
                        "    {\"owner\": \"bob\", \"part\": 0.00025, \"name\": \"3997\", \"large\": 1}\n"
                        "  ],\n  \"total\": {\"large\": 3}\n}\n");
    assert_true(cli_gather_cut_text(gather, cut, sizeof cut));
    assert_string_equal(cut, "the first 3 of 4000 rows of all owners; -n shows more");
    free(text);
    cli_gather_freep(&gather);
}

/* Rows without an order come by their place in each history's answer. A sum beyond the integers is a real
 * number. */
static void test_gathered_sums(void **state)
{
    (void)state;
    const struct cli_merge merge = {.sum_by = "name"};
    const struct thing rows_of_each[] = {{.name = "a", .large = UINT64_MAX}, {.name = "b", .large = 2}};
    struct cli_selection selection = {.format = CLI_FORMAT_JSON};
    struct cli_gather *gather = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    assert_int_equal(cli_gather_new(&merge, &gather, &err), 0);
    assert_int_equal(cli_select_list(gathered_columns, "name,large", &selection, &err), 0);
    selection.gather = gather;
    for (int i = 0; i < 2; i++) {
        cli_gather_of(gather, i ? "bob" : "ada");
        assert_int_equal(cli_table_print("things", &selection, rows_of_each, 2, sizeof rows_of_each[0], &err),
                         0);
    }
    char *text = gathered(gather);
    assert_string_equal(text, "{\n  \"schema\": 1,\n  \"things\": [\n"
                              "    {\"owner\": \"ada\", \"name\": \"a\", \"large\": 18446744073709551615},\n"
                              "    {\"owner\": \"bob\", \"name\": \"a\", \"large\": 18446744073709551615},\n"
                              "    {\"owner\": \"ada\", \"name\": \"b\", \"large\": 2},\n"
                              "    {\"owner\": \"bob\", \"name\": \"b\", \"large\": 2}\n"
                              "  ],\n  \"totals\": [\n"
                              "    {\"name\": \"a\", \"large\": 3.6893488147419103e+19},\n"
                              "    {\"name\": \"b\", \"large\": 4}\n  ]\n}\n");
    free(text);
    cli_gather_freep(&gather);
}

struct amount {
    double amount, part;
};

static const struct cli_column amounts[] = {
    CLI_FIELD("amount", "amount", CLI_PLAIN, CLI_ADDS, struct amount, amount, "a number"),
    CLI_FIELD("part", "part", CLI_RATIO, 0, struct amount, part, "a part of amount"),
    CLI_COLUMN_END,
};

/* A sum beyond a double is unknown, whatever follows, and so are the parts. */
static void test_an_infinite_sum_is_unknown(void **state)
{
    (void)state;
    static const struct cli_part parts[] = {{"part", "amount", false}, {0}};
    const struct cli_merge merge = {.parts = parts};
    const struct amount all[] = {{1e308, 1}, {1e308, 1}, {5, 1}, {-1e308, 1}};
    struct cli_selection selection = {.format = CLI_FORMAT_JSON};
    struct cli_gather *gather = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    assert_int_equal(cli_gather_new(&merge, &gather, &err), 0);
    cli_select(amounts, 0, 0, &selection);
    selection.gather = gather;
    cli_gather_of(gather, "ada");
    assert_int_equal(cli_table_print("things", &selection, all, 4, sizeof *all, &err), 0);
    char *text = gathered(gather);
    assert_non_null(strstr(text, "{\"owner\": \"ada\", \"amount\": 5, \"part\": null}"));
    assert_non_null(strstr(text, "\"total\": {\"amount\": null}"));
    free(text);
    cli_gather_freep(&gather);
}

/* A history with other columns in its answer cannot join the table. */
static void test_gathered_columns(void **state)
{
    (void)state;
    struct cli_selection selection = {.format = CLI_FORMAT_CSV};
    struct cli_gather *gather = NULL;
    struct cli_table *table = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    assert_int_equal(cli_gather_new(&(struct cli_merge){0}, &gather, &err), 0);
    gather_rows(gather, "ada", 1, 1);
    assert_int_equal(cli_select_list(gathered_columns, "name", &selection, &err), 0);
    selection.gather = gather;
    assert_int_equal(cli_table_new(stdout, "things", &selection, &table, &err), OCC_E_INVALID);
    assert_null(table);
    cli_gather_freep(&gather);
}

static void remove_history(const char *directory, const char *owner)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s/history.db", directory, owner);
    assert_int_equal(unlink(path), 0);
}

/* Answers for an owner; fails without a history. The answer for "a" removes the history of "b". */
static int answer_and_remove(const struct cli_command *asked, const void *arguments)
{
    const struct cli_list_args *list = arguments;
    struct occ_error err = OCC_ERROR_INIT;
    struct thing thing = {.name = "one", .large = 1};
    if (access(list->common.db, F_OK) != 0) {
        (void)occ_fail(&err, OCC_E_NOT_FOUND, "there is no %s", list->common.db);
        return cli_failure(asked, &err);
    }
    if (strstr(list->common.db, "/a/"))
        remove_history(list->common.all_users, "b");
    return cli_table_print("things", &list->selection, &thing, 1, sizeof thing, &err);
}

static void test_a_history_that_disappears_is_a_note(void **state)
{
    (void)state;
    static const struct cli_command asking = {
        .name = "things", .merges_owners = true, .run = answer_and_remove};
    char directory[] = "/tmp/occ-cli-XXXXXX", path[64];
    assert_non_null(mkdtemp(directory));
    for (const char *owner = "abc"; *owner; owner++) {
        (void)snprintf(path, sizeof path, "%s/%c", directory, *owner);
        assert_int_equal(mkdir(path, 0700), 0);
        (void)snprintf(path, sizeof path, "%s/%c/history.db", directory, *owner);
        assert_int_equal(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
    }
    struct cli_list_args list = {.common.all_users = directory, .output.csv = true};
    assert_int_equal(cli_output_choose(&list.output, gathered_columns, &list.selection, NULL), 0);
    assert_int_equal(cli_run_for_all(&asking, &list.common), CLI_EXIT_OK);
    remove_history(directory, "a");
    remove_history(directory, "c");
    for (const char *owner = "abc"; *owner; owner++) {
        (void)snprintf(path, sizeof path, "%s/%c", directory, *owner);
        assert_int_equal(rmdir(path), 0);
    }
    assert_int_equal(rmdir(directory), 0);
}

/* ---- the real tables ---- */

static void check_options(const struct cli_command *checked)
{
    bool ends_with_help = false;
    for (const struct cli_option *o = checked->options; o->name; o++) {
        assert_non_null(o->help);
        assert_true(o->kind == CLI_FLAG ? !o->value : o->value != NULL);
        for (const struct cli_option *other = checked->options; other < o; other++) {
            assert_string_not_equal(o->name, other->name);
            assert_true(!o->letter || o->letter != other->letter);
        }
        ends_with_help = strcmp(o->name, "help") == 0 || (ends_with_help && strcmp(o->name, "version") == 0);
    }
    assert_true(ends_with_help);
}

static void check_columns(const struct cli_column *checked)
{
    for (const struct cli_column *c = checked; c && c->name; c++) {
        assert_non_null(c->get);
        for (const struct cli_column *other = checked; other < c; other++) {
            assert_string_not_equal(c->name, other->name);
            assert_string_not_equal(c->key, other->key);
            assert_string_not_equal(c->name, other->key);
        }
    }
}

static void check_help_width(const struct cli_command *checked, const struct cli_command *const *commands)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    cli_print_help(out, checked, commands);
    (void)fclose(out);
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
        if (end - line > 80)
            fail_msg("wider than 80: %.*s", (int)(end - line), line);
    free(text);
}

static void test_tables_are_sound(void **state)
{
    (void)state;
    check_options(&cli_occq);
    check_options(&cli_occtrace);
    check_help_width(&cli_occq, cli_commands);
    check_help_width(&cli_occtrace, NULL);
    for (const struct cli_command *const *c = cli_commands; *c; c++) {
        check_options(*c);
        check_columns((*c)->columns);
        check_help_width(*c, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_of_every_kind),
        cmocka_unit_test(test_operands_between_options),
        cmocka_unit_test(test_joined_letters),
        cmocka_unit_test(test_value_that_may_be_left_out),
        cmocka_unit_test(test_wrong_usage_names_the_option),
        cmocka_unit_test(test_help_needs_no_operand),
        cmocka_unit_test(test_the_rest_is_the_programs),
        cmocka_unit_test(test_numbers_for_people),
        cmocka_unit_test(test_numbers_read_back),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_selection),
        cmocka_unit_test(test_text_table),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_gathered_rows),
        cmocka_unit_test(test_gathered_sums),
        cmocka_unit_test(test_gathered_columns),
        cmocka_unit_test(test_an_infinite_sum_is_unknown),
        cmocka_unit_test(test_a_history_that_disappears_is_a_note),
        cmocka_unit_test(test_tables_are_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
