/* occq top: kernels by waste. One row per kernel and device, from the rollups; this file asks for the rows
 * and filters them by cause, top_print.c prints them. One thread. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/history/cluster.h"
#include "cli/history/history.h"
#include "cli/history/names.h"
#include "cli/json.h"
#include "cli/screen.h"
#include "cli/history/sql_table.h"
#include "support/arena.h"
#include "support/cleanup.h"
#include "support/text.h"
#include "cli/kernels/top.h"
#include "top_configs.h"
#include "top_forms.h"
#include "top_print.h"

#define CAUSE_LABEL(name, label, text)          label,
#define MEASURED_LABEL(name, label, text, gain) label,
#define CAUSE_LABELS                            OCC_CAUSES(CAUSE_LABEL) OCC_MEASURED_CAUSES(MEASURED_LABEL)
static const char *const cause_labels[] = {CAUSE_LABELS NULL};
static const char *const order_labels[] = {"waste", "time", "launches", "occupancy", CAUSE_LABELS NULL};

/* ---- filter ---- */

#define SHOWN_LOSS_MIN 0.0005 /* rounds to 0.1 % */

/* Keeps the rows with enough loss from the given cause, or without one from their largest cause. */
static void filter_losses(struct occ_top *top, const struct top_args *args)
{
    unsigned part = top_part_of(args->cause);
    double min_loss = args->min_loss > 0 ? args->min_loss : SHOWN_LOSS_MIN;
    size_t kept = 0;
    if (!args->cause && !(args->min_loss > 0))
        return;
    for (size_t i = 0; i < top->n; i++) {
        const struct occ_top_row *row = &top->rows[i];
        double loss = part < OCC_PART_COUNT ? row->part[part] : row->main_cause ? row->main_cause_ratio : NAN;
        if (loss >= min_loss)
            top->rows[kept++] = *row;
    }
    top->n = kept;
}

/* ---- the command ---- */

/* Rows that fit on a screen of 24 lines: of a table with the overview, heading, legend and footers; of advice
 * in words. */
enum { SCREEN_ROWS = 14, SCREEN_CHANGES = 5 };

/* True if the number of rows is the default of text. */
static bool fits_screen(const struct cli_command *command, const struct top_args *args)
{
    const struct cli_list_args *list = &args->history.list;
    return !cli_is_given(command->options, &list->common, "number") && !list->output.json &&
           !list->output.csv && !list->output.gather && top_by_of(args) == OCC_TOP_BY_KERNEL;
}

/* True if the answer has an overview of the GPUs. A warehouse has no times of launches, owners of a merge do
 * not share their GPUs' time, and an overview beside filters for kernels needs a second pass over all
 * launches, as beside other units of rows. */
static bool has_overview(const struct top_args *args)
{
    return !cluster_url(&args->history) && !args->history.list.output.gather &&
           top_by_of(args) <= OCC_TOP_BY_GPU && !occ_overview_is_partial(&args->history.filter);
}

/* Queries the rows, and kernels for the overview in the same pass if the rows are not kernels. */
static int query(const struct top_args *args, struct occ_store *store, struct occ_top ret_tops[2],
                 struct occ_error *err)
{
    const enum occ_top_by by[] = {top_by_of(args), OCC_TOP_BY_KERNEL};
    if (top_by_of(args) == OCC_TOP_BY_GPU && cluster_url(&args->history))
        return cluster_top_gpus(store, &ret_tops[0], err);
    if (top_by_of(args) != OCC_TOP_BY_KERNEL && has_overview(args))
        return occ_store_tops(store, &args->history.filter, by, 2, ret_tops, err);
    return occ_store_top(store, &args->history.filter, top_by_of(args), &ret_tops[0], err);
}

/* Asks for the GPU time, the whole for the shares of layers. */
static int ask_times(struct occ_store *store, const struct occ_filter *filter,
                     struct occ_overview *ret_overview, struct occ_error *err)
{
    const struct occ_filter all = occ_overview_filter(filter);
    _cleanup_(occ_top_free) struct occ_top kernels = {0};
    int status = occ_store_top(store, &all, OCC_TOP_BY_KERNEL, &kernels, err);
    return status == 0 ? occ_overview_make_times(store, filter, &kernels, ret_overview, err) : status;
}

