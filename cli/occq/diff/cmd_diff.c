/* occq diff: changes between two sides, and their statistical significance. One thread. */

#include "cli/history/cluster.h"
#include "cli/sides/sides.h"
#include "diff_forms.h"

static int print(const struct cli_command *command, const struct diff_args *args,
                 const struct diff_report *report, const struct diff_line *lines, struct occ_error *err)
{
    const struct cli_list_args *list = &args->history.list;
    size_t n = report->diff->n_pairs;
    (void)command;
    if (list->output.csv || list->output.columns)
        return cli_table_print("kernels", &list->selection, lines,
                               list->output.csv || n < report->shown ? n : report->shown, sizeof *lines, err);
    if (list->output.json)
        diff_print_json(report, lines);
    else
        return args->markdown ? diff_print_markdown(report, lines, err) : diff_print_text(report, lines, err);
    return 0;
}

static int run(const struct cli_command *command, const void *arguments)
{
    return diff_run(command, arguments, print);
}

static int run_all(const struct cli_command *command, const void *arguments, const struct cli_owners *owners)
{
    return diff_run_owners(command, arguments, owners, print);
}

static int check(void *arguments, struct occ_error *err)
{
    const struct diff_args *args = arguments;
    const struct cli_output *output = &args->history.list.output;
    if (args->markdown && (output->json || output->csv || output->columns))
        return occ_fail(err, OCC_E_INVALID, "--markdown excludes --json, --csv and -o");
    return diff_check(arguments, err);
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    CLI_OPTIONS_CLUSTER,
    DIFF_OPTION_ALL_USERS,
    DIFF_OPTION_BY,
    CLI_OPTION_KERNEL,
    CLI_OPTION_EXCLUDE,
    DIFF_OPTION_FLOOR,
    DIFF_OPTION_MIN_TIME,
    DIFF_OPTION_FORCE,
    CLI_OPTION(0, "rows", CLI_FLAG, struct diff_args, rows, NULL,
               "print a row of each kernel in each layer, also of the same and small ones"),
    CLI_OPTION_NUMBER("at most N rows (default 20)"),
    CLI_OPTION(0, "markdown", CLI_FLAG, struct diff_args, markdown, NULL,
               "print Markdown, for a pull request"),
    CLI_OPTIONS_LIST,
};

static const struct cli_form forms[] = {
    {"by", "layer", NULL, &cli_diff_layers}, {"image", NULL, NULL, &cli_diff_image}, {.option = NULL}};

const struct cli_command cli_diff = {
    .name = "diff",
    .forms = forms,
    .group = "Ask",
    .operands = "A B",
    .min_operands = 2,
    .max_operands = 2,
    .is_paged = true,
    .summary = "changes between two runs, labels, times, GPUs or histories",
    .description =
        "Compares two sides. A and B are: " SIDES_HELP ".\n\n"
        "Kernels are matched by name, launch configuration and range (see occq top --by range), so that each "
        "layer has a line of its own; the rest by name and launch configuration, by name and number of "
        "threads, by name, by the name without hashes, counters and ABI tags, by the name without tile sizes "
        "and integer template arguments, and last by their neighbours in the order of launches. Pairs with "
        "different names are shown with how they were matched.\n\n"
        "The answer begins with the GPU time of both sides for the same work: the recorded time of the GPUs, "
        "idle time included, the share in which kernels ran (busy), and the part that changed most. A run "
        "whose kernels wait longer is SLOWER here, although each kernel is the same. The interval comes from "
        "the runs, with fewer than three on a side from 20 slices of consecutive launches: a single long "
        "pause in one run is UNDECIDED. SLOWER and FASTER are beyond the floor with a chance of at most 1 % "
        "for a false verdict. Launches of equal kernels tell the work. There is no such verdict with "
        "--kernel, --exclude or --cluster, or for reports of Nsight Compute.\n\n"
        "Verdicts on groups of kernels follow, about kernel time: all kernels, layers (ranges without the "
        "numbers of "
        "repeated blocks), families of kernels, and kernels with 1 % of the time. A group is SLOWER or "
        "FASTER if the time of a launch, pooled over its launch configurations, changed by more than the "
        "floor, also in relation to all other kernels, with a chance of at most 5 % for any false verdict "
        "among layers, families or kernels (Holm), and of 1 % for all kernels. A row is a kernel in a layer; "
        "rows are printed if they are worse or better, or have another launch configuration and 1 % of the "
        "time; --rows prints all.\n\n"
        "The verdict of a row is about the time of a launch. It is worse or better if the 95 % confidence "
        "interval of the ratio lies beyond the floor, the false discovery rate over all kernels "
        "(Benjamini-Hochberg) is at most 5 %, and the kernel has 1 % of the time; same, if the interval lies "
        "within the floor; else undecided. The interval is Welch's, of logarithms of means of runs, with "
        "fewer than three runs on a side of 20 blocks of consecutive launches without the first; with fewer "
        "than 45 launches a row is undecided. With --cluster the blocks are of whole minutes, and A and B "
        "are by job, user, gpu, since and until.\n\n"
        "If the launches of a row may do other work in B (another number of threads, another name), and B "
        "has another number of them, the row is about the time for the same work: kernels with equal launch "
        "configurations tell by their numbers of launches how many times the work of A B did. Without a "
        "common ratio of these numbers the row is undecided. An end of a run within a step makes numbers of "
        "launches uncertain, so that few launches decide less. If one kernel replaced several, or several "
        "replaced one, the row names them and has no verdict; the verdicts on these kernels, the layer, A's "
        "family and all kernels count it, for the same work. A kernel with another name in B, in the same "
        "place between its neighbours, is judged under both names ('renamed kernel sgemm -> gemm').\n\n"
        "The change of the time is split into the duration of launches and their number, that of the mean "
        "elapsed occupancy into the kernels and their mix. Occupancy, waste and causes are measured values "
        "if both sides of a kernel have them, else expected values of both. diff extrapolates measured "
        "launches to a whole side; its waste can differ from the waste of 'occq top'.\n\n"
        "A number in the words of a kernel ('SGEMM 64x64 #5') is of one history. If --kernel or --exclude "
        "means other kernels in the history of the other side, both sides take the kernel that it means in "
        "A, else in B, and a note names it.\n\n"
        "The devices of a side count together; gpu:ID on both sides compares one. A sentence follows the "
        "sides if they ran on different GPUs of one model, or spread their launches differently over the "
        "same ones: a difference may then come from the GPUs.\n\n"
        "If a kernel of B has a change that 'occq show' advises for it in A, the predicted and the measured "
        "effect are printed side by side. If nothing but this change differs and the verdict is not "
        "undecided, prediction and result stay in the history (view advice_outcome), and 'occq show "
        "--hit-rate' counts them. Both sides must be in one history that belongs to the user; diff never "
        "waits for another program.",
    .options = options,
    .columns = diff_columns,
    .examples = {{"occq diff run:3 run:5", "two runs"},
                 {"occq diff label:before label:after --markdown",
                  "all runs of two labels, for a pull request"},
                 {"occq diff run:3 run:5 --by layer", "layers of a model, as a tree"},
                 {"occq diff before.db after.db", "two histories"}},
    CLI_ARGS(struct diff_args, .history = {.number = 20}, .floor = DIFF_FLOOR, .min_share = DIFF_MIN_SHARE),
    .check = check,
    .run = run,
    .run_all = run_all,
};
