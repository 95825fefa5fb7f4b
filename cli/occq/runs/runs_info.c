/* occq runs --info: contents, start and size of the history, by part. One thread. */
#include <inttypes.h>

#include "runs_info.h"

#include "cli/screen.h"
#include "cli/history/history.h"
#include "cli/history/lists.h"
#include "support/cleanup.h"
#include "support/text.h"

struct info_args {
    struct history_args history;
    bool info;
};

static void put_path(struct occ_store *store, const struct cli_selection *selection)
{
    _cleanup_(occ_freep) char *line = NULL;
    int64_t schema = sql_number(occ_store_sqlite(store), "SELECT user_version FROM pragma_user_version");
    if (occ_format_text(&line, NULL, "%s, schema %" PRId64, cli_history_path(store), schema) == 0)
        cli_put_below(selection, line);
    else
        cli_screen_lose_text();
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct history_args *args = arguments;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    struct sql_list list = info_list;
    list.selection = &args->list.selection;
    list.filter = &args->filter;
    list.number = args->number;
    if (cli_open_history(&args->list.common, OCC_STORE_READ, &store, &err) != 0)
        return cli_failure(command, &err);
    int status = sql_list(command, store, &list);
    if (status == CLI_EXIT_OK && args->list.selection.format == CLI_FORMAT_TEXT)
        put_path(store, &args->list.selection);
    return status;
}

static const struct cli_option options[] = {
    CLI_OPTION(0, "info", CLI_FLAG, struct info_args, info, NULL, "describe the history, not its runs"),
    CLI_OPTION_DB,
    CLI_OPTION_ALL_USERS,
    CLI_OPTIONS_LIST,
};

const struct cli_command cli_runs_info = {
    .name = "runs",
    .form = "--info",
    .merges_owners = true,
    .summary = "contents, time span and size of the history",
    .description = "Counts the runs, kernels and launches of the history and lists the parts of its file. "
                   "Single launches are kept until a quota or an age evicts them; their sums by minute and "
                   "hour are kept longer.",
    .options = options,
    .columns = info_columns,
    .examples = {{"occq runs --info", "size of the history, by part"}},
    CLI_ARGS(struct info_args, .history = {.list.output.merge.sum_by = "what", .number = 100}),
    .run = run,
};
