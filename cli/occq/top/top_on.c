/* occq top --on GPU: analyses the recorded launches again for another GPU or MIG slice. One row per kernel
 * and device. The driver's choices on the recorded device are not applied to the other device, except a
 * carve-out if both have the same compute capability; registers and durations stay the same. One thread. */
#include "top_forms.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/analysis/calc_target.h"
#include "cli/history/cluster.h"
#include "cli/history/history.h"
#include "cli/history/names.h"
#include "cli/history/sql_table.h"
#include "cli/kernels/elsewhere.h"
#include "cli/screen.h"
#include "support/cleanup.h"
#include "support/map.h"

struct whatif_args {
    struct history_args history;
    const char *gpu;
    struct calc_target target;
};

/* ---- columns ---- */

#define FIELD(name, key, unit, flags, member, help)                                                          \
    CLI_FIELD(name, key, unit, flags, struct elsewhere_row, member, help)
#define EXPECTED "occupancy of a balanced grid of that size (model), "
#define HIGH_END "the same if a block's time is proportional to the blocks that it shares its SM with"

static struct cli_value get_words(const struct cli_column *column, const void *row)
{
    (void)column;
    return cli_string(((const struct elsewhere_row *)row)->words);
}

static const struct cli_column columns[] = {
    FIELD("id", "kernel_id", CLI_PLAIN, CLI_DEFAULT, kernel_id,
          "the kernel's number in the history, for occq show"),
    {.name = "kernel",
     .key = "kernel",
     .flags = CLI_DEFAULT | CLI_LEFT | CLI_CUTS,
     .get = cli_get_string,
     .index = offsetof(struct elsewhere_row, kernel),
     .brief = get_words,
     .help = "its name, see --name"},
    FIELD("device_id", "device_id", CLI_PLAIN, CLI_DEFAULT, device_number,
          "number of the device that it ran on; left out where no kernel ran on several"),
    FIELD("time", "total_duration_ns", CLI_DURATION, CLI_DEFAULT | CLI_SPARE(5), total_ns,
          "sum of its durations, as recorded"),
    FIELD("theor", "theoretical", CLI_RATIO, CLI_DEFAULT | CLI_SPARE(4), here.theoretical,
          "theoretical occupancy where it ran"),
    FIELD("theor_then", "theoretical_then", CLI_RATIO, CLI_DEFAULT | CLI_SPARE(3), there.theoretical,
          "the same on the other GPU"),
    FIELD("expected", "expected", CLI_PLAIN, CLI_DEFAULT | CLI_TEXT_ONLY | CLI_SPARE(2), here.expected,
          "from expect_low to expect_high, where it ran"),
    FIELD("expected_then", "expected_then", CLI_PLAIN, CLI_DEFAULT | CLI_TEXT_ONLY | CLI_SPARE(1),
          there.expected, "the same on the other GPU"),
    FIELD("expect_low", "expected_achieved_low", CLI_RATIO, 0, here.expected_achieved_low,
          EXPECTED "over SM-active cycles, if all waves take equally long, where it ran"),
    FIELD("expect_high", "expected_achieved_high", CLI_RATIO, 0, here.expected_achieved_high, HIGH_END),
    FIELD("expect_low_then", "expected_achieved_low_then", CLI_RATIO, 0, there.expected_achieved_low,
          "expect_low on the other GPU"),
    FIELD("expect_high_then", "expected_achieved_high_then", CLI_RATIO, 0, there.expected_achieved_high,
          "expect_high on the other GPU"),
    FIELD("waves", "waves", CLI_FACTOR, CLI_DEFAULT | CLI_SPARE(10), here.waves,
          "waves of the configuration with most time, where it ran"),
    FIELD("waves_then", "waves_then", CLI_FACTOR, CLI_DEFAULT | CLI_SPARE(10), there.waves,
          "the same on the other GPU"),
    FIELD("limiters", "limiters", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_SPARE(9), here.limiters,
          "occupancy limiters of the configuration with most time, where it ran"),
    FIELD("limiters_then", "limiters_then", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_SPARE(8), there.limiters,
          "the same on the other GPU"),
    FIELD("expect_waste", "expected_waste_warp_seconds", CLI_AMOUNT, 0, here.waste,
          "duration x SMs x maximum warps per SM x (1 - expected_elapsed_low), where it ran"),
    FIELD("waste_then", "expected_waste_warp_seconds_then", CLI_AMOUNT, 0, there.waste,
          "the same on the other GPU, if the launches took as long there"),
    FIELD("refused", "refused_configs", CLI_PLAIN, CLI_DEFAULT | CLI_RARE | CLI_NONZERO | CLI_SPARE(6),
          refused, "number of launch configurations that cannot run on the other GPU"),
    FIELD("why", "refused_because", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS | CLI_SPARE(7),
          refused_because, "the first reason why a launch cannot run there"),
    FIELD("configs", "configs", CLI_PLAIN, 0, configs, "number of launch configurations"),
    FIELD("launches", "launches", CLI_PLAIN, 0, launches, "number of launches that match the filters"),
    FIELD("expect_elapsed_low", "expected_elapsed_low", CLI_RATIO, 0, here.expected_elapsed_low,
          EXPECTED "over the elapsed cycles of all SMs, the low end of its range, where it ran"),
    FIELD("expect_elapsed_high", "expected_elapsed_high", CLI_RATIO, 0, here.expected_elapsed_high, HIGH_END),
    FIELD("expect_elapsed_low_then", "expected_elapsed_low_then", CLI_RATIO, 0, there.expected_elapsed_low,
          "expect_elapsed_low on the other GPU"),
    FIELD("expect_elapsed_high_then", "expected_elapsed_high_then", CLI_RATIO, 0, there.expected_elapsed_high,
          "expect_elapsed_high on the other GPU"),
    FIELD("device", "device", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_SPARE(11), device,
          "name of that device"),
    FIELD("demangled", "kernel_demangled", CLI_PLAIN, CLI_LEFT | CLI_CUTS, demangled, "full name"),
    FIELD("simulated", "simulated", CLI_PLAIN, CLI_LEFT, simulated, "whether that device is a simulated one"),
    CLI_COLUMN_END,
};

