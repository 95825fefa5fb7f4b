/* Shared by all forms of occq diff: compares the sides, and keeps the outcomes of advice. One thread. */
#include <string.h>

#include "cli/history/cluster.h"
#include "cli/sides/diff_advice.h"
#include "cli/sides/outcomes.h"
#include "cli/sides/sides.h"
#include "cli/screen.h"
#include "cli/usage.h"
#include "diff_forms.h"
#include "support/cleanup.h"

const char *const diff_by_words[] = {"kernel", "layer", NULL};

void diff_print_json(const struct diff_report *report, const struct diff_line *lines)
{
    struct occ_json json;
    cli_json_begin(&json, cli_out());
    diff_json(&json, report, lines);
    cli_json_end(&json);
}

/* Prints the owner's name above the answer; layers without ranges have none. */
static void print_owner(const struct diff_owner *owner, const struct diff_args *args,
                        const struct diff_report *report)
{
    _cleanup_(occ_freep) char *text = cli_screen_text(owner->name);
    if (args->by && strcmp(args->by, "layer") == 0 && report->layers.tree.n == 0)
        return;
    if (!text) {
        cli_screen_lose_text();
        return;
    }
    (void)fprintf(cli_out(), "%s", owner->is_first ? "" : "\n");
    if (args->markdown) {
        (void)fputs("## ", cli_out());
        diff_markdown_code(cli_out(), text);
        (void)fputs("\n\n", cli_out());
    } else {
        (void)fprintf(cli_out(), "%s\n", text);
    }
}

static int report_sides(const struct cli_command *command, const struct diff_args *args,
                        const struct sides *sides, diff_printer *print_answer, const struct diff_owner *owner)
{
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(diff_report_done) struct diff_report report = {.floor = args->floor,
                                                             .min_share = args->min_share,
                                                             .shown = (size_t)args->history.number,
                                                             .all_rows = args->rows,
                                                             .is_markdown = args->markdown};
    _cleanup_(occ_freep) struct diff_line *lines = NULL;
    char note[DIFF_KERNELS_BYTES];
    int status = diff_answer(sides, args->force, &report, &lines, &err);
    if (status == 0 && diff_kernels_note(&report, note)[0])
        cli_note(command, "%s", note);
    if (status == 0 && owner)
        print_owner(owner, args, &report);
    if (status == 0)
        status = print_answer(command, args, &report, lines, &err);
    /* a question through the library writes nothing to the history */
    if (status == 0 && !cli_is_redirected(&(size_t){0}))
        diff_keep_outcomes(sides, &report, lines);
    return status == 0 ? CLI_EXIT_OK : cli_failure(command, &err);
}

/* Fails if a side is a FILE: with --all-users the sides are of the owner's history. */
static int check_owner(const struct sides *sides, const struct diff_args *args,
                       const struct diff_owner *owner, struct occ_error *err)
{
    for (int i = 0; i < DIFF_SIDES && owner; i++)
        if (sides->side[i].where.db != args->history.list.common.db)
            return occ_fail(err, OCC_E_INVALID, "%s: with --all-users both sides are of each owner's history",
                            sides->side[i].text);
    return 0;
}

int diff_run(const struct cli_command *command, const struct diff_args *args, diff_printer *print_answer)
{
    return diff_run_of(command, args, print_answer, NULL);
}

int diff_run_of(const struct cli_command *command, const struct diff_args *args, diff_printer *print_answer,
                const struct diff_owner *owner)
{
    struct occ_error err = OCC_ERROR_INIT;
    bool in_cluster = cluster_url(&args->history) != NULL;
    _cleanup_(sides_free) struct sides sides = {.by_range = !in_cluster,
                                                .cluster = in_cluster ? &args->history : NULL,
                                                .command = command,
                                                .is_of_owner = owner != NULL};
    if (sides_parse(&sides, &args->history, &err) != 0 || check_owner(&sides, args, owner, &err) != 0)
        return cli_usage_error(command, &err);
    int status = sides_compare(&sides, &err);
    if (status == OCC_E_NOT_FOUND && (sides.side[DIFF_B].store || owner))
        return cli_nothing(command, err.message);
    uint32_t shared = status == 0 ? sides_shared_runs(&sides) : 0;
    if (shared > 0)
        cli_note(command, "%u run%s on both sides", shared, shared == 1 ? " is" : "s are");
    return status == 0 ? report_sides(command, args, &sides, print_answer, owner)
                       : cli_failure(command, &err);
}

int diff_check(struct diff_args *args, struct occ_error *err)
{
    const struct cli_output *output = &args->history.list.output;
    int status = cli_check_history(args, err);
    if (status == 0 && args->history.list.common.all_users &&
        (output->json || output->csv || output->columns))
        return occ_fail(err, OCC_E_INVALID,
                        "--all-users: owners' answers do not add up; ask one history with --db for JSON, CSV "
                        "and -o");
    return status == 0 ? cluster_check(&args->history, CLUSTER_SUMS, err) : status;
}
