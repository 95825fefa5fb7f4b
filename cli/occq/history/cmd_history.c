/* occq history: the trend of a kernel, a GPU or runs over hours and weeks, and its changes. One thread. */
#include <langinfo.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/screen.h"
#include "draw/canvas.h"
#include "cli/file.h"
#include "cli/json.h"
#include "cli/table.h"
#include "cli/usage.h"
#include "cli/history/history.h"
#include "cli/history/names.h"
#include "cli/history/sql_table.h"
#include "support/cleanup.h"
#include "support/text.h"
#include "cli/trend/trend.h"

struct trend_args {
    struct history_args history;
    const char *by, *svg;
    double min_change;
};

/* ---- text ---- */

enum { INDENT = 12, ROWS = 6 };

/* Returns the position of a time between the first and the last unit of time, 0 ... 1. */
static double fraction_of(const struct trend *t, int64_t ns)
{
    double first = (double)t->points[0].start_ns, span = (double)t->points[t->n - 1].start_ns - first;
    return span > 0 ? ((double)ns - first) / span : 0;
}

/* Returns the value of the upper dots: the 95th percentile of durations, else the mean. */
static double upper_of(const struct trend_point *point, enum trend_series which)
{
    struct trend_value v = trend_value(point, which);
    return which == TREND_MEAN ? fmax(v.mean, v.high) : v.mean;
}

/* Draws the values of each unit of time. */
static void draw(const struct trend *t, enum trend_series which, double top, struct draw_canvas *canvas)
{
    for (size_t i = 0; i < t->n; i++) {
        const double values[] = {trend_value(&t->points[i], which).mean, upper_of(&t->points[i], which)};
        int x = draw_canvas_x(canvas, fraction_of(t, t->points[i].start_ns));
        for (int k = 0; k < 2 && !isnan(values[k]); k++) {
            int y = draw_canvas_y(canvas, values[k] / top);
            draw_canvas_line(canvas, x, y, y);
        }
    }
}

/* Prints a series on a scale from 0 to the largest value; occupancies to 100 %. */
static void print_series(const struct trend *t, enum trend_series which, bool ascii)
{
    struct draw_canvas canvas;
    char row[DRAW_CANVAS_ROW_BYTES], label[32];
    double top = trend_series[which].unit == CLI_RATIO ? 1 : 0;
    for (size_t i = 0; i < t->n; i++)
        top = fmax(top, upper_of(&t->points[i], which));
    if (!(top > 0))
        return;
    draw_canvas_init(&canvas, draw_canvas_columns(cli_screen_width(), INDENT), ROWS, ascii);
    draw(t, which, top, &canvas);
    (void)fprintf(cli_out(), "  %s%s\n", trend_series[which].name,
                  which == TREND_MEAN ? "; the upper dots: 95th percentile" : trend_series[which].source);
    for (int i = 0; i < ROWS; i++) {
        draw_canvas_row(&canvas, i, row);
        (void)fprintf(cli_out(), "%*s %s%s\n", INDENT - 2,
                      i == 0          ? trend_value_text(which, top, label, sizeof label)
                      : i == ROWS - 1 ? "0"
                                      : "",
                      ascii ? "|" : "\xe2\x94\x82", row);
    }
    (void)fputc('\n', cli_out());
}

/* Prints the lines below the pictures: changes (^ certain, ? possible, / drift), other labels (|), the first
 * and the last unit of time. */
