/* occq report: a summary of the history in one HTML file. One thread. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/file.h"
#include "cli/usage.h"
#include "cli/sides/diff_advice.h"
#include "cli/history/history.h"
#include "cli/history/names.h"
#include "cli/kernels/top_ranges.h"
#include "report.h"
#include "cli/sides/sides.h"
#include "cli/history/sql_table.h"
#include "support/cleanup.h"

enum { KERNELS = 20, LINES_MAX = 1000, RANGES = 50, CONFIGS_SHOWN = 1 };
/* Maximum number of launches for the table of ranges, which searches all launches. */
#define RANGES_LAUNCHES_MAX 2000000u
#define LAYER_MIN           0.005 /* smaller layers are left out, as in "occq top" */

struct report_args {
    struct history_args history;
    const char *output;
    bool diff;
};

/* Data of the report. */
struct source {
    struct occ_store *store;
    struct occ_filter filter;
    struct kernel_names *names;
    struct occ_top top, ranges, by_layer; /* by_layer owns texts of `layers` */
    struct occ_overview overview;
    struct occ_layers layers;
    struct occ_arena texts; /* of `layers` */
    struct occ_config_rows configs;
    struct trend trend;
    struct sides sides;
    struct diff_report diff;
    struct diff_line *diff_lines;
    struct diff_group_line *diff_groups;
    struct report report;
    char asked[512];
};

static void source_free(struct source *s)
{
    free(s->diff_groups);
    free(s->diff_lines);
    diff_report_done(&s->diff);
    sides_free(&s->sides);
    trend_release(&s->trend);
    show_groups_free(&s->report.groups);
    occ_config_rows_free(&s->configs);
    free(s->report.lines);
    free(s->report.range_lines);
    occ_layers_free(&s->layers);
    occ_arena_free(s->texts.blocks);
    occ_overview_free(&s->overview);
    occ_top_free(&s->top);
    occ_top_free(&s->ranges);
    occ_top_free(&s->by_layer);
    kernel_names_freep(&s->names);
    occ_store_freep(&s->store);
}

/* ---- which launches ---- */

static void add_asked(struct source *s, const struct cli_option *option, const void *field)
{
    size_t used = strlen(s->asked);
    char text[64] = "";
    const char *value = text;
    if (option->kind == CLI_TEXT)
        value = *(const char *const *)field;
    else if (option->kind == CLI_MOMENT)
        (void)cli_time_text(*(const int64_t *)field, text, sizeof text);
    else if (option->kind == CLI_PERCENT)
        (void)cli_percent_text(*(const double *)field, text, sizeof text);
    else if (option->kind == CLI_NUMBER && *(const int64_t *)field == OCC_RUN_LAST)
        value = "last";
    else if (option->kind == CLI_NUMBER)
        (void)snprintf(text, sizeof text, "%" PRId64, *(const int64_t *)field);
    (void)snprintf(s->asked + used, sizeof s->asked - used, "%s--%s%s%s", used ? " " : "", option->name,
                   value[0] ? " " : "", value);
}

/* True if the option is given and sets a field of the filter. */
static bool is_given_filter(const struct cli_option *o, const struct cli_option *options,
                            const struct report_args *args)
{
    const size_t from = offsetof(struct history_args, filter), until = from + sizeof args->history.filter;
    return o->offset >= from && o->offset < until &&
           cli_is_given(options, &args->history.list.common, o->name);
}

static void add_given_filters(struct source *s, const struct cli_command *command,
                              const struct report_args *args)
{
    for (const struct cli_option *o = command->options; o->name; o++)
        if (is_given_filter(o, command->options, args))
            add_asked(s, o, (const char *)args + o->offset);
}

/* ---- totals ---- */

/* Adds a section's GPU use in the newest run of its first configuration, like `occq show`. */
static int add_uses(struct source *s, const struct show_group *group, struct occ_error *err)
{
    struct occ_config_rows rows = {.rows = s->configs.rows + (group->configs - s->configs.rows),
                                   .n = group->n};
    return occ_store_add_uses(s->store, &s->filter, &rows, err);
}

