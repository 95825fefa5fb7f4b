/*
 * occq top: kernels by what they waste. One row a kernel and device, from the rollups; sorting and shares are done
 * here. One thread.
 */
#include "cli/commands.h"
#include "cli/query.h"
#include "cli/usage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/cleanup.h"

struct top_args {
    struct cli_args common;
    struct cli_filter filter;
    struct cli_output output;
    const char *by, *cause; /* a cause: its word */
    double min_loss;
    int64_t number;
};

/* A row and what it is of the whole. */
struct top_line {
    const struct occ_top_row *row;
    double share;
};

#define GETTER(name, set, expression)                                                                        \
    static void get_##name(const struct cli_column *column, const void *line_pointer,                        \
                           struct cli_value *value)                                                          \
    {                                                                                                        \
        (void)column;                                                                                        \
        const struct occ_top_row *row = ((const struct top_line *)line_pointer)->row;                        \
        set(value, expression);                                                                              \
    }

static double mean_ns(const struct occ_top_row *row)
{
    return row->launches ? (double)row->total_ns / (double)row->launches : NAN;
}

/* Waves are known when the shape could be analysed. */
static double waves_of(const struct occ_top_row *row)
{
    return isnan(row->theoretical) ? NAN : row->waves;
}

static void set_if_analysed(struct cli_value *value, const struct occ_top_row *row, uint64_t number)
{
    if (!isnan(row->theoretical))
        cli_set_unsigned(value, number);
}

static const char *text_or_none(const char *text)
{
    return text[0] ? text : NULL;
}

GETTER(kernel, cli_set_string, row->short_name)
GETTER(launches, cli_set_unsigned, row->launches)
GETTER(time, cli_set_unsigned, row->total_ns)
GETTER(theoretical, cli_set_real, row->theoretical)
GETTER(expected, cli_set_real, row->expected_achieved)
GETTER(elapsed, cli_set_real, row->expected_elapsed)
GETTER(achieved, cli_set_real, row->achieved)
GETTER(error, cli_set_real, row->achieved_error *OCC_ERRORS_OF_95_PERCENT)
GETTER(measured_elapsed, cli_set_real, row->elapsed)
GETTER(elapsed_error, cli_set_real, row->elapsed_error *OCC_ERRORS_OF_95_PERCENT)
GETTER(measured, cli_set_real, row->measured_share)
GETTER(used, cli_set_real, row->used)
GETTER(waves, cli_set_real, waves_of(row))
GETTER(limiters, cli_set_string, text_or_none(row->limiters))
GETTER(cause, cli_set_string, text_or_none(row->main_cause))
GETTER(cause_share, cli_set_real, row->main_cause[0] ? row->main_cause_ratio : NAN)
GETTER(waste, cli_set_real, isnan(row->theoretical) ? NAN : row->waste_warp_seconds)
GETTER(registers, cli_set_unsigned, row->registers)
GETTER(block, cli_set_unsigned, row->block_threads)
GETTER(device, cli_set_string, row->device_name)
GETTER(mean, cli_set_real, mean_ns(row))
GETTER(min, cli_set_unsigned, row->min_ns)
GETTER(max, cli_set_unsigned, row->max_ns)
GETTER(shapes, cli_set_unsigned, row->shapes)
GETTER(kernel_id, cli_set_integer, row->kernel)
GETTER(device_id, cli_set_integer, row->device)
GETTER(demangled, cli_set_string, row->demangled)
GETTER(mangled, cli_set_string, row->mangled)
GETTER(simulated, cli_set_bool, row->simulated)

static void get_share(const struct cli_column *column, const void *line, struct cli_value *value)
{
    (void)column;
    cli_set_real(value, ((const struct top_line *)line)->share);
}

static void get_part(const struct cli_column *column, const void *line, struct cli_value *value)
{
    cli_set_real(value, ((const struct top_line *)line)->row->part[column->index]);
}

static void get_full_waves(const struct cli_column *column, const void *line, struct cli_value *value)
{
    (void)column;
    const struct occ_top_row *row = ((const struct top_line *)line)->row;
    set_if_analysed(value, row, row->full_waves);
}

