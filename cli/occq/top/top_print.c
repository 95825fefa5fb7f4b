/* See top_print.h. One thread. */
#include "top_print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/history/cluster.h"
#include "cli/json.h"
#include "cli/screen.h"
#include "support/cleanup.h"
#include "support/text.h"
#include "top_advice_text.h"
#include "top_layers.h"

enum occ_top_by top_by_of(const struct top_args *args)
{
    size_t i = 0;
    while (strcmp(top_by_labels[i], args->by) != 0)
        i++;
    return (enum occ_top_by)i;
}

/* Shows achieved occupancy with its coverage if a row has measured values, and the device if rows differ only
 * in it. In a merge of all owners the columns must be the same for all owners: it shows the device if any two
 * rows differ in it, and achieved occupancy if any owner has it. */
static void mark_known(struct cli_column *table, const struct top_args *args, const struct occ_top *top,
                       size_t shown)
{
    bool has_device = top_by_of(args) == OCC_TOP_BY_KERNEL || top_by_of(args) == OCC_TOP_BY_CONFIG ||
                      top_by_of(args) == OCC_TOP_BY_STREAM;
    bool is_merged = args->history.list.output.gather, has_measured = !is_merged && top_any_measured(top);
    bool needs_device = is_merged ? has_device : top_needs_device(top, shown, top_by_of(args));
    for (; table->name; table++) {
        bool is_achieved = strcmp(table->name, "achieved") == 0;
        if (has_measured && (is_achieved || strcmp(table->name, "measured") == 0))
            table->flags |= CLI_DEFAULT;
        if (is_merged && is_achieved)
            table->flags |= CLI_DEFAULT | CLI_RARE;
        if (needs_device && strcmp(table->name, "device_id") == 0)
            table->flags |= is_merged ? CLI_DEFAULT | CLI_VARIES : CLI_DEFAULT;
    }
}

/* Shows the causes by which rows were ordered or chosen. */
static void mark_defaults(struct cli_column *table, const struct top_args *args)
{
    for (; table->name; table++) {
        if (args->advice)
            table->flags = top_is_of_advice(table->name) ? table->flags | CLI_DEFAULT
                                                         : table->flags & ~(unsigned)CLI_DEFAULT;
        bool is_cause = top_part_of(table->name) < OCC_PART_COUNT;
        if ((is_cause && strcmp(table->name, args->order) == 0) ||
            (is_cause && args->cause && strcmp(table->name, args->cause) == 0))
            table->flags |= CLI_DEFAULT;
    }
}

/* For the last members of the JSON document; the command writes one document. */
static const struct occ_overview *json_overview;

static void put_overview(struct occ_json *json)
{
    enum { FINDINGS_MAX = 20 };
    if (json_overview)
        occ_overview_json(json, json_overview, FINDINGS_MAX);
}

/* Prints "20 of 557 kernels, 61 % of the waste". */
static void print_footer(const struct top_report *report, const struct cli_selection *selection,
                         double waste_ratio)
{
    size_t n = report->top->n, shown = report->shown;
    char waste[64] = "";
    if (isfinite(report->covered_ratio))
        cli_footer(report->command, selection, "%.1f %% of kernel time has a range",
                   floor(report->covered_ratio * 1000) / 10);
    if (shown == 0 || selection->gather || (shown == n && selection->format != CLI_FORMAT_TEXT))
        return;
    if (shown < n && isfinite(waste_ratio))
        (void)snprintf(waste, sizeof waste, ", %.0f %% of the loss", waste_ratio * 100);
    const char *what = top_needs_device(report->top, n, top_by_of(report->args)) ? "row" : report->args->by;
    cli_footer(report->command, selection, "%zu of %zu %s%s%s%s", shown, n, what, n == 1 ? "" : "s", waste,
               shown < n ? "; -n shows more" : "");
}

/* Appends --since and --until, in seconds that contain the whole period; nothing for an open side. */
static void append_period(char *text, size_t size, const struct occ_filter *filter)
{
    const int64_t second_ns = 1000000000;
    if (filter->since_ns > 0)
        occ_text_append(text, size, "", " --since @%" PRId64, filter->since_ns / second_ns);
    if (filter->until_ns > 0)
        occ_text_append(text, size, "", " --until @%" PRId64, (filter->until_ns - 1) / second_ns + 1);
}

/* Names the command for the first kernel, with the conditions on runs and times of this answer. */
static void print_next(const struct top_report *report, const struct cli_selection *selection)
{
    const struct occ_filter *filter = &report->args->history.filter;
    _cleanup_(occ_freep) char *label = filter->label ? occ_text_quote(filter->label) : NULL;
    char run[40] = "", period[80] = "";
    if (filter->run == OCC_RUN_LAST)
        (void)snprintf(run, sizeof run, " --run last");
    else if (filter->run)
        (void)snprintf(run, sizeof run, " --run %" PRId64, filter->run);
    append_period(period, sizeof period, filter);
    cli_footer(report->command, selection, "why, and what to change: occq show %" PRId64 "%s%s%s%s",
               report->top->rows[0].kernel.id, run, label ? " --label " : "", label ? label : "", period);
}

