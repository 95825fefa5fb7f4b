/* Shared by all forms of occq diff: compares the sides, and keeps the outcomes of advice. One thread. */
#include "cli/history/cluster.h"
#include "cli/sides/diff_advice.h"
#include "cli/sides/outcomes.h"
#include "cli/sides/sides.h"
#include "cli/usage.h"
#include "diff_forms.h"

const char *const diff_by_words[] = {"kernel", "layer", NULL};

void diff_print_json(const struct diff_report *report, const struct diff_line *lines)
{
    struct occ_json json;
    cli_json_begin(&json, cli_out());
    diff_json(&json, report, lines);
    cli_json_end(&json);
}

static int report_sides(const struct cli_command *command, const struct diff_args *args,
                        const struct sides *sides, diff_printer *print_answer)
{
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(diff_report_done) struct diff_report report = {.floor = args->floor,
                                                             .min_share = args->min_share,
                                                             .shown = (size_t)args->history.number,
                                                             .all_rows = args->rows,
                                                             .is_markdown = args->markdown};
    _cleanup_(occ_freep) struct diff_line *lines = NULL;
    int status = diff_answer(sides, args->force, &report, &lines, &err);
    if (status == 0)
        status = print_answer(command, args, &report, lines, &err);
    /* a question through the library writes nothing to the history */
    if (status == 0 && !cli_is_redirected(&(size_t){0}))
        diff_keep_outcomes(sides, &report, lines);
    return status == 0 ? CLI_EXIT_OK : cli_failure(command, &err);
}

int diff_run(const struct cli_command *command, const struct diff_args *args, diff_printer *print_answer)
{
    struct occ_error err = OCC_ERROR_INIT;
    bool in_cluster = cluster_url(&args->history) != NULL;
    _cleanup_(sides_free) struct sides sides = {
        .by_range = !in_cluster, .cluster = in_cluster ? &args->history : NULL, .command = command};
    if (sides_parse(&sides, &args->history, &err) != 0)
        return cli_usage_error(command, &err);
    int status = sides_compare(&sides, &err);
    if (status == OCC_E_NOT_FOUND && sides.side[DIFF_B].store)
        return cli_nothing(command, err.message);
    uint32_t shared = status == 0 ? sides_shared_runs(&sides) : 0;
    if (shared > 0)
        cli_note(command, "%u run%s on both sides", shared, shared == 1 ? " is" : "s are");
    if (status == 0 && sides.aligned)
        cli_note(command, "--kernel is another kernel in the other history; both sides are of %.200s",
                 sides.aligned);
    return status == 0 ? report_sides(command, args, &sides, print_answer) : cli_failure(command, &err);
}

int diff_check(struct diff_args *args, struct occ_error *err)
{
    int status = cli_check_history(args, err);
    return status == 0 ? cluster_check(&args->history, CLUSTER_SUMS, err) : status;
}
