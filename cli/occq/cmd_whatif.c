/*
 * occq what-if: the recorded launches, analysed again for another GPU or MIG slice. One row a kernel and device that it
 * ran on. What the driver chose on that device (carve-out, active clusters) does not count on the other one; registers
 * and durations are taken as they were. One thread.
 */
#include "cli/occq/calc/calc_target.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "cli/usage.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/cleanup.h"

struct whatif_args {
    struct cli_args common;
    struct cli_filter filter;
    struct cli_output output;
    const char *gpu;
    int64_t number;
};

/* Sums of one side over shapes: ratios times nanoseconds, and the shape with most time. */
struct side {
    double ns, theoretical, achieved, elapsed, waste;
    uint64_t most_ns;
    struct occ_result most;
};

/* A kernel on the device that it ran on. `before` holds the shapes that `after` holds, as far as there are any. */
struct whatif_row {
    const struct occ_shape_row *first;
    struct side before, after;
    uint64_t launches, total_ns;
    uint32_t shapes, refused, not_analysed;
    enum occ_status why; /* the first refusal */
};

struct whatif_rows {
    struct whatif_row *list;
    size_t n;
};

/* ---- adding up ---- */

static void add(struct side *side, const struct occ_shape_row *row, const struct occ_device *device,
                const struct occ_result *r)
{
    double ns = (double)row->total_ns;
    double warps = (double)device->sm_count * r->max_warps_per_sm;
    side->ns += ns;
    side->theoretical += ns * r->theoretical;
    side->achieved += ns * r->expected_achieved;
    side->elapsed += ns * r->expected_elapsed;
    side->waste += ns * 1e-9 * warps * (1 - r->expected_elapsed);
    if (row->total_ns >= side->most_ns) {
        side->most_ns = row->total_ns;
        side->most = *r;
    }
}

/* As the other device's driver would get it; one with the same SMs would choose the same carve-out. */
static struct occ_launch launch_elsewhere(const struct occ_shape_row *row, const struct occ_device *device)
{
    struct occ_launch launch = row->launch;
    if (device->cc != row->limits.cc)
        launch.smem_config_bytes = 0;
    launch.max_active_clusters = 0;
    launch.smem_optin_known = false;
    if (launch.carveout_percent < -1 || launch.carveout_percent > 100)
        launch.carveout_percent = -1;
    return launch;
}

/* `alone`: what ran there, of the shapes that cannot run here. */
static void add_shape(struct whatif_row *out, struct side *alone, const struct occ_shape_row *row,
                      const struct occ_device *device)
{
    struct occ_launch launch = launch_elsewhere(row, device);
    struct occ_result result;
    enum occ_status status = occ_analyse(device, &launch, &result);
    out->shapes++;
    out->launches += row->launches;
    out->total_ns += row->total_ns;
    out->not_analysed += !row->analysed;
    if (status != OCC_OK) {
        out->why = out->refused++ == 0 ? status : out->why;
        if (row->analysed)
            add(alone, row, &row->limits, &row->result);
        return;
    }
    add(&out->after, row, device, &result);
    if (row->analysed)
        add(&out->before, row, &row->limits, &row->result);
}

static int by_kernel(const void *left, const void *right)
{
    const struct occ_shape_row *a = *(const struct occ_shape_row *const *)left;
    const struct occ_shape_row *b = *(const struct occ_shape_row *const *)right;
    if (a->kernel != b->kernel)
        return (a->kernel > b->kernel) - (a->kernel < b->kernel);
    if (a->device != b->device)
        return (a->device > b->device) - (a->device < b->device);
    return (a->id > b->id) - (a->id < b->id);
}

static int by_time(const void *left, const void *right)
{
    const struct whatif_row *a = left, *b = right;
    if (a->total_ns != b->total_ns)
        return (a->total_ns < b->total_ns) - (a->total_ns > b->total_ns);
    return by_kernel(&a->first, &b->first);
}

/* One row of `sorted[0...n)`, which are one kernel's on one device. */
static struct whatif_row evaluate(const struct occ_shape_row *const *sorted, size_t n,
                                  const struct occ_device *device)
{
    struct whatif_row row = {.first = sorted[0]};
    struct side alone = {.ns = 0};
    for (size_t i = 0; i < n; i++)
        add_shape(&row, &alone, sorted[i], device);
    if (row.after.most_ns == 0 && row.after.ns <= 0)
        row.before = alone;
    return row;
}