/* Prints the lines, computing each line when it is printed. */
static int print_lines(const struct top_report *report, const struct cli_selection *selection,
                       struct occ_error *err)
{
    _cleanup_(cli_table_freep) struct cli_table *table = NULL;
    struct top_sums all = top_sum(report->top);
    double running = 0;
    all.overview = report->overview;
    int status = cli_table_new(cli_out(), "top", selection, &table, err);
    for (size_t i = 0; i < report->shown && status == 0; i++) {
        const struct occ_top_row *row = &report->top->rows[i];
        struct top_line line;
        running += top_waste_of(row);
        top_make_line(row, &all, running, &line);
        status = cli_table_add(table, &line, err);
    }
    return status == 0 ? cli_table_finish(table, err) : status;
}

bool top_has_table(const struct top_args *args)
{
    const struct cli_output *output = &args->history.list.output;
    return !args->advice || top_by_of(args) != OCC_TOP_BY_KERNEL || output->columns || output->json ||
           output->csv || output->gather;
}

/* Prints the advice, which needs all lines at once. */
static int print_advice(const struct top_report *report, const struct cli_selection *selection,
                        struct occ_error *err)
{
    const struct history_args *args = &report->args->history;
    const struct occ_filter *f = &args->filter;
    bool has_gpu_time = !cluster_url(args) && f->stream == 0 && !f->range_regex && !f->graphs;
    const struct show_question question = {report->store, f, has_gpu_time, report->overview};
    _cleanup_(top_changes_free) struct top_changes changes = {.n = 0};
    struct top_sums all;
    _cleanup_(occ_freep) struct top_line *lines =
        top_make_lines(report->top, report->shown, report->overview, &all);
    if (!lines)
        return occ_no_memory(err);
    int status = top_changes_find(&question, top_by_of(report->args) == OCC_TOP_BY_CONFIG, lines,
                                  report->shown, &changes, err);
    if (status == 0 && top_has_table(report->args))
        return cli_table_print("top", selection, lines, report->shown, sizeof *lines, err);
    if (status == 0)
        top_advice_print(lines, changes.of_lines, report->shown);
    return status;
}

/* Returns the share of the shown rows in all waste; NaN: no rows. */
static double shown_waste_ratio(const struct top_report *report)
{
    double shown = 0;
    for (size_t i = 0; i < report->shown; i++)
        shown += top_waste_of(&report->top->rows[i]);
    return report->shown ? shown / top_sum(report->top).waste : (double)NAN;
}

/* True if the overview is printed above the table: a table of all kernels with the default columns. */
static bool has_head(const struct top_report *report, const struct cli_selection *selection)
{
    const struct top_args *args = report->args;
    const char *columns = args->history.list.output.columns;
    return report->overview && top_by_of(args) == OCC_TOP_BY_KERNEL && !(columns && columns[0] != '+') &&
           !args->cause && !(args->min_loss > 0) && !args->advice && selection->format == CLI_FORMAT_TEXT;
}

static void print_head(const struct top_report *report)
{
    char lines[OCC_OVERVIEW_LINES][OCC_OVERVIEW_LINE_BYTES];
    size_t n = occ_overview_text(report->overview, lines);
    for (size_t i = 0; i < n; i++) {
        _cleanup_(occ_freep) char *text = cli_screen_text(lines[i]);
        if (text)
            cli_print("%s\n", text);
    }
}

static int print(const struct top_report *report, const struct cli_selection *selection,
                 struct occ_error *err)
{
    bool simulated = false;
    for (size_t i = 0; i < report->shown; i++)
        simulated = simulated || report->top->rows[i].kernel.simulated;
    if (has_head(report, selection))
        print_head(report);
    json_overview = report->overview;
    if (json_overview)
        cli_json_set_last(put_overview);
    int status =
        report->args->advice ? print_advice(report, selection, err) : print_lines(report, selection, err);
    if (status == 0)
        print_footer(report, selection, shown_waste_ratio(report));
    if (status == 0 && report->shown > 0 && has_head(report, selection))
        print_next(report, selection);
    if (status == 0 && simulated)
        cli_note_simulated(report->command, selection);
    return status;
}

int top_print(const struct top_report *report, struct occ_error *err)
{
    const struct top_args *args = report->args;
    struct cli_column table[TOP_COLUMNS_MAX];
    struct cli_selection selection;
    top_copy_columns(top_by_of(args), table);
    if (top_by_of(args) == OCC_TOP_BY_GPU && cluster_url(&args->history))
        top_leave_unknown(table);
    if (!report->overview)
        top_use_kernel_time(table);
    top_sort(report->top, args->order);
    mark_defaults(table, args);
    mark_known(table, args, report->top, report->shown);
    int status = cli_output_choose(&args->history.list.output, table, &selection, err);
    top_name_rows(top_by_of(args), table);
    return status == 0 ? print(report, &selection, err) : status;
}