static void print_marks(const struct trend *t)
{
    char marks[2][DRAW_CANVAS_COLUMNS + 1], first[32], last[32];
    int columns = draw_canvas_columns(cli_screen_width(), INDENT);
    for (int i = 0; i < 2; i++)
        (void)snprintf(marks[i], sizeof marks[i], "%*s", columns, "");
    for (size_t i = 0; i < t->n_changes; i++)
        marks[0][lround(fraction_of(t, t->changes[i].start_ns) * (columns - 1))] =
            t->changes[i].possible   ? '?'
            : t->changes[i].is_drift ? '/'
                                     : '^';
    for (size_t i = 0; i < t->n_labels; i++)
        marks[1][lround(fmin(fraction_of(t, t->labels[i].start_ns), 1) * (columns - 1))] = '|';
    for (int i = 0; i < 2; i++) {
        size_t length = (size_t)columns;
        while (length && marks[i][length - 1] == ' ')
            length--;
        if (length)
            (void)fprintf(cli_out(), "%*s  %.*s\n", INDENT - 2, i == 0 ? "changes" : "labels", (int)length,
                          marks[i]);
    }
    (void)trend_time_text(t, t->points[0].start_ns, first, sizeof first);
    (void)trend_time_text(t, t->points[t->n - 1].start_ns, last, sizeof last);
    (void)fprintf(cli_out(), "%*s%-*s %s\n", INDENT, "", columns - (int)strlen(last) - 1, first, last);
}

static void print_labels(const struct trend *t)
{
    enum { SHOWN = 10 };
    char time[32], line[256];
    size_t from = t->n_labels > SHOWN ? t->n_labels - SHOWN : 0;
    (void)fprintf(cli_out(), "%s", t->n_labels ? "\n  labels, the newest\n" : "");
    for (size_t i = from; i < t->n_labels; i++) {
        (void)snprintf(line, sizeof line, "%s: %s",
                       trend_time_text(t, t->labels[i].start_ns, time, sizeof time), t->labels[i].label);
        (void)fprintf(cli_out(), "    ");
        (void)cli_print_wrapped(cli_out(), line, 4, 6);
    }
}

/* Prints an `occq diff` command that compares launches before and after the change. */
static void print_hint(const struct trend_args *args, int64_t change_ns)
{
    const char *db = args->history.list.common.db, *kernel = args->history.filter.kernel;
    _cleanup_(occ_freep) char *quoted_db = db ? occ_text_quote(db) : NULL;
    _cleanup_(occ_freep) char *quoted_kernel = kernel ? occ_text_quote(kernel) : NULL;
    long long seconds = change_ns / 1000000000;
    if ((db && !quoted_db) || (kernel && !quoted_kernel)) {
        cli_screen_lose_text();
        return;
    }
    (void)fprintf(cli_out(), "  why: occq diff%s%s%s%s until:@%lld since:@%lld\n", quoted_db ? " -d " : "",
                  quoted_db ? quoted_db : "", quoted_kernel ? " --kernel " : "",
                  quoted_kernel ? quoted_kernel : "", seconds, seconds);
}

static void print_text(const struct trend_args *args, const struct trend *t)
{
    char line[512];
    bool ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    for (int i = 0; i < TREND_SERIES_COUNT; i++)
        print_series(t, (enum trend_series)i, ascii);
    print_marks(t);
    print_labels(t);
    (void)fprintf(cli_out(), "\n  changes%s\n", t->n_changes ? "" : ": none was found");
    for (size_t i = 0; i < t->n_changes; i++) {
        (void)fprintf(cli_out(), "    ");
        (void)cli_print_wrapped(cli_out(), trend_change_text(t, &t->changes[i], line, sizeof line), 4, 6);
    }
    if (t->n_changes && !t->changes[0].is_drift)
        print_hint(args, t->changes[0].start_ns);
}

static void print_json(const struct trend *t)
{
    struct occ_json json;
    cli_json_begin(&json, cli_out());
    trend_json(&json, t);
    cli_json_end(&json);
}

/* ---- the command ---- */

static int draw_file(const char *path, const struct trend *t, const char *what, struct occ_error *err)
{
    struct cli_file file;
    if (cli_file_open(path, &file, err) != 0)
        return err->code;
    trend_svg(t, what, file.out);
    return cli_file_finish(&file, err);
}