static int evaluate_all(const struct occ_shapes *shapes, const struct occ_device *device,
                        struct whatif_rows *rows, struct occ_error *err)
{
    _cleanup_(occ_freep) const struct occ_shape_row **sorted =
        calloc(shapes->n + 1, sizeof(struct occ_shape_row *));
    rows->list = calloc(shapes->n + 1, sizeof *rows->list);
    if (!sorted || !rows->list)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < shapes->n; i++)
        sorted[i] = &shapes->rows[i];
    if (shapes->n > 1)
        qsort(sorted, shapes->n, sizeof *sorted, by_kernel);
    for (size_t i = 0, end; i < shapes->n; i = end) {
        for (end = i + 1; end < shapes->n && sorted[end]->kernel == sorted[i]->kernel &&
                          sorted[end]->device == sorted[i]->device;)
            end++;
        rows->list[rows->n++] = evaluate(sorted + i, end - i, device);
    }
    if (rows->n > 1)
        qsort(rows->list, rows->n, sizeof *rows->list, by_time);
    return 0;
}

/* ---- columns ---- */

#define GETTER(name, set, expression)                                                                        \
    static void get_##name(const struct cli_column *column, const void *row_pointer,                         \
                           struct cli_value *value)                                                          \
    {                                                                                                        \
        (void)column;                                                                                        \
        const struct whatif_row *row = row_pointer;                                                          \
        set(value, expression);                                                                              \
    }

static double mean(const struct side *side, double sum)
{
    return side->ns > 0 ? sum / side->ns : NAN;
}

static double when_known(const struct side *side, double number)
{
    return side->ns > 0 ? number : NAN;
}

static void set_limiters(struct cli_value *value, const struct side *side)
{
    if (side->ns > 0)
        cli_set_string(value, occ_limiters_text(side->most.limiters, value->scratch, sizeof value->scratch));
}

GETTER(id, cli_set_integer, row->first->kernel)
GETTER(kernel, cli_set_string, row->first->short_name)
GETTER(demangled, cli_set_string, row->first->demangled)
GETTER(device, cli_set_string, row->first->device_name)
GETTER(device_id, cli_set_integer, row->first->device)
GETTER(launches, cli_set_unsigned, row->launches)
GETTER(time, cli_set_unsigned, row->total_ns)
GETTER(shapes, cli_set_unsigned, row->shapes)
GETTER(refused, cli_set_unsigned, row->refused)
GETTER(why, cli_set_string, row->refused ? occ_status_text(row->why) : NULL)
GETTER(simulated, cli_set_bool, row->first->simulated)
GETTER(theoretical_before, cli_set_real, mean(&row->before, row->before.theoretical))
GETTER(theoretical_after, cli_set_real, mean(&row->after, row->after.theoretical))
GETTER(achieved_before, cli_set_real, mean(&row->before, row->before.achieved))
GETTER(achieved_after, cli_set_real, mean(&row->after, row->after.achieved))
GETTER(elapsed_before, cli_set_real, mean(&row->before, row->before.elapsed))
GETTER(elapsed_after, cli_set_real, mean(&row->after, row->after.elapsed))
GETTER(waves_before, cli_set_real, when_known(&row->before, row->before.most.waves))
GETTER(waves_after, cli_set_real, when_known(&row->after, row->after.most.waves))
GETTER(waste_before, cli_set_real, when_known(&row->before, row->before.waste))
GETTER(waste_after, cli_set_real, when_known(&row->after, row->after.waste))
GETTER(limiters_before, set_limiters, &row->before)
GETTER(limiters_after, set_limiters, &row->after)

