/* occq show: everything about a kernel. KERNEL is the kernel's id, a name as printed by commands, or a
 * regular expression on the demangled name. One thread. */
#include <stdio.h>
#include <string.h>

#include "cli/history/cluster.h"
#include "cli/history/history.h"
#include "cli/history/names.h"
#include "cli/history/sql_table.h"
#include "cli/kernels/hit_rate.h"
#include "cli/kernels/show_answers.h"
#include "cli/screen.h"
#include "show_text.h"
#include "support/cleanup.h"
#include "support/text.h"

struct show_args {
    struct history_args history;
    bool all, explain;
    const char *with; /* additional source of --with; NULL: none */
};

/* Launch configurations that fit on a screen of 24 lines, below the answer. */
enum { SCREEN_CONFIGS = 6 };

static int print_pages(struct occ_store *store, const struct show_args *show, const struct show_group *groups,
                       size_t n, struct occ_error *err)
{
    int status = 0;
    for (size_t i = 0; i < n && status == 0; i++) {
        if (i)
            cli_print("\n");
        status = show_answer(&groups[i], err);
        if (status == 0 && show->all)
            status = show_pages(&groups[i], err);
        else if (status == 0 && show->with)
            show_ncu_pages(&groups[i]);
    }
    if (status == 0 && n > 0)
        hit_rate_print_line(store);
    if (status == 0 && n > 0 && show->explain)
        show_definitions();
    else if (status == 0 && n > 0 && !show->all && !show->with)
        cli_print("everything: --all   the terms: --explain\n");
    return status;
}

static size_t shown_max(const struct show_args *show)
{
    const struct history_args *args = &show->history;
    return args->number                          ? (size_t)args->number
           : show->all || args->list.output.json ? SIZE_MAX
                                                 : SCREEN_CONFIGS;
}

/* Prints all groups. *ret_found: the source of --with has values. */
static int print(struct occ_store *store, const struct occ_config_rows *rows, const struct show_args *show,
                 bool *ret_found, struct occ_error *err)
{
    const struct history_args *args = &show->history;
    const struct occ_filter *f = &args->filter;
    bool has_gpu_time = !cluster_url(args) && f->stream == 0 && !f->range_regex && !f->graphs;
    _cleanup_(show_answers_free) struct show_answers answers = {.list = NULL};
    _cleanup_(show_groups_free) struct show_group *groups = NULL;
    size_t n = 0;
    int status = show_groups_make(rows, shown_max(show), &groups, &n, err);
    if (status == 0)
        status = show_find_answers(&(struct show_question){store, f, has_gpu_time, NULL}, groups, n, &answers,
                                   err);
    for (size_t i = 0; i < n && status == 0; i++)
        status = show_find_ranges(store, &args->filter, &groups[i], err);
    *ret_found = !show->with;
    for (size_t i = 0; i < n && show->with && status == 0; i++)
        status = show_find_nearest(store, &groups[i], ret_found, err);
    if (status != 0)
        return status;
    if (!args->list.output.json)
        return print_pages(store, show, groups, n, err);
    struct occ_json json;
    cli_json_begin(&json, cli_out());
    show_json(&json, groups, n);
    cli_json_end(&json);
    return 0;
}

/* Reports the reason for an empty answer: the kernel is unknown, or the filters exclude all its launches. */
static int no_launches(const struct cli_command *command, struct occ_store *store,
                       const struct history_args *args)
{
    _cleanup_(occ_config_rows_free) struct occ_config_rows rows = {0};
    const struct occ_filter any = {.kernel = args->filter.kernel};
    const struct cli_args *common = &args->list.common;
    static const char *const filters[] = {"since", "until", "run",    "label", "user",  "job",
                                          "rank",  "gpu",   "stream", "range", "graph", NULL};
    char given[128] = "", why[192];
    if (occ_store_configs(store, &any, &rows, NULL) != 0 || rows.n == 0)
        return sql_no_launches(command, store, &any, "there are no launches of such a kernel");
    for (size_t i = 0; filters[i]; i++) {
        if (cli_is_given(command->options, common, filters[i]))
            occ_text_append(given, sizeof given, ", ", "--%s", filters[i]);
    }
    (void)snprintf(why, sizeof why, "the kernel has launches, but none that match %s", given);
    return sql_no_launches(command, store, &args->filter, why);
}