/* True if a kernel ran on several devices; the rows of a kernel may have any order. */
static bool needs_device(const struct elsewhere_row *rows, size_t n)
{
    struct occ_map kernels = {0};
    bool is_twice = false;
    for (size_t i = 0; i < n && !is_twice; i++)
        is_twice = occ_map_put(&kernels, (uint64_t)rows[i].kernel_id, (uint32_t)i) != i;
    occ_map_free(&kernels);
    return is_twice;
}

/* Removes the device's number from the text, unless -o names it. */
static void leave_device_out(struct cli_selection *selection)
{
    size_t kept = 0;
    for (size_t i = 0; i < selection->n; i++) {
        if (strcmp(selection->columns[i]->key, "device_id") == 0 && !selection->asked[i])
            continue;
        selection->columns[kept] = selection->columns[i];
        selection->asked[kept++] = selection->asked[i];
    }
    selection->n = kept;
}

/* ---- the sentence above the table ---- */

/* Occupancy that changes by less counts as equal; a ratio. */
#define EQUAL_OCCUPANCY 0.005

static void print_verdict(const struct calc_target *target, const struct elsewhere_row *rows, size_t n)
{
    double ns = 0, here = 0, there = 0;
    size_t more = 0, less = 0, equal = 0;
    uint64_t refused = 0;
    char texts[2][16], cannot[64] = "";
    for (size_t i = 0; i < n; i++) {
        refused += rows[i].refused;
        double now = rows[i].here.expected_elapsed_low, then = rows[i].there.expected_elapsed_low;
        if (!(rows[i].compared_ns > 0))
            continue;
        ns += rows[i].compared_ns;
        here += rows[i].compared_ns * now;
        there += rows[i].compared_ns * then;
        more += then > now + EQUAL_OCCUPANCY;
        less += then < now - EQUAL_OCCUPANCY;
        equal += fabs(then - now) <= EQUAL_OCCUPANCY;
    }
    if (!(ns > 0)) {
        cli_print("Faster on %s? None of the launches can run there.\n", target->title);
        return;
    }
    cli_print("Faster on %s? Not known: the model has no times of other GPUs.\n", target->title);
    if (refused)
        (void)snprintf(cannot, sizeof cannot, "; %" PRIu64 " launch configuration%s cannot run there",
                       refused, refused == 1 ? "" : "s");
    cli_print("Occupancy there: %s of the warp slots instead of %s (model, mean by recorded time); %zu "
              "kernel%s more, %zu less, %zu equal%s.\n",
              cli_percent_text(there / ns, texts[0], sizeof texts[0]),
              cli_percent_text(here / ns, texts[1], sizeof texts[1]), more, more == 1 ? "" : "s", less, equal,
              cannot);
}

/* ---- the command ---- */

/* Notes configurations without numbers on a side. */
static void note_left_out(const struct cli_command *command, const struct calc_target *target,
                          const struct elsewhere_row *rows, size_t n, bool is_text)
{
    uint64_t refused = 0, not_analysed = 0;
    for (size_t i = 0; i < n; i++) {
        refused += rows[i].refused;
        not_analysed += rows[i].not_analysed;
    }
    if (refused && !is_text) /* print_verdict() has the number */
        cli_note(command, "%" PRIu64 " launch configuration%s cannot run on %s", refused,
                 refused == 1 ? "" : "s", target->title);
    if (not_analysed)
        cli_note(command,
                 "%" PRIu64 " launch configuration%s could not be analysed for the device that %s ran on",
                 not_analysed, not_analysed == 1 ? "" : "s", not_analysed == 1 ? "it" : "they");
}