static int run_layers(const struct cli_command *command, const struct top_args *args, struct occ_store *store,
                      const struct occ_top *top)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct cli_output *output = &args->history.list.output;
    _cleanup_(occ_overview_free) struct occ_overview overview = {0};
    struct top_layers_args layers = args->layers;
    size_t lines = 0;
    bool simulated = false;
    layers.number = (size_t)args->history.number;
    layers.overview = &overview;
    if (ask_times(store, &args->history.filter, &overview, &err) != 0 ||
        top_layers_print(command, top, &layers, output, &lines, &err) != 0)
        return cli_failure(command, &err);
    for (size_t i = 0; i < top->n; i++)
        simulated = simulated || top->rows[i].kernel.simulated;
    if (lines > 0 && simulated)
        cli_note_simulated(command, &args->history.list.selection);
    return lines > 0 ? CLI_EXIT_OK
           : top->n > 0
               ? cli_nothing(command, "no launch has a range: NVTX (occtrace --nvtx), or modules of an "
                                      "imported PyTorch trace")
               : sql_no_launches(command, store, &args->history.filter, "no launches match these filters");
}

/* Drops rows by --min-loss and --cause, and prints as many rows as asked for or as fit on the screen. Returns
 * the exit code. */
static int run_rows(const struct cli_command *command, const struct top_args *args, struct occ_store *store,
                    struct occ_top *top, const struct occ_overview *overview)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct top_report report = {.covered_ratio =
                                    top_by_of(args) == OCC_TOP_BY_RANGE ? top_covered_ratio(top) : NAN,
                                .overview = overview,
                                .command = command,
                                .args = args,
                                .top = top,
                                .store = store};
    filter_losses(top, args);
    /* the sums of all owners need all rows of an owner */
    size_t number = args->history.list.output.gather ? top->n
                    : !fits_screen(command, args)    ? (size_t)args->history.number
                    : top_has_table(args)            ? SCREEN_ROWS
                                                     : SCREEN_CHANGES;
    report.shown = top->n < number ? top->n : number;
    if (top_print(&report, &err) != 0)
        return cli_failure(command, &err);
    return report.shown
               ? CLI_EXIT_OK
               : sql_no_launches(command, store, &args->history.filter, "no launches match these filters");
}

static void free_texts(struct occ_arena *texts)
{
    occ_arena_free(texts->blocks);
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct top_args *args = arguments;
    _cleanup_(free_texts) struct occ_arena texts = {.failed = false};
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    _cleanup_(kernel_names_freep) struct kernel_names *names = NULL;
    _cleanup_(occ_top_free) struct occ_top top = {0};
    _cleanup_(occ_top_free) struct occ_top kernels = {0};
    _cleanup_(occ_overview_free) struct occ_overview overview = {0};
    struct occ_top tops[2] = {{0}};
    /* names first: the memory for making them is free again for the answer */
    if (cluster_open(command, &args->history, CLUSTER_SUMS, top_by_of(args), &store, &err) != 0 ||
        kernel_names_load(store, args->history.name, &names, &err) != 0)
        return cli_failure(command, &err);
    int status = query(args, store, tops, &err);
    top = tops[0];
    kernels = tops[1];
    if (status != 0)
        return cli_failure(command, &err);
    bool has_kernels = top_by_of(args) == OCC_TOP_BY_KERNEL || top_by_of(args) == OCC_TOP_BY_LAYER;
    for (size_t i = 0; i < top.n && has_kernels; i++)
        kernel_names_apply(names, &top.rows[i].kernel);
    if (top_by_of(args) == OCC_TOP_BY_CONFIG && !top_name_configs(names, &top, &texts)) {
        (void)occ_no_memory(&err);
        return cli_failure(command, &err);
    }
    cli_note_filter(command, store, &args->history.filter);
    sql_note_partial(command, store, &args->history.filter);
    if (top_by_of(args) == OCC_TOP_BY_LAYER)
        return run_layers(command, args, store, &top);
    const struct occ_top *of = top_by_of(args) == OCC_TOP_BY_KERNEL ? &top : &kernels;
    if (!has_overview(args) || of->n == 0)
        return run_rows(command, args, store, &top, NULL);
    status = args->history.list.output.json
                 ? occ_overview_make(store, &args->history.filter, of, &overview, &err)
                 : occ_overview_make_times(store, &args->history.filter, of, &overview, &err);
    if (status != 0)
        return cli_failure(command, &err);
    return run_rows(command, args, store, &top, &overview);
}

