/*
 * occq sql: one read-only statement. Three guards: the store is open for reading only, the statement must be
 * read-only in SQLite's own view, and an authorizer refuses what could reach other files (ATTACH, extensions) or
 * change settings (PRAGMA with effects). One thread.
 */
#include "commands.h"
#include "history.h"
#include "cli/usage.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "support/cleanup.h"
#include "support/text.h"

struct sql_args {
    struct cli_args common;
    struct cli_output output;
};

/* PRAGMAs that only tell; those with `argument` take the name of a table or index. */
static const struct {
    const char *name;
    bool argument;
} pragmas[] = {
    {"table_info", true},    {"table_xinfo", true},    {"table_list", true},       {"index_list", true},
    {"index_info", true},    {"index_xinfo", true},    {"foreign_key_list", true}, {"integrity_check", true},
    {"quick_check", true},   {"user_version", false},  {"application_id", false},  {"schema_version", false},
    {"page_count", false},   {"page_size", false},     {"freelist_count", false},  {"compile_options", false},
    {"data_version", false}, {"database_list", false}, {"journal_mode", false},    {"encoding", false},
};

static bool pragma_allowed(const char *name, const char *argument)
{
    for (size_t i = 0; name && i < sizeof pragmas / sizeof *pragmas; i++)
        if (sqlite3_stricmp(pragmas[i].name, name) == 0)
            return pragmas[i].argument || !argument;
    return false;
}

static int authorize(void *unused, int action, const char *first, const char *second, const char *schema,
                     const char *trigger)
{
    (void)unused;
    (void)schema;
    (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return second && sqlite3_stricmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA:
        return pragma_allowed(first, second) ? SQLITE_OK : SQLITE_DENY;
    default:
        return SQLITE_DENY;
    }
}

/* ---- columns of a result ---- */

struct result {
    sqlite3_stmt *statement;
    struct cli_column *columns; /* one a result column */
    struct cli_selection selection;
    char *blob; /* the last blob shown, as hexadecimal digits */
};

static void result_release(struct result *result)
{
    (void)sqlite3_finalize(result->statement);
    free(result->columns);
    free(result->blob);
}

static const char *blob_text(struct result *result, int index)
{
    const uint8_t *bytes = sqlite3_column_blob(result->statement, index);
    size_t n = (size_t)sqlite3_column_bytes(result->statement, index);
    free(result->blob);
    result->blob = malloc(2 * n + 1);
    if (result->blob)
        occ_hex_encode(bytes, n, result->blob);
    return result->blob;
}

static void get_cell(const struct cli_column *column, const void *row, struct cli_value *value)
{
    struct result *result = *(struct result *const *)row;
    switch (sqlite3_column_type(result->statement, (int)column->index)) {
    case SQLITE_INTEGER:
        cli_set_integer(value, sqlite3_column_int64(result->statement, (int)column->index));
        break;
    case SQLITE_FLOAT:
        cli_set_real(value, sqlite3_column_double(result->statement, (int)column->index));
        break;
    case SQLITE_TEXT:
        cli_set_string(value, (const char *)sqlite3_column_text(result->statement, (int)column->index));
        break;
    case SQLITE_BLOB:
        cli_set_string(value, blob_text(result, (int)column->index));
        break;
    default:
        break;
    }
}

static int describe_columns(struct result *result, struct occ_error *err)
{
    int n = sqlite3_column_count(result->statement);
    if (n > CLI_MAX_COLUMNS)
        return occ_fail(err, OCC_E_INVALID, "more than %d columns", CLI_MAX_COLUMNS);
    result->columns = calloc((size_t)n + 1, sizeof *result->columns);
    if (!result->columns)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    for (int i = 0; i < n; i++) {
        const char *name = sqlite3_column_name(result->statement, i);
        result->columns[i] = (struct cli_column){.name = name ? name : "",
                                                 .key = name ? name : "",
                                                 .unit = CLI_PLAIN,
                                                 .flags = CLI_LEFT | CLI_VERBATIM,
                                                 .get = get_cell,
                                                 .index = (size_t)i};
        result->selection.columns[i] = &result->columns[i];
    }
    result->selection.n = (size_t)n;
    return 0;
}

/* ---- the command ---- */

