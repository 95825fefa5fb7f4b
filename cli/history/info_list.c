/* The list of the history's content; see lists.h. */
#include "lists.h"

#define COLUMN(name, unit, flags, help) SQL_COLUMN(name, name, unit, flags, NULL, help)

const struct cli_column info_columns[] = {
    COLUMN("what", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, "the counted part of the history"),
    COLUMN("count", CLI_PLAIN, CLI_DEFAULT | CLI_ADDS, "number of entries"),
    SQL_COLUMN("size", "bytes", CLI_MEMORY, CLI_DEFAULT | CLI_ADDS, NULL, "bytes of the file"),
    SQL_COLUMN("first", "first_ns", CLI_TIME, CLI_DEFAULT | CLI_LEFT | CLI_RARE, NULL,
               "time of the oldest entry"),
    SQL_COLUMN("last", "last_ns", CLI_TIME, CLI_DEFAULT | CLI_LEFT | CLI_RARE | CLI_SPARE(1), NULL,
               "time of the newest entry"),
    CLI_COLUMN_END,
};

/* Recordings of unknown time base have no first and last time. Row "sums and names" is the rest of the file,
 * since small tables share pages. */
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
    .name = "info", .table = info_columns, .from = rows, .order = "at", .nothing = "nothing"};
