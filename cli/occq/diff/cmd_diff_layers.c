/* occq diff --by layer: layers as a tree, with a verdict on each. One thread. */
#include <math.h>
#include <stdlib.h>

#include "cli/history/cluster.h"
#include "cli/screen.h"
#include "cli/sides/sides.h"
#include "cli/sides/verdicts.h"
#include "cli/usage.h"
#include "diff_forms.h"

static void print_prefix(const char *what, const char *prefix)
{
    _cleanup_(occ_freep) char *text = cli_screen_text(prefix);
    if (text && text[0])
        cli_print("%sbelow %s\n", what, text);
}

static void print_total(const struct diff_report *r, const struct diff_group_line *groups)
{
    char text[DIFF_GROUP_BYTES], place[DIFF_PLACE_BYTES];
    diff_print_gpu_time(r);
    if (r->levels.n > 0)
        cli_print("%s %s: %s\n", diff_group_word(groups[0].group->verdict),
                  diff_group_place(&groups[0], place), diff_group_text(r, groups, &groups[0], text));
    diff_print_others(r, groups);
}

/* Copies the lines with a share of the time of at least `least`. */
static struct diff_layer_line *choose_lines(const struct diff_layers *layers, double least)
{
    struct diff_layer_line *shown = calloc(layers->tree.n + 1, sizeof *shown);
    size_t n = 0;
    for (size_t i = 0; shown && i < layers->tree.n; i++)
        if (layers->lines[i].share >= least)
            shown[n++] = layers->lines[i];
    return shown;
}

static int print_tree(const struct cli_command *command, const struct cli_list_args *list,
                      const struct diff_report *r, struct occ_error *err)
{
    const struct diff_layers *layers = &r->layers;
    size_t n = layers->tree.n;
    bool is_text = !list->output.csv;
    double least = is_text ? diff_layers_fit(layers, r->shown, &n) : 0;
    _cleanup_(occ_freep) struct diff_layer_line *shown = choose_lines(layers, least);
    if (!shown)
        return occ_no_memory(err);
    if (is_text) {
        print_prefix("", layers->tree.prefix);
        print_prefix("backward: ", layers->tree.backward_prefix);
    }
    int status = cli_table_print("layers", &list->selection, shown, n, sizeof *shown, err);
    if (status == 0)
        cli_footer(command, &list->selection, "%.1f %% of the time of both sides has a range",
                   floor(layers->tree.covered_ratio * 1000) / 10);
    if (status == 0 && n < layers->tree.n)
        cli_footer(command, &list->selection, "%zu smaller layer%s not shown; -n shows more",
                   layers->tree.n - n, layers->tree.n - n == 1 ? " is" : "s are");
    return status;
}

static int print(const struct cli_command *command, const struct diff_args *args, const struct diff_report *r,
                 const struct diff_line *lines, struct occ_error *err)
{
    const struct cli_list_args *list = &args->history.list;
    _cleanup_(occ_freep) struct diff_group_line *groups = diff_make_group_lines(r);
    if (!groups)
        return occ_no_memory(err);
    if (list->output.json) {
        diff_print_json(r, lines);
        return 0;
    }
    if (r->layers.tree.n == 0) {
        cli_note(command, "no launch has a range: record NVTX ranges, or import a profile with modules");
        return 0;
    }
    if (list->output.csv || list->output.columns)
        return print_tree(command, list, r, err);
    diff_print_heading(r);
    int status = print_tree(command, list, r, err);
    (void)fputc('\n', cli_out());
    print_total(r, groups);
    return status;
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
    int status = diff_check(arguments, err);
    return status == 0 && cluster_url(&args->history)
               ? occ_fail(err, OCC_E_INVALID,
                          "--by layer: the cluster's minutes have no ranges; only the nodes know (--db FILE)")
               : status;
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    DIFF_OPTION_ALL_USERS,
    DIFF_OPTION_BY,
    CLI_OPTION_KERNEL,
    CLI_OPTION_EXCLUDE,
    DIFF_OPTION_FLOOR,
    DIFF_OPTION_MIN_TIME,
    DIFF_OPTION_FORCE,
    CLI_OPTION_NUMBER("at most N rows (default 11, which fit on a screen)"),
    CLI_OPTIONS_LIST,
};

const struct cli_command cli_diff_layers = {
    .name = "diff",
    .form = "--by layer",
    .operands = "A B",
    .min_operands = 2,
    .max_operands = 2,
    .is_paged = true,
    .summary = "changes of the layers of a model between two sides",
    .description =
        "Compares two sides as 'occq diff' does, and prints the layers as a tree: the ranges around the "
        "launches of both sides, with names and folded siblings as in 'occq top --by layer'.\n\n"
        "Each row has a verdict on the time of a launch, pooled over the launch configurations of the layer "
        "and of all layers inside, with the kernels outside as control: worse or better, if the change and "
        "its relation to the control exceed the floor, with a chance of at most 5 % for any false verdict in "
        "the tree (Holm). A layer in which only a part has changed is mostly undecided: the row of that part "
        "has the verdict. Layers with less than 1 % of the time have no verdict.\n\n"
        "If A and B made different numbers of launches in a layer, the row has both numbers.",
    .options = options,
    .columns = diff_layer_columns,
    .examples = {{"occq diff label:before label:after --by layer", "which layer changed"},
                 {"occq diff run:3 run:5 --by layer -n 50", "more of the tree"}},
    CLI_ARGS(struct diff_args, .history = {.number = DIFF_LAYERS_SCREEN}, .floor = DIFF_FLOOR,
             .min_share = DIFF_MIN_SHARE),
    .check = check,
    .run = run,
    .run_all = run_all,
};