static int check(void *arguments, struct occ_error *err)
{
    struct whatif_args *args = arguments;
    int status = cli_check_history(args, err);
    if (status == 0)
        status = cluster_check(&args->history, CLUSTER_SUMS, err);
    if (status != 0)
        return status;
    if (!args->gpu)
        return occ_fail(err, OCC_E_INVALID, "the other GPU is missing ('occq calc --list' names them)");
    status = calc_target_named(args->gpu, &args->target, err);
    return status == 0 ? 0 : occ_error_prefix(err, "the other GPU");
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct whatif_args *args = arguments;
    const struct calc_target *target = &args->target;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    _cleanup_(kernel_names_freep) struct kernel_names *names = NULL;
    _cleanup_(occ_config_rows_free) struct occ_config_rows configs = {0};
    _cleanup_(occ_freep) struct elsewhere_row *rows = NULL;
    if (cluster_open(command, &args->history, CLUSTER_SUMS, OCC_TOP_BY_KERNEL, &store, &err) != 0 ||
        occ_store_configs(store, &args->history.filter, &configs, &err) != 0 ||
        kernel_names_load(store, args->history.name, &names, &err) != 0)
        return cli_failure(command, &err);
    for (size_t i = 0; i < configs.n; i++)
        kernel_names_apply(names, &configs.rows[i].kernel);
    cli_note_filter(command, store, &args->history.filter);
    if (!(rows = calloc(configs.n + 1, sizeof *rows))) {
        (void)occ_no_memory(&err);
        return cli_failure(command, &err);
    }
    size_t n = elsewhere_rows(&configs, &target->device, rows), number = (size_t)args->history.number;
    size_t shown = number && n > number ? number : n;
    bool simulated = false;
    struct cli_selection selection = args->history.list.selection;
    if (selection.format == CLI_FORMAT_TEXT && !needs_device(rows, shown))
        leave_device_out(&selection);
    if (selection.format == CLI_FORMAT_TEXT && n > 0)
        print_verdict(target, rows, n);
    if (cli_table_print("kernels", &selection, rows, shown, sizeof *rows, &err) != 0)
        return cli_failure(command, &err);
    for (size_t i = 0; i < shown; i++)
        simulated |= rows[i].simulated;
    if (simulated)
        cli_note_simulated(command, &args->history.list.selection);
    note_left_out(command, target, rows, n, selection.format == CLI_FORMAT_TEXT);
    return n ? CLI_EXIT_OK
             : sql_no_launches(command, store, &args->history.filter, "no launches match these filters");
}

#define OPTIONS(gpu_option, device_option)                                                                   \
    CLI_OPTION_DB, CLI_OPTIONS_CLUSTER,                                                                      \
        CLI_OPTION(0, gpu_option, CLI_TEXT, struct whatif_args, gpu, "GPU",                                  \
                   "the other GPU or MIG slice ('occq calc --list' names them)"),                            \
        CLI_OPTIONS_FILTER(device_option), CLI_OPTION_LOW_OCCUPANCY("launch configurations"),                \
        CLI_OPTION_NUMBER("at most N rows, the rows with most time (default: all)"), CLI_OPTION_NAME,        \
        CLI_OPTIONS_LIST

static const struct cli_option options[] = {OPTIONS("on", "gpu")};

/* Options of the name before "top --on". */
static const struct cli_option older_options[] = {OPTIONS("gpu", "device")};

#define DESCRIPTION                                                                                          \
    "Analyses every recorded launch configuration again for another GPU or MIG slice. The first lines "      \
    "compare the mean occupancy; a table of occupancies, waves and limiters on both follows. Means are "     \
    "weighted with time and "                                                                                \
    "cover the configurations that can run on the other GPU; columns of their own count the others and "     \
    "give the reason.\n\n"                                                                                   \
    "These are results of the model. It takes registers per thread and durations as recorded; a compiler "   \
    "may use other registers for another architecture, and durations will differ there."
#define COMMAND(name_, form_, options_, option)                                                              \
    {                                                                                                        \
        .name = name_, .form = form_, .is_paged = true, .summary = "the recorded launches on another GPU",   \
        .description = DESCRIPTION, .options = options_, .columns = columns,                                 \
        .examples = {{"occq " name_ " " option " b200", "the whole history on a B200"},                      \
                     {"occq " name_ " " option " a100-1g.5gb --kernel gemm --since 1d",                      \
                      "some kernels on a MIG slice"}},                                                       \
        CLI_ARGS(struct whatif_args, ), .check = check, .run = run,                                          \
    }

const struct cli_command cli_top_on = COMMAND("top", "--on GPU", options, "--on");
const struct cli_command cli_whatif = COMMAND("what-if", NULL, older_options, "--gpu");