static void get_partial_blocks(const struct cli_column *column, const void *line, struct cli_value *value)
{
    (void)column;
    const struct occ_top_row *row = ((const struct top_line *)line)->row;
    set_if_analysed(value, row, row->partial_blocks);
}

static void get_design(const struct cli_column *column, const void *line, struct cli_value *value)
{
    (void)column;
    const struct occ_top_row *row = ((const struct top_line *)line)->row;
    if (!isnan(row->theoretical))
        cli_set_design(value, row->design);
}

static void get_notes(const struct cli_column *column, const void *line, struct cli_value *value)
{
    (void)column;
    const struct occ_top_row *row = ((const struct top_line *)line)->row;
    cli_set_notes(value, row->simulated, row->design);
}

/* One column for each cause, called as it is. */
#define CAUSE_COLUMN(name, word, text)                                                                       \
    {word, "lost_" word "_ratio", CLI_RATIO, 0, text " (model)", get_part, OCC_CAUSE_##name},
#define MEASURED_COLUMN(name, word, text, gain)                                                              \
    {word, "lost_" word "_ratio", CLI_RATIO, 0, text, get_part, OCC_PART_##name},

static const struct cli_column columns[] = {
    {"id", "kernel_id", CLI_PLAIN, CLI_DEFAULT, "the kernel's number in the history, for occq show",
     get_kernel_id, 0},
    {"kernel", "kernel", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS, "short name", get_kernel, 0},
    {"launches", "launches", CLI_PLAIN, CLI_DEFAULT, "launches that fit the filter", get_launches, 0},
    {"time", "total_ns", CLI_DURATION, CLI_DEFAULT, "sum of their durations", get_time, 0},
    {"share", "share_ratio", CLI_RATIO, CLI_DEFAULT | CLI_SPARE, "part of the time of all kernels that fit",
     get_share, 0},
    {"theor", "theoretical", CLI_RATIO, CLI_DEFAULT,
     "theoretical occupancy: resident warps that the launch's resources allow / most warps of an SM",
     get_theoretical, 0},
    {"expect", "expected_achieved", CLI_RATIO, CLI_DEFAULT,
     "what a balanced grid of that size would reach, over SM-active cycles (model, not measured)",
     get_expected, 0},
    {"achieved", "achieved", CLI_RATIO, 0,
     "measured warp-cycles / (SM-active cycles x most warps), over the shapes that counters saw; shown by "
     "default where "
     "there are any",
     get_achieved, 0},
    {"error", "achieved_error_ratio", CLI_RATIO, 0, "achieved is within +- this with 95 %", get_error, 0},
    {"expect_elapsed", "expected_elapsed", CLI_RATIO, 0,
     "what a balanced grid of that size would reach, over all SMs' cycles (model, not measured)", get_elapsed,
     0},
    {"elapsed", "elapsed", CLI_RATIO, 0,
     "measured warp-cycles / (all SMs' cycles x most warps), over the shapes that counters saw",
     get_measured_elapsed, 0},
    {"elapsed_error", "elapsed_error_ratio", CLI_RATIO, 0, "elapsed is within +- this with 95 %",
     get_elapsed_error, 0},
    {"measured", "measured_ratio", CLI_RATIO, 0, "part of the time that is of shapes that counters saw",
     get_measured, 0},
    {"waves", "waves", CLI_FACTOR, CLI_DEFAULT | CLI_SPARE, "waves of the shape with most time", get_waves,
     0},
    {"full_waves", "full_waves", CLI_PLAIN, 0, "full waves of that shape", get_full_waves, 0},
    {"partial", "partial_blocks", CLI_PLAIN, 0, "blocks in the partial last wave of that shape",
     get_partial_blocks, 0},
    {"limiters", "limiters", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS,
     "what limits the blocks per SM (all that tie), of the shape with most time", get_limiters, 0},
    {"cause", "main_cause", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, "largest cause of lost occupancy", get_cause,
     0},
    {"loss", "main_cause_ratio", CLI_RATIO, CLI_DEFAULT | CLI_SPARE,
     "part of the occupancy of all SMs that this cause takes; with what the others take and used: 100 %",
     get_cause_share, 0},
    {"used", "used_ratio", CLI_RATIO, 0,
     "part of the occupancy of all SMs that is used: elapsed of shapes that counters saw, expect_elapsed of "
     "others",
     get_used, 0},
    {"waste", "waste_warp_seconds", CLI_AMOUNT, CLI_DEFAULT,
     "warp-seconds: duration x SMs x warps that were not resident (measured, else model)", get_waste, 0},
    {"regs", "registers_per_thread", CLI_PLAIN, CLI_DEFAULT | CLI_SPARE,
     "registers per thread of the shape with most time", get_registers, 0},
    {"block", "block_threads", CLI_PLAIN, CLI_DEFAULT | CLI_SPARE,
     "threads per block of the shape with most time", get_block, 0},
    {"shapes", "shapes", CLI_PLAIN, 0, "different launch configurations", get_shapes, 0},
    {"mean", "mean_ns", CLI_DURATION, 0, "mean duration", get_mean, 0},
    {"min", "min_ns", CLI_DURATION, 0, "shortest", get_min, 0},
    {"max", "max_ns", CLI_DURATION, 0, "longest", get_max, 0},
    {"device_id", "device_id", CLI_PLAIN, 0, "the device's number in the history", get_device_id, 0},
    {"demangled", "demangled", CLI_PLAIN, CLI_LEFT | CLI_CUTS, "full name", get_demangled, 0},
    {"mangled", "mangled", CLI_PLAIN, CLI_LEFT | CLI_CUTS, "name as the driver has it", get_mangled, 0},
    {"device", "device", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS | CLI_SPARE, "device", get_device, 0},
    {"design", "design", CLI_PLAIN, CLI_LEFT,
     "marks of kernels that are low by design: persistent, one_block_smem, cluster", get_design, 0},
    {"simulated", "simulated", CLI_PLAIN, CLI_LEFT, "whether the device was a simulated one", get_simulated,
     0},
    OCC_CAUSES(CAUSE_COLUMN) OCC_MEASURED_CAUSES(MEASURED_COLUMN) /* */
    {"notes", "notes", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_TEXT_ONLY, "simulated; low by design",
     get_notes, 0},
    {NULL, NULL, CLI_PLAIN, 0, NULL, NULL, 0},
};

/* ---- order ---- */

static int descending(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a < b) - (a > b);
}

/* Measured where it was. */
static double best_achieved(const struct occ_top_row *row)
{
    return isnan(row->achieved) ? row->expected_achieved : row->achieved;
}

/* Rows that are equal keep one order, so that two calls print the same. */
static int by_identity(const struct occ_top_row *a, const struct occ_top_row *b)
{
    return a->kernel != b->kernel ? (a->kernel > b->kernel) - (a->kernel < b->kernel)
                                  : (a->device > b->device) - (a->device < b->device);
}

#define ORDER(name, comparison)                                                                              \
    static int order_##name(const void *left, const void *right)                                             \
    {                                                                                                        \
        const struct occ_top_row *a = left, *b = right;                                                      \
        int order = comparison;                                                                              \
        return order ? order : by_identity(a, b);                                                            \
    }

ORDER(waste, descending(a->waste_warp_seconds, b->waste_warp_seconds))
ORDER(time, (a->total_ns < b->total_ns) - (a->total_ns > b->total_ns))
ORDER(launches, (a->launches < b->launches) - (a->launches > b->launches))
ORDER(occupancy, descending(-best_achieved(a), -best_achieved(b)))

#define CAUSE_WORD(name, word, text)          word,
#define MEASURED_WORD(name, word, text, gain) word,
static const char *const cause_words[] = {OCC_CAUSES(CAUSE_WORD) OCC_MEASURED_CAUSES(MEASURED_WORD) NULL};
static const char *const order_words[] = {"waste", "time", "launches", "occupancy",
                                          OCC_CAUSES(CAUSE_WORD) OCC_MEASURED_CAUSES(MEASURED_WORD) NULL};
static int (*const orders[])(const void *, const void *) = {order_waste, order_time, order_launches,
                                                            order_occupancy};

/* OCC_PART_COUNT: it is none. */
static unsigned part_of(const char *word)
{
    unsigned part = 0;
    while (part < OCC_PART_COUNT && (!word || strcmp(cause_words[part], word) != 0))
        part++;
    return part;
}

static int order_part(const void *left, const void *right, void *part)
{
    const struct occ_top_row *a = left, *b = right;
    unsigned i = *(const unsigned *)part;
    int order = descending(a->part[i], b->part[i]);
    return order ? order : by_identity(a, b);
}

static void sort(struct occ_top *top, const char *by)
{
    unsigned part = part_of(by);
    if (top->n < 2)
        return;
    if (part < OCC_PART_COUNT)
        qsort_r(top->rows, top->n, sizeof *top->rows, order_part, &part);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (strcmp(order_words[i], by) == 0)
            qsort(top->rows, top->n, sizeof *top->rows, orders[i]);
}

/* ---- filter ---- */

#define SHOWS_AS_SOMETHING 0.0005 /* 0.1 % when rounded */

/* Keeps what loses enough: to the cause that was asked for, else to its largest. */
static void filter_losses(struct occ_top *top, const struct top_args *args)
{
    unsigned part = part_of(args->cause);
    double least = args->min_loss > 0 ? args->min_loss : SHOWS_AS_SOMETHING;
    size_t kept = 0;
    if (!args->cause && !(args->min_loss > 0))
        return;
    for (size_t i = 0; i < top->n; i++) {
        const struct occ_top_row *row = &top->rows[i];
        double loss = part < OCC_PART_COUNT ? row->part[part]
                      : row->main_cause[0]  ? row->main_cause_ratio
                                            : NAN;
        if (loss >= least)
            top->rows[kept++] = *row;
    }
    top->n = kept;
}

/* ---- columns ---- */

static void mark_default(struct cli_column *table, bool is_wanted(const struct cli_column *, const void *),
                         const void *context)
{
    for (; table->name; table++)
        if (is_wanted(table, context))
            table->flags |= CLI_DEFAULT;
}

static bool is_achieved(const struct cli_column *column, const void *unused)
{
    (void)unused;
    return column->get == get_achieved;
}

/* The cause that rows were sorted or chosen by. */
static bool is_asked_for(const struct cli_column *column, const void *context)
{
    const struct top_args *args = context;
    return column->get == get_part &&
           ((unsigned)column->index == part_of(args->by) || (unsigned)column->index == part_of(args->cause));
}

static bool any_achieved(const struct occ_top *top)
{
    for (size_t i = 0; i < top->n; i++)
        if (!isnan(top->rows[i].achieved))
            return true;
    return false;
}

/* ---- the command ---- */

static int print(const struct occ_top *top, size_t shown, enum cli_format format,
                 const struct cli_selection *selection, struct occ_error *err)
{
    _cleanup_(cli_table_freep) struct cli_table *table = NULL;
    double all_ns = 0;
    int status = cli_table_new(format, stdout, "top", selection, &table, err);
    for (size_t i = 0; i < top->n; i++)
        all_ns += (double)top->rows[i].total_ns;
    for (size_t i = 0; i < shown && status == 0; i++) {
        struct top_line line = {&top->rows[i], all_ns > 0 ? (double)top->rows[i].total_ns / all_ns : NAN};
        status = cli_table_add(table, &line, err);
    }
    return status == 0 ? cli_table_finish(table, err) : status;
}

static bool any_simulated(const struct occ_top *top, size_t shown)
{
    for (size_t i = 0; i < shown; i++)
        if (top->rows[i].simulated)
            return true;
    return false;
}

/* Sorts, and prints the first rows. What are the default columns depends on what is known. */
static int print_top(struct occ_top *top, size_t shown, const struct top_args *args, struct occ_error *err)
{
    struct cli_column table[sizeof columns / sizeof *columns];
    struct cli_selection selection;
    enum cli_format format;
    memcpy(table, columns, sizeof table);
    mark_default(table, is_asked_for, args);
    if (any_achieved(top))
        mark_default(table, is_achieved, NULL);
    sort(top, args->by);
    int status = cli_output_choose(&args->output, table, &format, &selection, err);
    return status == 0 ? print(top, shown, format, &selection, err) : status;
}

static int ask(const struct cli_command *command, const struct top_args *args)
{
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(cli_store_closep) struct occ_store *store = NULL;
    struct occ_filter filter = cli_filter_store(&args->filter);
    struct occ_top top = {0};
    if (cli_open_history(&args->common, &store, &err) != 0 || occ_store_top(store, &filter, &top, &err) != 0)
        return cli_failure(command, &err);
    cli_say_timeless(command, store, &args->filter);
    filter_losses(&top, args);
    size_t shown = top.n < (size_t)args->number ? top.n : (size_t)args->number;
    int status = print_top(&top, shown, args, &err) == 0 ? CLI_EXIT_OK : cli_failure(command, &err);
    if (status == CLI_EXIT_OK && any_simulated(&top, shown))
        cli_say_simulated(command);
    if (status == CLI_EXIT_OK && shown == 0)
        status = cli_nothing(command, "no launches fit");
    occ_top_free(&top);
    return status;
}

static int run(const struct cli_command *command, char **argv)
{
    struct top_args args = {.by = "waste", .number = 20};
    struct cli_selection selection;
    enum cli_format format;
    struct occ_error err = OCC_ERROR_INIT;
    int status = 0;
    if (!cli_start(command, argv, &args.common, &status))
        return status;
    if (cli_filter_check(&args.filter, &err) != 0 ||
        cli_output_choose(&args.output, columns, &format, &selection, &err) != 0)
        return cli_usage_error(command, &err);
    return ask(command, &args);
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    {0, "low-occupancy", CLI_PERCENT, offsetof(struct top_args, filter.below_ratio), "PCT",
     "only shapes whose achieved occupancy is below PCT percent (default 50): as measured where it was, else "
     "as expected",
     "50", NULL, 0, 0},
    {0, "cause", CLI_WORD, offsetof(struct top_args, cause), "CAUSE",
     "only kernels that lose something to this cause; causes are called as their columns", NULL, cause_words,
     0, 0},
    {0, "min-loss", CLI_PERCENT, offsetof(struct top_args, min_loss), "PCT",
     "only kernels that lose PCT percent or more to that cause, without --cause to their largest", NULL, NULL,
     0, 0},
    CLI_OPTIONS_PERIOD(struct top_args),
    CLI_OPTION_RUN(struct top_args),
    CLI_OPTION_KERNEL(struct top_args),
    CLI_OPTION_DEVICE(struct top_args),
    {0, "by", CLI_WORD, offsetof(struct top_args, by), "ORDER",
     "waste (default), time, launches, occupancy (lowest first; as measured where it was, else as expected), "
     "or a cause "
     "(largest loss first)",
     NULL, order_words, 0, 0},
    {'n', "number", CLI_NUMBER, offsetof(struct top_args, number), "N", "at most N rows (default 20)", NULL,
     NULL, 1, 1000000000},
    CLI_OPTION_COLUMNS(struct top_args),
    CLI_OPTION_JSON(struct top_args),
    CLI_OPTION_CSV(struct top_args),
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

static const struct cli_example examples[] = {
    {"occq top --low-occupancy", "what wastes most, of the launches below 50 %"},
    {"occq top --since 1h --by time -n 5", "the last hour's five longest"},
    {"occq top --cause between --min-loss 10 --by between",
     "which kernels lose 10 % or more to unequal blocks"},
    {"occq top --kernel gemm -o +demangled --json", "all about some kernels, for a program"},
    {NULL, NULL},
};

const struct cli_command cli_top = {
    .program = "occq",
    .name = "top",
    .operands = "",
    .summary = "kernels by what they waste",
    .description =
        "Lists kernels with their occupancy, what limits it, and what the missing part costs. The "
        "default order is "
        "by wasted warp-seconds (duration x SMs x warps that were not resident), not by percent: "
        "a kernel at 12 % "
        "that runs for 3 microseconds is nobody's problem.\n\n"
        "A kernel that ran on several devices has a row for each. Means are weighted with time. What "
        "counters measured is a mean over the shapes that they saw; column measured says how much of the "
        "time those are.",
    .options = options,
    .columns = columns,
    .examples = examples,
    .run = run,
};