/* Returns the group of a kernel on a device; NULL: none. */
static const struct show_group *group_of(const struct show_group *groups, size_t n,
                                         const struct occ_row_kernel *kernel)
{
    for (const struct show_group *group = groups; group < groups + n; group++)
        if (group->configs->kernel.id == kernel->id && group->configs->kernel.device == kernel->device)
            return group;
    return NULL;
}

/* Makes a section for each of the first `number` lines. A line without a group means that the history has
 * lost launches since the lines were read. */
static int fill_sections(struct source *s, const struct show_group *groups, size_t n, size_t number,
                         struct occ_error *err)
{
    struct report *r = &s->report;
    for (size_t i = 0; i < r->n_lines && i < number; i++) {
        const struct show_group *group = group_of(groups, n, &r->lines[i].row.kernel);
        if (!group)
            return occ_fail(err, OCC_E_IO, "the history changed while it was read: try again");
        r->groups[r->n_groups++] = *group;
    }
    return 0;
}

static int choose_groups(struct source *s, size_t number, struct occ_error *err)
{
    struct report *r = &s->report;
    _cleanup_(occ_freep) struct show_group *groups = NULL;
    size_t n = 0;
    int status = show_groups_make(&s->configs, CONFIGS_SHOWN, &groups, &n, err);
    r->groups = status == 0 ? calloc(number + 1, sizeof *r->groups) : NULL;
    if (!r->groups)
        return status != 0 ? status : occ_no_memory(err);
    status = fill_sections(s, groups, n, number, err);
    for (size_t i = 0; i < r->n_groups && status == 0; i++) {
        status = add_uses(s, &r->groups[i], err);
        r->groups[i].ranges_skipped = r->groups[i].launches > RANGES_LAUNCHES_MAX;
        if (status == 0 && !r->groups[i].ranges_skipped)
            status = show_find_ranges(s->store, &s->filter, &r->groups[i], err);
    }
    return status;
}

static int load_kernels(struct source *s, size_t number, struct occ_error *err)
{
    struct report *r = &s->report;
    int status = occ_store_top(s->store, &s->filter, OCC_TOP_BY_KERNEL, &s->top, err);
    if (status != 0 || s->top.n == 0)
        return status;
    for (size_t i = 0; i < s->top.n; i++)
        kernel_names_apply(s->names, &s->top.rows[i].kernel);
    top_sort(&s->top, "waste");
    status = occ_overview_ask(s->store, &s->filter, &s->overview, err);
    if (status != 0)
        return status;
    r->n_lines = s->top.n < LINES_MAX ? s->top.n : LINES_MAX;
    r->lines = top_make_lines(&s->top, r->n_lines, &s->overview, &r->sums);
    if (!r->lines)
        return occ_no_memory(err);
    status = occ_store_configs(s->store, &s->filter, &s->configs, err);
    for (size_t i = 0; i < s->configs.n; i++)
        kernel_names_apply(s->names, &s->configs.rows[i].kernel);
    if (status == 0)
        status = choose_groups(s, number, err);
    return status == 0 ? top_advise_rows(&s->configs, false, r->lines, r->n_groups, err) : status;
}

static int load_layers(struct source *s, struct occ_error *err)
{
    const struct occ_layer_options options = {.min_share = LAYER_MIN};
    int status = occ_store_top(s->store, &s->filter, OCC_TOP_BY_LAYER, &s->by_layer, err);
    if (status != 0)
        return status;
    const struct occ_range_totals *totals = top_range_totals(&s->by_layer, &s->texts);
    return totals && occ_layers_make(totals, s->by_layer.n, &options, &s->layers) == 0 ? 0
                                                                                       : occ_no_memory(err);
}

