/* occq info: what is in the history, since when, how large and by what. One thread. */
#include <inttypes.h>

#include "cli/screen.h"
#include "commands.h"
#include "history.h"
#include "lists.h"
#include "support/cleanup.h"
#include "support/text.h"

#define COLUMN(name, unit, flags, help) SQL_COLUMN(name, name, unit, flags, NULL, help)

static const struct cli_column columns[] = {
    COLUMN("what", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, "what is counted"),
    COLUMN("count", CLI_PLAIN, CLI_DEFAULT | CLI_ADDS, "how many there are"),
    SQL_COLUMN("size", "bytes", CLI_MEMORY, CLI_DEFAULT | CLI_ADDS, NULL, "their part of the file"),
    SQL_COLUMN("first", "first_ns", CLI_TIME, CLI_DEFAULT | CLI_LEFT | CLI_RARE, NULL, "the oldest"),
    SQL_COLUMN("last", "last_ns", CLI_TIME, CLI_DEFAULT | CLI_LEFT | CLI_RARE | CLI_SPARE(1), NULL,
               "the newest"),
    CLI_COLUMN_END,
};

/* Times of recordings without a known origin mean nothing. What is small or shares pages is in "sums and
 * names": all that the others leave of the file. */
static const char rows[] =
    "(WITH file(page, pages, free) AS (SELECT page_size, page_count, freelist_count FROM pragma_page_size, "
    "pragma_page_count, pragma_freelist_count), data(chunks, series) AS (SELECT (SELECT sum(length(data)) "
    "FROM stored_chunk_data), (SELECT sum(length(data)) FROM stored_series_chunk)), part(at, what, count, "
    "bytes, first_ns, last_ns) AS (SELECT 1, 'runs', count(*), NULL, min(iif(time_base = 'epoch', start_ns, "
    "NULL)), max(iif(time_base = 'epoch', coalesce(end_ns, last_start_ns, start_ns), NULL)) FROM run UNION "
    "ALL SELECT 2, 'runs that go on', count(*), NULL, min(start_ns), max(start_ns) FROM run WHERE end_ns IS "
    "NULL AND source = 'trace' UNION ALL SELECT 3, 'imported runs', count(*), NULL, NULL, NULL FROM run "
    "WHERE source <> 'trace' UNION ALL SELECT 4, 'devices', count(*), NULL, NULL, NULL FROM stored_device "
    "UNION ALL SELECT 5, 'kernels', count(*), NULL, NULL, NULL FROM stored_kernel UNION ALL SELECT 6, "
    "'launch configurations', count(*), NULL, NULL, NULL FROM stored_launch_config UNION ALL SELECT 7, "
    "'launches', sum(launches), NULL, NULL, NULL FROM run UNION ALL SELECT 8, 'launches kept one by one', "
    "(SELECT sum(launches) FROM stored_chunk), chunks, NULL, NULL FROM data UNION ALL SELECT 9, 'samples and "
    "values', (SELECT sum(rows) FROM stored_series_chunk), series, NULL, NULL FROM data UNION ALL SELECT 11, "
    "'free', NULL, free * page, NULL, NULL FROM file UNION ALL SELECT 12, 'file', NULL, pages * page, NULL, "
    "NULL FROM file) SELECT * FROM part UNION ALL SELECT 10, 'sums and names', NULL, sum(iif(at = 12, bytes, "
    "-bytes)), NULL, NULL FROM part)";

const struct sql_list info_list = {
    .name = "info", .table = columns, .from = rows, .order = "at", .nothing = "nothing"};

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
    CLI_OPTION_DB,
    CLI_OPTION_ALL_USERS,
    CLI_OPTIONS_LIST,
};

const struct cli_command cli_info = {
    .name = "info",
    .merges_owners = true,
    .summary = "what is in the history, since when, how large and by what",
    .description = "Counts what the history holds and shows what its file is made of. Launches are kept one "
                   "by one until "
                   "a quota or an age evicts them; their sums by minute and hour are kept longer.",
    .options = options,
    .columns = columns,
    .examples = {{"occq info", "how large the history is, and what makes it so"}},
    CLI_ARGS(struct history_args, .list.output.merge.sum_by = "what", .number = 100),
    .run = run,
};