/* ---- the command ---- */

/* Adds each kernel's use of its device, in the newest run of the kernel's first configuration. */
static int add_uses(struct occ_store *store, const struct occ_filter *filter,
                    const struct occ_config_rows *rows, struct occ_error *err)
{
    int status = 0;
    for (size_t i = 0; i < rows->n && status == 0;) {
        const struct occ_row_kernel *first = &rows->rows[i].kernel;
        struct occ_config_rows group = {.rows = rows->rows + i};
        while (i < rows->n && rows->rows[i].kernel.id == first->id &&
               rows->rows[i].kernel.device == first->device) {
            group.n++;
            i++;
        }
        status = occ_store_add_uses(store, filter, &group, err);
    }
    return status;
}

/* Queries the rows of KERNEL, with its name in the requested form. */
static int query(struct occ_store *store, const struct history_args *args, const struct kernel_names *names,
                 struct occ_config_rows *ret_rows, struct occ_error *err)
{
    if (occ_store_configs(store, &args->filter, ret_rows, err) != 0 ||
        add_uses(store, &args->filter, ret_rows, err) != 0)
        return err->code;
    for (size_t i = 0; i < ret_rows->n; i++)
        kernel_names_apply(names, &ret_rows->rows[i].kernel);
    return 0;
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct show_args *show = arguments;
    const struct history_args *args = &show->history;
    struct occ_error err = OCC_ERROR_INIT;
    bool found = false;
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    _cleanup_(kernel_names_freep) struct kernel_names *names = NULL;
    _cleanup_(occ_config_rows_free) struct occ_config_rows rows = {0};
    if (cluster_open(command, args, CLUSTER_HISTOGRAMS, OCC_TOP_BY_KERNEL, &store, &err) != 0 ||
        kernel_names_load(store, args->name, &names, &err) != 0 ||
        query(store, args, names, &rows, &err) != 0 || print(store, &rows, show, &found, &err) != 0)
        return cli_failure(command, &err);
    cli_note_filter(command, store, &args->filter);
    sql_note_partial(command, store, &args->filter);
    if (rows.n == 0)
        return no_launches(command, store, args);
    return found ? CLI_EXIT_OK
                 : cli_nothing(command, "no imported report of Nsight Compute has this kernel ('occq import' "
                                        "reads .ncu-rep files)");
}

static int check(void *arguments, struct occ_error *err)
{
    struct history_args *args = arguments;
    const char *text = args->filter.kernel = args->list.common.operands[0];
    int status = cli_check_history(args, err);
    if (status == 0)
        status = cluster_check(args, CLUSTER_HISTOGRAMS, err);
    return status == 0 ? cli_check_kernel(text, err) : status;
}

static const char *const with_words[] = {"ncu", NULL};

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    CLI_OPTIONS_CLUSTER,
    CLI_OPTION_EACH_USER,
    CLI_OPTIONS_PERIOD,
    CLI_OPTIONS_RUN,
    CLI_OPTION_DEVICE("gpu"),
    CLI_OPTION_STREAM,
    CLI_OPTIONS_PLACE,
    CLI_OPTION(0, "all", CLI_FLAG, struct show_args, all, NULL,
               "also the resources, times, losses and changes of each launch configuration"),
    CLI_OPTION(0, "explain", CLI_FLAG, struct show_args, explain, NULL, "also the definitions of the terms"),
    CLI_OPTION_NUMBER("at most N launch configurations of each kernel, the ones with most time (default 6; "
                      "with --all and --json all)"),
    CLI_OPTION_NAME,
    CLI_OPTION(0, "with", CLI_WORD, struct show_args, with, "WHAT",
               "ncu: if no imported report of Nsight Compute has a configuration, show the kernel's nearest "
               "configuration in the reports, and the differences",
               .words = with_words),
    CLI_OPTION(0, "json", CLI_FLAG, struct cli_list_args, output.json, NULL, "print JSON, raw values"),
    CLI_OPTIONS_SCREEN,
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

