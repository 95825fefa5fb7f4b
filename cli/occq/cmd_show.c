/*
 * occq show: everything about a kernel. KERNEL is, in this order, a number (the kernel's id), a short name,
 * or a regular expression on the demangled name. One thread.
 */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "history.h"
#include "cli/usage.h"
#include "show.h"
#include "support/cleanup.h"
#include "support/text.h"

/* The chosen launch configurations, by kernel and device. */
struct selection {
    struct occ_config_rows configs;
    const struct occ_config_row **rows; /* into configs */
    size_t n;
};

static void selection_release(struct selection *selection)
{
    free(selection->rows);
    occ_config_rows_free(&selection->configs);
}

/* ---- which kernels ---- */

typedef bool matcher(const struct occ_config_row *row, const void *wanted);

static bool has_id(const struct occ_config_row *row, const void *wanted)
{
    return row->kernel.id == *(const int64_t *)wanted;
}

static bool has_short_name(const struct occ_config_row *row, const void *wanted)
{
    return row->kernel.short_name && strcmp(row->kernel.short_name, wanted) == 0;
}

static bool any(const struct occ_config_row *row, const void *wanted)
{
    (void)row;
    (void)wanted;
    return true;
}

static int load(struct occ_store *store, const struct occ_filter *filter, matcher *fits, const void *wanted,
                struct selection *selection, struct occ_error *err)
{
    selection_release(selection);
    *selection = (struct selection){0};
    int status = occ_store_configs(store, filter, &selection->configs, err);
    if (status != 0)
        return status;
    selection->rows = calloc(selection->configs.n + 1, sizeof *selection->rows);
    if (!selection->rows)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < selection->configs.n; i++)
        if (fits(&selection->configs.rows[i], wanted))
            selection->rows[selection->n++] = &selection->configs.rows[i];
    return 0;
}

/* An expression that matches exactly `text`. The caller frees it. */
static char *quoted_regex(const char *text)
{
    char *regex = malloc(2 * strlen(text) + 1);
    size_t n = 0;
    for (; regex && *text; text++) {
        if (strchr("\\^$.[]|()*+?{}", *text))
            regex[n++] = '\\';
        regex[n++] = *text;
    }
    if (regex)
        regex[n] = '\0';
    return regex;
}

/* Demangled names contain the short ones: the store narrows, the comparison decides. */
static int load_by_name(struct occ_store *store, const struct occ_filter *filter, const char *name,
                        struct selection *selection, struct occ_error *err)
{
    _cleanup_(occ_freep) char *quoted = quoted_regex(name);
    struct occ_filter narrow = *filter;
    if (!quoted)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    narrow.kernel_regex = quoted;
    return load(store, &narrow, has_short_name, name, selection, err);
}

static int find(struct occ_store *store, const struct occ_filter *filter, const char *wanted,
                struct selection *selection, struct occ_error *err)
{
    uint64_t id = 0;
    if (occ_parse_u64(wanted, 1, INT64_MAX, &id, NULL) == 0) {
        int64_t kernel = (int64_t)id;
        return load(store, filter, has_id, &kernel, selection, err);
    }
    int status = load_by_name(store, filter, wanted, selection, err);
    if (status != 0 || selection->n > 0)
        return status;
    struct occ_filter by_regex = *filter;
    by_regex.kernel_regex = wanted;
    return load(store, &by_regex, any, NULL, selection, err);
}

/* ---- groups ---- */

static bool same_group(const struct occ_config_row *a, const struct occ_config_row *b)
{
    return a->kernel.id == b->kernel.id && a->kernel.device == b->kernel.device;
}

/* Brings the configurations of one kernel and device together, in the order of their first; keeps the order
 * within. Returns the number of groups written to `groups` (room for selection->n). */
static size_t group(struct selection *selection, struct show_group *groups)
{
    size_t n_groups = 0, sorted = 0;
    const struct occ_config_row **rows = selection->rows;
    while (sorted < selection->n) {
        size_t start = sorted++;
        for (size_t i = sorted; i < selection->n; i++) {
            if (!same_group(rows[start], rows[i]))
                continue;
            const struct occ_config_row *moved = rows[i];
            memmove(&rows[sorted + 1], &rows[sorted], (i - sorted) * sizeof *rows);
            rows[sorted++] = moved;
        }
        groups[n_groups].configs = &rows[start];
        groups[n_groups].n = sorted - start;
        n_groups++;
    }
    return n_groups;
}