/* Checks --by against the row types of a warehouse. */
static int check_by(const struct top_args *args, struct occ_error *err)
{
    static const bool unknown[] = {
        [OCC_TOP_BY_RANGE] = true, [OCC_TOP_BY_LAYER] = true, [OCC_TOP_BY_STREAM] = true,
        [OCC_TOP_BY_RUN] = true,   [OCC_TOP_BY_RANK] = true,  [OCC_TOP_BY_LABEL] = true,
        [OCC_TOP_BY_NODE] = false};
    const struct occ_filter *f = &args->history.filter;
    bool chooses = f->kernel_regex || f->exclude_regex || f->gpu || f->below_achieved > 0;
    if (!cluster_url(&args->history))
        return 0;
    if (unknown[top_by_of(args)])
        return occ_fail(err, OCC_E_INVALID, "--by %s: the cluster's minutes are of jobs; only the nodes know",
                        args->by);
    return top_by_of(args) == OCC_TOP_BY_GPU && chooses
               ? occ_fail(err, OCC_E_INVALID,
                          "--by gpu: of GPUs the cluster knows sums over all kernels alone")
               : 0;
}

/* Checks --by layer: a tree has its own order and columns. */
static int check_layers(const struct top_args *args, struct occ_error *err)
{
    bool is_tree = top_by_of(args) == OCC_TOP_BY_LAYER;
    const struct {
        bool is_asked, is_for_trees;
        const char *option;
    } options[] = {{args->layers.depth > 0, true, "--depth"},
                   {args->layers.operators, true, "--operators"},
                   {args->layers.unfold != NULL, true, "--unfold"},
                   {args->cause != NULL, false, "--cause"},
                   {args->min_loss > 0, false, "--min-loss"},
                   {args->history.list.common.all_users != NULL, false, "--all-users"},
                   {strcmp(args->order, "waste") != 0 && strcmp(args->order, "time") != 0, false, "--order"}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (options[i].is_asked && options[i].is_for_trees && !is_tree)
            return occ_fail(err, OCC_E_INVALID, "%s is for --by layer", options[i].option);
        if (options[i].is_asked && !options[i].is_for_trees && is_tree)
            return occ_fail(err, OCC_E_INVALID, "%s is not for --by layer, which shows a tree by time",
                            options[i].option);
    }
    return 0;
}

/* --depth, --operators and --unfold alone ask for the tree. */
static void imply_layers(struct top_args *args)
{
    bool is_tree = args->layers.depth > 0 || args->layers.operators || args->layers.unfold;
    if (is_tree && !cli_is_given(cli_top.options, &args->history.list.common, "by"))
        args->by = top_by_labels[OCC_TOP_BY_LAYER];
}

static int check(void *arguments, struct occ_error *err)
{
    struct top_args *args = arguments;
    struct cli_column table[TOP_COLUMNS_MAX];
    struct cli_selection selection;
    imply_layers(args);
    args->history.list.output.merge = top_merge_of(args->order);
    if (check_layers(args, err) != 0)
        return err->code;
    top_copy_columns(top_by_of(args), table);
    if (cli_output_choose(&args->history.list.output,
                          top_by_of(args) == OCC_TOP_BY_LAYER ? top_layers_columns : table, &selection,
                          err) != 0)
        return err->code;
    if (args->advice && top_by_of(args) != OCC_TOP_BY_KERNEL && top_by_of(args) != OCC_TOP_BY_CONFIG)
        return occ_fail(err, OCC_E_INVALID, "--advice is for kernels and configurations, not for --by %s",
                        args->by);
    int status = cli_check_history(arguments, err);
    if (status == 0)
        status = check_by(args, err);
    return status == 0 ? cluster_check(arguments, CLUSTER_SUMS, err) : status;
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    CLI_OPTIONS_CLUSTER,
    CLI_OPTION_ALL_USERS,
    CLI_OPTION_LOW_OCCUPANCY("launch configurations"),
    CLI_OPTION(0, "cause", CLI_WORD, struct top_args, cause, "CAUSE",
               "only kernels that lose something to this cause; causes are named like their columns",
               .words = cause_labels),
    CLI_OPTION(0, "min-loss", CLI_PERCENT, struct top_args, min_loss, "PCT",
               "only kernels that lose PCT percent or more to that cause, without --cause to their largest"),
    CLI_OPTIONS_FILTER("gpu"),
    CLI_OPTION(0, "by", CLI_WORD, struct top_args, by, "WHAT",
               "group launches by kernel (default), config, cause (the largest cause of a configuration), "
               "gpu, range (the ranges around a launch), layer (the ranges as a tree, equal siblings in one "
               "row), stream, run, rank, user, label, job (Slurm job or Kubernetes pod), account (of the "
               "Slurm job), "
               "partition or node",
               .words = top_by_labels),
    CLI_OPTION(0, "order", CLI_WORD, struct top_args, order, "ORDER",
               "waste (default: lost warp-seconds), time, launches, occupancy (lowest first; measured, else "
               "expected), or a "
               "cause (largest loss first)",
               .words = order_labels),
    CLI_OPTION(0, "depth", CLI_NUMBER, struct top_args, layers.depth, "N",
               "--by layer with at most N levels of the tree", .min = 1, .max = 64),
    CLI_OPTION(0, "operators", CLI_FLAG, struct top_args, layers.operators, NULL,
               "--by layer with the operators inside of layers, too (names with ::)"),
    CLI_OPTION(0, "unfold", CLI_TEXT, struct top_args, layers.unfold, "NAME",
               "--by layer with a row for each layer of this name (without its number)"),
    CLI_OPTION(0, "advice", CLI_FLAG, struct top_args, advice, NULL,
               "print the change of 'occq show' for each kernel, as text in words; of configurations the "
               "change with "
               "the largest predicted saving"),
    CLI_OPTION_NUMBER("at most N rows (default 20; of kernels as text 14, with --advice 5, which fit on "
                      "a screen)"),
    CLI_OPTION_NAME,
    CLI_OPTIONS_LIST,
};