static const struct cli_column columns[] = {
    {"id", "kernel_id", CLI_PLAIN, CLI_DEFAULT, "the kernel's number in the history, for occq show", get_id,
     0},
    {"kernel", "kernel", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS, "short name", get_kernel, 0},
    {"time", "total_ns", CLI_DURATION, CLI_DEFAULT, "time of its launches, as recorded", get_time, 0},
    {"theor", "theoretical_before", CLI_RATIO, CLI_DEFAULT, "theoretical occupancy where it ran",
     get_theoretical_before, 0},
    {"theor_then", "theoretical_after", CLI_RATIO, CLI_DEFAULT, "the same on the other GPU",
     get_theoretical_after, 0},
    {"expect", "expected_achieved_before", CLI_RATIO, CLI_DEFAULT,
     "what a balanced grid of that size would reach, over the SMs' active cycles (model), where it ran",
     get_achieved_before, 0},
    {"expect_then", "expected_achieved_after", CLI_RATIO, CLI_DEFAULT, "the same on the other GPU",
     get_achieved_after, 0},
    {"waves", "waves_before", CLI_FACTOR, CLI_DEFAULT | CLI_SPARE,
     "waves of the shape with most time, where it ran", get_waves_before, 0},
    {"waves_then", "waves_after", CLI_FACTOR, CLI_DEFAULT | CLI_SPARE, "the same on the other GPU",
     get_waves_after, 0},
    {"limiters", "limiters_before", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS,
     "what limits the blocks per SM of the shape with most time, where it ran", get_limiters_before, 0},
    {"limiters_then", "limiters_after", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS,
     "the same on the other GPU", get_limiters_after, 0},
    {"waste", "waste_warp_seconds_before", CLI_AMOUNT, CLI_DEFAULT,
     "warp-seconds: duration x SMs x warps that were not resident (model), where it ran", get_waste_before,
     0},
    {"waste_then", "waste_warp_seconds_after", CLI_AMOUNT, CLI_DEFAULT,
     "the same on the other GPU, if the launches took as long there", get_waste_after, 0},
    {"refused", "refused_shapes", CLI_PLAIN, CLI_DEFAULT,
     "launch configurations that cannot run on the other GPU", get_refused, 0},
    {"why", "refused_because", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, "why (the first of them)", get_why, 0},
    {"shapes", "shapes", CLI_PLAIN, 0, "different launch configurations", get_shapes, 0},
    {"launches", "launches", CLI_PLAIN, 0, "launches that fit the filter", get_launches, 0},
    {"expect_elapsed", "expected_elapsed_before", CLI_RATIO, 0,
     "as expect, over all SMs' cycles, where it ran", get_elapsed_before, 0},
    {"expect_elapsed_then", "expected_elapsed_after", CLI_RATIO, 0, "the same on the other GPU",
     get_elapsed_after, 0},
    {"device", "device", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS | CLI_SPARE,
     "the device that it ran on", get_device, 0},
    {"device_id", "device_id", CLI_PLAIN, 0, "its number in the history", get_device_id, 0},
    {"demangled", "demangled", CLI_PLAIN, CLI_LEFT | CLI_CUTS, "full name", get_demangled, 0},
    {"simulated", "simulated", CLI_PLAIN, CLI_LEFT, "whether that device was a simulated one", get_simulated,
     0},
    {NULL, NULL, CLI_PLAIN, 0, NULL, NULL, 0},
};

/* ---- the command ---- */

static int print(const struct whatif_rows *rows, size_t shown, enum cli_format format,
                 const struct cli_selection *selection, struct occ_error *err)
{
    _cleanup_(cli_table_freep) struct cli_table *table = NULL;
    int status = cli_table_new(format, stdout, "kernels", selection, &table, err);
    for (size_t i = 0; i < shown && status == 0; i++)
        status = cli_table_add(table, &rows->list[i], err);
    return status == 0 ? cli_table_finish(table, err) : status;
}

/* Shapes that have no numbers, on either side. */
static void say_left_out(const struct cli_command *command, const struct calc_target *target,
                         const struct whatif_rows *rows)
{
    uint64_t refused = 0, not_analysed = 0;
    for (size_t i = 0; i < rows->n; i++) {
        refused += rows->list[i].refused;
        not_analysed += rows->list[i].not_analysed;
    }
    cli_flush_stdout();
    if (refused)
        (void)fprintf(stderr, "%s %s: %" PRIu64 " shape%s cannot run on %s\n", command->program,
                      command->name, refused, refused == 1 ? "" : "s", target->title);
    if (not_analysed)
        (void)fprintf(stderr, "%s %s: %" PRIu64 " shape%s could not be analysed where %s ran\n",
                      command->program, command->name, not_analysed, not_analysed == 1 ? "" : "s",
                      not_analysed == 1 ? "it" : "they");
}