static int prepare(sqlite3 *db, const char *text, sqlite3_stmt **ret_statement, struct occ_error *err)
{
    const char *rest = NULL;
    int code = sqlite3_prepare_v2(db, text, -1, ret_statement, &rest);
    if (code == SQLITE_AUTH)
        return occ_fail(err, OCC_E_READ_ONLY, "not allowed: only statements that read this history are");
    if (code != SQLITE_OK)
        return occ_fail(err, OCC_E_INVALID, "%s", sqlite3_errmsg(db));
    if (!*ret_statement)
        return occ_fail(err, OCC_E_INVALID, "the statement is empty");
    if (rest[strspn(rest, " \t\r\n;")] != '\0')
        return occ_fail(err, OCC_E_INVALID, "one statement at a time: '%.40s' follows the first", rest);
    if (!sqlite3_stmt_readonly(*ret_statement))
        return occ_fail(err, OCC_E_READ_ONLY, "only statements that read are allowed");
    return 0;
}

/* SQLite makes a virtual table on its first use, by a CREATE TABLE of its own: before the authorizer refuses it. */
static void declare_tables(sqlite3 *db)
{
    sqlite3_stmt *statement = NULL;
    (void)sqlite3_prepare_v2(db, "SELECT 1 FROM launch, device_sample", -1, &statement, NULL);
    (void)sqlite3_finalize(statement);
}

static int print_rows(sqlite3 *db, struct result *result, enum cli_format format, size_t *ret_rows,
                      struct occ_error *err)
{
    _cleanup_(cli_table_freep) struct cli_table *table = NULL;
    int status = describe_columns(result, err);
    result->selection.format = format;
    if (status == 0)
        status = cli_table_new(stdout, "rows", &result->selection, &table, err);
    int step = SQLITE_DONE;
    while (status == 0 && (step = sqlite3_step(result->statement)) == SQLITE_ROW && !ferror(stdout)) {
        status = cli_table_add(table, &result, err);
        ++*ret_rows;
    }
    if (status == 0 && step != SQLITE_DONE && step != SQLITE_ROW)
        return occ_fail(err, OCC_E_IO, "%s", sqlite3_errmsg(db));
    return status == 0 ? cli_table_finish(table, err) : status;
}

static int ask(const struct cli_command *command, const struct sql_args *args, enum cli_format format)
{
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(cli_store_closep) struct occ_store *store = NULL;
    _cleanup_(result_release) struct result result = {0};
    size_t rows = 0;
    if (cli_open_history(&args->common, &store, &err) != 0)
        return cli_failure(command, &err);
    sqlite3 *db = occ_store_sqlite(store);
    declare_tables(db);
    (void)sqlite3_set_authorizer(db, authorize, NULL);
    int status = prepare(db, args->common.operands[0], &result.statement, &err);
    if (status == 0)
        status = print_rows(db, &result, format, &rows, &err);
    if (status != 0)
        return cli_failure(command, &err);
    return rows ? CLI_EXIT_OK : CLI_EXIT_NOTHING;
}

static int run(const struct cli_command *command, char **argv)
{
    struct sql_args args = {0};
    enum cli_format format;
    struct occ_error err = OCC_ERROR_INIT;
    int status = 0;
    if (!cli_start(command, argv, &args.common, &status))
        return status;
    if (cli_output_format(&args.output, &format, &err) != 0)
        return cli_usage_error(command, &err);
    return ask(command, &args, format);
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,  CLI_OPTION_JSON(struct sql_args), CLI_OPTION_CSV(struct sql_args), CLI_OPTION_HELP,
    CLI_OPTION_END,
};

static const struct cli_example examples[] = {
    {"occq sql 'SELECT count(*) FROM launch'", "how many launches the history holds"},
    {"occq sql 'SELECT start_ns, elapsed_mean FROM device_second'",
     "what a GPU's occupancy was, second by second"},
    {"occq sql --csv 'SELECT * FROM run'", "the runs as CSV"},
    {NULL, NULL},
};

const struct cli_command cli_sql = {
    .program = "occq",
    .name = "sql",
    .operands = "STATEMENT",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "ask in SQL (read-only)",
    .description =
        "Runs one SQL statement that reads. Launches are stored packed; the table \"launch\" shows them as "
        "rows, with what counters measured of them. launch_config, kernel, run, device, minute, hour, "
        "measured_minute, measured_config, device_sample, device_second, loss and overhead are views and "
        "tables for everything else; the table column_help describes their columns. "
        "Values are raw: ratios from 0 to 1, nanoseconds. What is not known is NULL (\"-\" in the table).\n\n"
        "Exits with 3 if the statement gives no row.",
    .options = options,
    .examples = examples,
    .run = run,
};