static int print_pages(const struct show_group *groups, size_t n, struct occ_error *err)
{
    int status = 0;
    for (size_t i = 0; i < n && status == 0; i++) {
        if (i)
            (void)putchar('\n');
        status = show_text(&groups[i], err);
    }
    return status;
}

static int print(struct selection *selection, const struct history_args *args, struct occ_error *err)
{
    _cleanup_(occ_freep) struct show_group *groups = calloc(selection->n + 1, sizeof *groups);
    if (!groups)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    size_t n = group(selection, groups);
    for (size_t i = 0; i < n; i++)
        groups[i].shown =
            args->number && groups[i].n > (size_t)args->number ? (size_t)args->number : groups[i].n;
    if (!args->list.output.json)
        return print_pages(groups, n, err);
    show_json(groups, n);
    return 0;
}

/* ---- the command ---- */

static int ask(const struct cli_command *command, const struct history_args *args)
{
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(cli_store_closep) struct occ_store *store = NULL;
    _cleanup_(selection_release) struct selection selection = {0};
    int status = cli_open_history(&args->list.common, &store, &err);
    if (status == 0)
        status = find(store, &args->filter, args->list.common.operands[0], &selection, &err);
    if (status == 0)
        status = print(&selection, args, &err);
    if (status != 0)
        return cli_failure(command, &err);
    cli_note_unknown_times(command, store, &args->filter);
    return selection.n ? CLI_EXIT_OK
                       : cli_nothing(command, "no launches of such a kernel match these filters");
}

static int check_kernel(const char *text, struct occ_error *err)
{
    int status = text[0] ? cli_check_regex(text, err) : occ_fail(err, OCC_E_INVALID, "the value is empty");
    if (status == 0)
        return 0;
    (void)occ_error_prefix(err, "KERNEL");
    occ_text_sanitise(err->message);
    return status;
}

static int run(const struct cli_command *command, char **argv)
{
    struct history_args args = {.number = 0};
    struct cli_selection none;
    struct occ_error err = OCC_ERROR_INIT;
    int status = 0;
    if (!cli_start_history(command, argv, &args, &none, &status))
        return status;
    return check_kernel(args.list.common.operands[0], &err) == 0 ? ask(command, &args)
                                                                 : cli_usage_error(command, &err);
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    CLI_OPTIONS_PERIOD,
    CLI_OPTION_RUN,
    CLI_OPTION_DEVICE,
    CLI_OPTION_NUMBER("at most N launch configurations of each kernel, those with most time (default: all)"),
    CLI_OPTION(0, "json", CLI_FLAG, struct cli_list_args, output.json, NULL, "print JSON, raw values"),
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

static const struct cli_example examples[] = {
    {"occq show softmax", "by short name"},
    {"occq show 'gemm.*float' -n 3", "by regular expression, three launch configurations of each kernel"},
    {"occq show 12 --json", "by number (column id of occq top)"},
    {NULL, NULL},
};

const struct cli_command cli_show = {
    .program = "occq",
    .name = "show",
    .operands = "KERNEL",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "everything about one kernel",
    .description =
        "Shows every launch configuration of a kernel: its resources and the blocks per SM that each of "
        "them allows, waves, the known occupancies, and where the missing part goes, as parts that add up "
        "to 100 %. KERNEL is a number, a short name, or else a POSIX extended regular expression on the "
        "demangled name.\n\n"
        "Where hardware counters measured a configuration, the parts lead down to the measured elapsed "
        "occupancy. SOURCE says where each comes from: the model, samples inside the launches (direct), "
        "least squares over many launches (regression), or the mean of kernels that cannot be told apart "
        "(group). LAUNCH STALLED is the share of cycles in which the launch of warps stalled for a "
        "resource. Measured values are of whole minutes.\n\n"
        "What was not measured is \"-\". +- gives 95 % confidence intervals. Percentiles come from a "
        "histogram and are at most 12.5 % off.",
    .options = options,
    .examples = examples,
    .run = run,
};