static int load_ranges(struct source *s, struct occ_error *err)
{
    struct report *r = &s->report;
    struct top_sums sums;
    if (r->sums.launches > RANGES_LAUNCHES_MAX ||
        sql_number(occ_store_sqlite(s->store), "SELECT EXISTS(SELECT 1 FROM stored_range)") == 0)
        return 0;
    int status = occ_store_top(s->store, &s->filter, OCC_TOP_BY_RANGE, &s->ranges, err);
    if (status != 0 || !(top_covered_ratio(&s->ranges) > 0))
        return status;
    top_sort(&s->ranges, "waste");
    r->n_ranges = s->ranges.n < RANGES ? s->ranges.n : RANGES;
    r->range_lines = top_make_lines(&s->ranges, r->n_ranges, NULL, &sums);
    return r->range_lines ? load_layers(s, err) : occ_no_memory(err);
}

/* Chooses the shortest unit of time with at most POINTS_MAX points and a query of at most half a second,
 * since rollups are by unit and configuration; the longest unit if no unit fits. */
static const char *unit_of(const struct occ_config_rows *configs)
{
    enum { POINTS_MAX = 250, ROLLUPS_MAX = 300000 };
    static const int64_t unit_ns[] = {INT64_C(60000000000), INT64_C(3600000000000)};
    int64_t first = INT64_MAX, last = 0;
    size_t i = 0;
    for (const struct occ_config_row *row = configs->rows; row < configs->rows + configs->n; row++) {
        first = row->first_ns < first ? row->first_ns : first;
        last = row->last_ns > last ? row->last_ns : last;
    }
    while (i < 2 && ((last - first) / unit_ns[i] > POINTS_MAX ||
                     (last - first) / unit_ns[i] * (int64_t)configs->n > ROLLUPS_MAX))
        i++;
    return trend_units[i];
}

/* Loads the comparison; the rest of the page covers side B's launches. */
static int load_diff(struct source *s, const struct report_args *args, struct occ_error *err)
{
    const struct side *b = &s->sides.side[DIFF_B];
    s->diff = (struct diff_report){.floor = DIFF_FLOOR,
                                   .min_share = DIFF_MIN_SHARE,
                                   .shown = (size_t)args->history.number,
                                   .all_rows = true};
    int status = sides_compare(&s->sides, err);
    if (status == 0)
        status = diff_answer(&s->sides, false, &s->diff, &s->diff_lines, err);
    if (status == 0) {
        s->diff_groups = diff_make_group_lines(&s->diff);
        status = s->diff_groups ? 0 : occ_no_memory(err);
    }
    s->filter = b->filter;
    s->filter.first_run = b->last ? b->runs[b->n_runs - 1] : 0;
    return status;
}

static int load(const struct cli_command *command, const struct report_args *args, struct source *s,
                struct occ_error *err)
{
    const struct cli_args *where = args->diff ? &s->sides.side[DIFF_B].where : &args->history.list.common;
    s->filter = args->history.filter;
    add_given_filters(s, command, args);
    if ((args->diff && load_diff(s, args, err) != 0) ||
        cli_open_history(where, OCC_STORE_READ, &s->store, err) != 0 ||
        kernel_names_load(s->store, args->history.name, &s->names, err) != 0 ||
        load_kernels(s, (size_t)args->history.number, err) != 0 || load_ranges(s, err) != 0)
        return err->code;
    if (s->top.n == 0)
        return 0;
    struct occ_filter of_trend = s->filter;
    sql_leave_unknown_times_out(command, s->store, &of_trend);
    return trend_load(s->store, &of_trend, unit_of(&s->configs), 0.05, &s->trend, err);
}

/* ---- the command ---- */