static const struct cli_form forms[] = {{"hit-rate", NULL, NULL, &cli_show_hit_rate}, {.option = NULL}};

const struct cli_command cli_show = {
    .name = "show",
    .forms = forms,
    .group = "Ask",
    .operands = "KERNEL",
    .min_operands = 1,
    .max_operands = 1,
    .is_paged = true,
    .summary = "one kernel: the cause, the change, its saving",
    .description =
        "Prints the answer first. WHY is the largest cause of unused warp slots. DO is the change that saves "
        "most in the launch configuration with most time, in the terms of the kernel's owner. SAVES is the "
        "predicted time with an interval of 80 %, from published changes; other configurations may save "
        "more (--all). Kernels that overlap save less GPU time than --all adds up. CONFIDENCE is the source "
        "of the occupancy. A table of the launch "
        "configurations follows, and the limit of the configuration with most time. A kernel has an answer "
        "for each GPU.\n\n"
        "Shares are of the GPU time, as in occq top. With --stream, --range, --graph and --cluster the GPU "
        "time is not known, and shares are of the kernel's own time.\n\n"
        "--all adds, for each launch configuration: its resources, the blocks per SM that each resource "
        "allows, waves, the known occupancies, where the missing part goes, as parts that add up to 100 %, "
        "and every change. KERNEL is a number (column id), a name as commands print it (short, full, "
        "mangled, or in words such as 'GEMM 64x64 nn'; also a name that a narrow screen cut, or some "
        "of the words, if only one kernel matches), or else a POSIX extended regular expression on the "
        "demangled name.\n\n"
        "Where hardware counters measured a configuration, the parts lead down to the measured elapsed "
        "occupancy. SOURCE names the origin of each part: the model, samples inside the launches (direct), "
        "least squares over many launches (regression), or the mean of kernels that cannot be told apart "
        "(group), Nsight Compute (ncu). LAUNCH STALLED is the share of cycles in which the launch of warps "
        "stalled for a resource. Measured values are of whole minutes. Waste counts launches that were not "
        "measured by the model.\n\n"
        "WOULD MORE WARPS HELP compares the busiest unit (schedulers, caches, DRAM, tensor cores), by "
        "counters or an imported report of Nsight Compute, with its peak: below 60 % the kernel is "
        "latency-bound and more warps would help, from 80 % on they would not; a grid of less than one wave "
        "has too little work for them, as the model alone shows; otherwise, without counters, the section "
        "explains how to measure it. The line latency hiding compares the resident warps with the warps that "
        "fill every cycle of the schedulers, by counters, a report, or the documented latency of arithmetic "
        "(assumed). It predicts no time.\n\n"
        "If an imported report of Nsight Compute has the kernel in the same configuration on such a GPU, "
        "--all and --with ncu print its values beside the values of occtrace, with the reason if they "
        "differ. With --with ncu the exit status is 3 where no report has the kernel at all.\n\n"
        "Values that were not measured are \"-\". +- gives 95 % confidence intervals. Percentiles come from "
        "a histogram and are at most 12.5 % off.",
    .options = options,
    .examples = {{"occq show softmax", "why it is slow, and which change helps"},
                 {"occq show softmax --all", "everything about each launch configuration"},
                 {"occq show 'gemm.*float' -n 3",
                  "by regular expression, three launch configurations of each kernel"},
                 {"occq show 12 --json", "by number (column id of occq top)"}},
    CLI_ARGS(struct show_args, ),
    .check = check,
    .run = run,
};