static void rows_release(struct whatif_rows *rows)
{
    free(rows->list);
}

static int ask(const struct cli_command *command, const struct whatif_args *args,
               const struct calc_target *target, enum cli_format format,
               const struct cli_selection *selection)
{
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(cli_store_closep) struct occ_store *store = NULL;
    _cleanup_(occ_shapes_free) struct occ_shapes shapes = {0};
    _cleanup_(rows_release) struct whatif_rows rows = {0};
    struct occ_filter filter = cli_filter_store(&args->filter);
    if (cli_open_history(&args->common, &store, &err) != 0 ||
        occ_store_shapes(store, &filter, &shapes, &err) != 0 ||
        evaluate_all(&shapes, &target->device, &rows, &err) != 0)
        return cli_failure(command, &err);
    cli_say_timeless(command, store, &args->filter);
    size_t shown = args->number && rows.n > (size_t)args->number ? (size_t)args->number : rows.n;
    bool simulated = false;
    if (print(&rows, shown, format, selection, &err) != 0)
        return cli_failure(command, &err);
    for (size_t i = 0; i < shown; i++)
        simulated |= rows.list[i].first->simulated;
    if (simulated)
        cli_say_simulated(command);
    say_left_out(command, target, &rows);
    return rows.n ? CLI_EXIT_OK : cli_nothing(command, "no launches fit");
}

static int run(const struct cli_command *command, char **argv)
{
    struct whatif_args args = {0};
    struct cli_selection selection;
    struct calc_target target;
    enum cli_format format;
    struct occ_error err = OCC_ERROR_INIT;
    int status = 0;
    if (!cli_start(command, argv, &args.common, &status))
        return status;
    if (!args.gpu)
        (void)occ_fail(&err, OCC_E_INVALID, "--gpu is missing ('occq gpus' lists them)");
    else if (calc_target_named(args.gpu, &target, &err) != 0)
        (void)occ_error_prefix(&err, "--gpu");
    if (err.code != 0 || cli_filter_check(&args.filter, &err) != 0 ||
        cli_output_choose(&args.output, columns, &format, &selection, &err) != 0)
        return cli_usage_error(command, &err);
    return ask(command, &args, &target, format, &selection);
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    {0, "gpu", CLI_TEXT, offsetof(struct whatif_args, gpu), "NAME",
     "the other GPU or MIG slice ('occq gpus' lists them)", NULL, NULL, 0, 0},
    CLI_OPTIONS_PERIOD(struct whatif_args),
    CLI_OPTION_RUN(struct whatif_args),
    CLI_OPTION_KERNEL(struct whatif_args),
    CLI_OPTION_DEVICE(struct whatif_args),
    {'n', "number", CLI_NUMBER, offsetof(struct whatif_args, number), "N",
     "at most N rows, those with most time (default: all)", NULL, NULL, 1, 1000000000},
    CLI_OPTION_COLUMNS(struct whatif_args),
    CLI_OPTION_JSON(struct whatif_args),
    CLI_OPTION_CSV(struct whatif_args),
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

static const struct cli_example examples[] = {
    {"occq what-if --gpu b200", "the whole history on a B200"},
    {"occq what-if --gpu a100-1g.5gb --kernel gemm --since 1d", "some kernels on a MIG slice"},
    {NULL, NULL},
};

const struct cli_command cli_whatif = {
    .program = "occq",
    .name = "what-if",
    .operands = "",
    .summary = "the recorded launches on another GPU",
    .description =
        "Analyses every recorded launch configuration again for another GPU or MIG slice: occupancies, "
        "waves, limiters "
        "and wasted warp-seconds where it ran, and there. Means are weighted with time. A mean is over the "
        "configurations that can run on the other GPU; how many cannot, and why, has columns of its own.\n\n"
        "This is the model. It takes registers per thread and durations as they were recorded; a compiler "
        "may use "
        "other registers for another architecture, and the launches will take another time there.",
    .options = options,
    .columns = columns,
    .examples = examples,
    .run = run,
};