static int write_file(const struct report_args *args, struct source *s, struct occ_error *err)
{
    struct cli_file output;
    struct report *r = &s->report;
    r->store = s->store;
    r->filter = &s->filter;
    r->asked = s->asked;
    r->top = &s->top;
    r->ranges = &s->ranges;
    r->overview = &s->overview;
    r->layers = &s->layers;
    r->trend = &s->trend;
    r->diff = args->diff ? &s->diff : NULL;
    r->diff_lines = s->diff_lines;
    r->diff_groups = s->diff_groups;
    r->shared_runs = args->diff ? sides_shared_runs(&s->sides) : 0;
    int status = cli_file_open(args->output, &output, err);
    if (status != 0)
        return status;
    status = report_page(output.out, r, err);
    if (status == 0)
        return cli_file_finish(&output, err);
    cli_file_abandon(&output);
    return status;
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct report_args *args = arguments;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(source_free) struct source source = {.sides.by_range = true};
    if (args->diff && sides_parse(&source.sides, &args->history, &err) != 0)
        return cli_usage_error(command, &err);
    int status = load(command, args, &source, &err);
    if (status == OCC_E_NOT_FOUND && source.sides.side[DIFF_B].store)
        return cli_nothing(command, err.message);
    if (status == 0 && source.top.n == 0)
        return cli_nothing(command, "no launches match these filters");
    if (status == 0)
        status = write_file(args, &source, &err);
    if (status != 0)
        return cli_failure(command, &err);
    cli_note_filter(command, source.store, &source.filter);
    return CLI_EXIT_OK;
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    CLI_OPTION('o', "output", CLI_TEXT, struct report_args, output, "FILE",
               "write there instead of to stdout"),
    CLI_OPTION(0, "diff", CLI_FLAG, struct report_args, diff, NULL,
               "begin with the changes between A and B (sides as in 'occq diff'); the rest is about B"),
    CLI_OPTION_LOW_OCCUPANCY("launch configurations"),
    CLI_OPTIONS_FILTER("gpu"),
    CLI_OPTION('n', "number", CLI_NUMBER, struct history_args, number, "N",
               "sections for the first N rows of the table (default 20)", .min = 1, .max = LINES_MAX),
    CLI_OPTION_NAME,
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

static int check(void *arguments, struct occ_error *err)
{
    struct report_args *args = arguments;
    if (args->diff != (args->history.list.common.operand_count == DIFF_SIDES))
        return occ_fail(err, OCC_E_INVALID, "--diff has two sides: --diff A B");
    for (const struct cli_option *o = options; o->name && args->diff; o++)
        if (is_given_filter(o, options, args) && !sides_option_applies(o))
            return occ_fail(err, OCC_E_INVALID, "--diff excludes --%s: A and B choose the launches", o->name);
    if (!args->output && isatty(STDOUT_FILENO))
        return occ_fail(err, OCC_E_INVALID, "-o FILE is missing: a report is not for a terminal");
    return cli_check_history(args, err);
}

const struct cli_command cli_report = {
    .name = "report",
    .group = "Publish",
    .operands = "[A B]",
    .max_operands = DIFF_SIDES,
    .summary = "one HTML file to look at and to share",
    .description =
        "Writes a self-contained page that needs no network: the GPU time as one bar that adds up to 100 %, "
        "findings and layers, in percent of the GPU time; where the time goes by kernel and cause; the "
        "ranges that launches were made in; occupancy and waste over time; for the "
        "most wasteful kernels the waterfall, the calculator's curves, durations and advice; runs, with "
        "their losses. A small script only sorts and filters the table of kernels. A kernel that ran on "
        "several "
        "devices has a row and a section for each; a section has an address: #kernel-ID-DEVICE.\n\n"
        "Numbers equal the numbers of the other commands. The element with the id occtrace-data has them as "
        "JSON: top has the rows of 'occq top --json'; ranges, kernels, history, runs and info equal the "
        "output of 'top --by range "
        "--json', "
        "'show --json -n 1', 'history --json', 'runs --json' and 'runs --info --json' (of top, of the 50 "
        "most "
        "wasteful ranges and of the newest 50 runs not all columns), and diff equals 'diff --json'. Ranges "
        "are searched in up to 2 million launches.\n\n"
        "With --diff the page is about B's launches; --kernel and --exclude choose kernels of both sides, "
        "and other filters are words of A and B.\n\n"
        "The table has at most 1000 rows; a line below has the number and the waste of the others.",
    .options = options,
    .examples = {{"occq report --run last -o report.html", "the newest run"},
                 {"occq report --since 1d --exclude nccl -o report.html", "a day, without communication"},
                 {"occq report --diff label:before label:after -o report.html", "two labels, compared"}},
    CLI_ARGS(struct report_args, .history = {.number = KERNELS}),
    .check = check,
    .run = run,
};