static int print(const struct trend_args *args, const char *what, const struct trend *t,
                 struct occ_error *err)
{
    const struct cli_list_args *list = &args->history.list;
    struct cli_selection selection = list->selection;
    trend_name_zone(t, &selection);
    if (args->svg && draw_file(args->svg, t, what, err) != 0)
        return occ_error_prefix(err, "--svg");
    if (list->output.csv || list->output.columns)
        return cli_table_print("points", &selection, t->points, t->n, sizeof *t->points, err);
    if (list->output.json)
        print_json(t);
    else
        print_text(args, t);
    return 0;
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct trend_args *args = arguments;
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_filter filter = args->history.filter;
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    _cleanup_(trend_release) struct trend trend = {0};
    const char *kernel = filter.kernel;
    if (cli_open_history(&args->history.list.common, OCC_STORE_READ, &store, &err) != 0)
        return cli_failure(command, &err);
    sql_leave_unknown_times_out(command, store, &filter);
    if (trend_load(store, &filter, args->by, args->min_change, &trend, &err) != 0)
        return cli_failure(command, &err);
    if (trend.n_kernels > 1)
        cli_footer(command, &args->history.list.selection, "%zu kernels match; all of them count",
                   trend.n_kernels);
    if (trend.n && print(args, kernel ? kernel : "all launches", &trend, &err) != 0)
        return cli_failure(command, &err);
    if (trend.simulated)
        cli_note_simulated(command, &args->history.list.selection);
    cli_note_filter(command, store, &args->history.filter);
    sql_note_partial(command, store, &args->history.filter);
    return trend.n
               ? CLI_EXIT_OK
               : sql_no_launches(command, store, &args->history.filter, "no launches match these filters");
}

static int check(void *arguments, struct occ_error *err)
{
    struct trend_args *args = arguments;
    const struct cli_args *common = &args->history.list.common;
    const char *kernel = args->history.filter.kernel = common->operand_count ? common->operands[0] : NULL;
    int status = cli_check_history(args, err);
    return status == 0 && kernel ? cli_check_kernel(kernel, err) : status;
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    CLI_OPTION_EACH_USER,
    CLI_OPTIONS_PERIOD,
    CLI_OPTIONS_RUN,
    CLI_OPTION_EXCLUDE,
    CLI_OPTION_DEVICE("gpu"),
    CLI_OPTION(0, "by", CLI_WORD, struct trend_args, by, "UNIT",
               "minute, hour or day (default: minutes of up to two days, hours of up to a year, else days); "
               "days are "
               "UTC's",
               .words = trend_units),
    CLI_OPTION(0, "min-change", CLI_PERCENT, struct trend_args, min_change, "PCT",
               "changes by less than PCT percent are none (default 5)"),
    CLI_OPTION(0, "svg", CLI_TEXT, struct trend_args, svg, "FILE", "also draw it into an SVG file"),
    CLI_OPTION_NAME,
    CLI_OPTIONS_LIST,
};

const struct cli_command cli_history = {
    .name = "history",
    .group = "Ask",
    .operands = "[KERNEL]",
    .max_operands = 1,
    .is_paged = true,
    .summary = "trend of a kernel, a GPU or runs, with change points",
    .description =
        "Draws the mean time of a launch, the elapsed occupancy and the waste by minutes, hours or days, and "
        "lists when the first two changed. KERNEL is as for 'occq show'; without it all launches count.\n\n"
        "Change points come from E-divisive in windows of 50 units of time, at least three on each side, and "
        "are confirmed by a t test on log durations (p <= 0.000001); units without launches are no "
        "observations. A slow rise or fall is a drift: a line through 16 units or more since the last step. "
        "The newest "
        "one or two units can only be a possible change. Each change is split into the part of the kernels "
        "(of one KERNEL: from its configurations) and the part of their mix, and names the last run that "
        "began then or one unit before.\n\n"
        "Days are cut and shown in UTC, minutes and hours in local time; the screen names the zone. "
        "start_ns counts from 1970 in UTC.\n\n"
        "Occupancy and waste cover all launches: measured launches with their measured values, the others "
        "with expected values; column measured is the measured part of the time. So waste by minutes adds up "
        "to the waste by hours, and to the waste of 'occq top'.",
    .options = options,
    .columns = trend_point_columns,
    .examples = {{"occq history gemm", "a kernel, as long as it is known"},
                 {"occq history --since 30d --gpu 1", "a GPU in a month"}},
    CLI_ARGS(struct trend_args, .min_change = 0.05),
    .check = check,
    .run = run,
};