static const struct cli_form forms[] = {{"gaps", NULL, NULL, &cli_top_gaps},
                                        {"cost", NULL, NULL, &cli_top_cost},
                                        {"on", NULL, NULL, &cli_top_on},
                                        {"by", "rank", top_asks_cluster, &cli_top_ranks},
                                        {"by", "allocation", NULL, &cli_top_allocations},
                                        {.option = NULL}};

const struct cli_command cli_top = {
    .name = "top",
    .group = "Ask",
    .forms = forms,
    .merges_owners = true,
    .is_paged = true,
    .summary = "how busy the GPUs were, and the kernels that lose most",
    .description =
        "The first lines tell how busy the GPUs were, where their time went as parts that add up to 100 %, "
        "and the largest loss. Then a row for each kernel follows: its SHARE of the GPU time, the part of "
        "the warp slots that it USED, WHY not more, and the owner of its code. GPU time is the recorded time "
        "of all GPUs, with the time in which no kernel ran; kernels that overlap share their time, and "
        "communication counts while nothing else runs. In a long history, top reads only some chunks of "
        "launches to find overlap and waits, and prints their number. The order is by loss: a kernel at 12 % "
        "that runs for 3 microseconds hardly matters. -o shows other columns; --json has all of them and the "
        "objects gpu_time and findings. A name that is too long for the screen is printed in words, family "
        "and tile, such as 'GEMM 64x64 nn'; show and --kernel take them.\n\n"
        "A kernel that ran on several devices has a row for each device, also if the devices are of one "
        "model; so has a stream, which belongs to a device. By range or stream, and with --range, --graph or "
        "--stream, only launches that are still stored individually count, not launches reduced to totals. "
        "Means are weighted with time. Measured values are means over the measured launches; column measured "
        "is their part of the time. Causes, used and waste cover all launches: measured launches count with "
        "their measured values, the others with expected values, so that waste adds up to the same sum for "
        "every grouping. Measured values cover whole minutes and all streams. If --since or --until lies "
        "inside a minute, or --stream, --range or --graph chooses launches, the measured part of the time is "
        "the part of all launches in these minutes.\n\n"
        "--by layer prints the ranges as a tree, by time. The path that all launches share is printed once. "
        "Siblings with names that differ in a number at their end are one row, with their count; a layer "
        "with a time far from its siblings' is named below the table. Launches of the backward pass have a "
        "tree of their own. With at most 20 rows, layers below 0.5 % of the time are left out.",
    .options = options,
    .columns = top_columns,
    .checks_columns = true,
    .examples = {{"occq top", "how busy the GPUs were, and the largest losses"},
                 {"occq top --low-occupancy", "only launches below 50 %"},
                 {"occq top --since 1h --order time -n 5",
                  "the five kernels with most time in the last hour"},
                 {"occq top --cause tail --min-loss 10 --order tail",
                  "kernels that lose 10 % or more to a partial last wave"},
                 {"occq top --run last --by cause", "losses of the last run, by cause"},
                 {"occq top --exclude 'nccl|nvshmem' --by user",
                  "users by the waste of their kernels, without communication"},
                 {"occq top --run last --by layer", "which layers of a model take the time"},
                 {"occq top --run last --by range", "which module, or range of NVTX, wastes the GPU"},
                 {"occq top --advice -n 5", "the five best changes"},
                 {"occq top --kernel gemm -o +demangled --json", "some kernels, for a program"}},
    CLI_ARGS(struct top_args, .history = {.number = 20}, .by = "kernel", .order = "waste"),
    .check = check,
    .run = run,
};
