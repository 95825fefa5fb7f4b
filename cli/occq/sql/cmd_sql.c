/* occq sql: read-only statements (cli/history/sql_guard.h). One thread. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/usage.h"
#include "cli/history/cluster.h"
#include "cli/history/history.h"
#include "cli/history/sql_guard.h"
#include "cli/history/sql_table.h"
#include "support/cleanup.h"

struct sql_args {
    struct history_args history;
    bool schema;
};

/* ---- one statement ---- */

/* Destination of the rows, and their number. */
struct output {
    sqlite3 *db;
    enum cli_format format;
    size_t statements, rows;
};

/* Refuses equal column names in JSON, since an object's names must differ. */
static int check_name(const struct cli_selection *selection, size_t n, const char *name,
                      struct occ_error *err)
{
    for (size_t i = 0; selection->format == CLI_FORMAT_JSON && i < n; i++)
        if (strcmp(selection->columns[i]->key, name) == 0)
            return occ_fail(err, OCC_E_INVALID, "two columns are called '%.64s': AS gives one another name",
                            name);
    return 0;
}

static int describe_columns(sqlite3_stmt *statement, struct cli_column *columns,
                            struct cli_selection *selection, struct occ_error *err)
{
    int status = 0;
    int n = sqlite3_column_count(statement);
    if (n > CLI_MAX_COLUMNS)
        return occ_fail(err, OCC_E_INVALID, "more than %d columns", CLI_MAX_COLUMNS);
    for (int i = 0; i < n && status == 0; i++) {
        const char *name = sqlite3_column_name(statement, i);
        status = check_name(selection, (size_t)i, name ? name : "", err);
        columns[i] = (struct cli_column)SQL_COLUMN(name ? name : "", name ? name : "", CLI_PLAIN,
                                                   CLI_LEFT | CLI_VERBATIM, NULL, "");
        selection->columns[i] = &columns[i];
    }
    columns[n] = (struct cli_column)CLI_COLUMN_END;
    selection->n = (size_t)n;
    return status;
}

static int print(struct output *output, sqlite3_stmt *statement, struct occ_error *err)
{
    struct cli_column columns[CLI_MAX_COLUMNS + 1];
    struct cli_selection selection = {.format = output->format};
    const struct sql_list list = {.name = "rows", .table = columns, .selection = &selection};
    struct sql_answer answer = {0};
    int status = describe_columns(statement, columns, &selection, err);
    if (status == 0 && output->statements++ > 0 && output->format != CLI_FORMAT_JSON)
        (void)fputc('\n', cli_out());
    if (status == 0)
        status = sql_print(statement, &list, &answer, err);
    output->rows += answer.rows;
    return status;
}

/* Runs the first statement of `*text`, which then points behind the statement. `argument`: value of its
 * parameter; NULL: none. */
static int run_statement(struct output *output, const char **text, const char *argument,
                         struct occ_error *err)
{
    sqlite3_stmt *statement = NULL;
    int status = sql_prepare_read(output->db, *text, &statement, text, err);
    if (statement && argument)
        (void)sqlite3_bind_text(statement, 1, argument, -1, SQLITE_STATIC);
    if (status == 0 && statement)
        status = print(output, statement, err);
    (void)sqlite3_finalize(statement);
    return status;
}

/* ---- contents of the history ---- */

static int show_tables(struct output *output, struct occ_error *err)
{
    const char *sql = "SELECT table_name AS \"table\", count(*) AS columns FROM column_help "
                      "GROUP BY table_name ORDER BY min(rowid)";
    return run_statement(output, &sql, NULL, err);
}

/* Prints the columns of a table; `table` NULL: of all tables. */
static int show_schema(struct output *output, const char *table, struct occ_error *err)
{
    const char *sql = "SELECT table_name AS \"table\", column_name AS \"column\", type, unit, help "
                      "FROM column_help WHERE ?1 IS NULL OR table_name = ?1 ORDER BY rowid";
    size_t before = output->rows;
    int status = run_statement(output, &sql, table, err);
    if (status == 0 && table && output->rows == before)
        return occ_fail(err, OCC_E_NOT_FOUND, "no table '%.64s' (.tables lists them)", table);
    return status;
}

/* Runs ".tables" or ".schema [TABLE]", which occupies a line. */
static int run_dot_command(struct output *output, const char **text, struct occ_error *err)
{
    char line[128], name[64] = "", table[64] = "";
    size_t length = strcspn(*text, "\n;");
    (void)snprintf(line, sizeof line, "%.*s", length < sizeof line ? (int)length : (int)sizeof line - 1,
                   *text);
    *text += length;
    int words = sscanf(line, ".%63s %63s %*s", name, table);
    if (strcmp(name, "tables") == 0 && words == 1)
        return show_tables(output, err);
    if (strcmp(name, "schema") == 0)
        return show_schema(output, words == 2 ? table : NULL, err);
    return occ_fail(err, OCC_E_INVALID, "'%.64s' is neither .tables nor .schema [TABLE]", line);
}

static int run_all(struct output *output, const char *text, struct occ_error *err)
{
    int status = 0;
    while (status == 0 && *(text += strspn(text, " \t\r\n;")))
        status = *text == '.' ? run_dot_command(output, &text, err) : run_statement(output, &text, NULL, err);
    return status;
}

/* ---- the command ---- */

static int ask(const struct cli_command *command, const struct sql_args *args, const char *text,
               enum cli_format format)
{
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    if (cli_open_history(&args->history.list.common, OCC_STORE_READ, &store, &err) != 0)
        return cli_failure(command, &err);
    struct output output = {.db = occ_store_sqlite(store), .format = format};
    int status = sql_guard(output.db, &err);
    if (status == 0)
        status = args->schema ? show_schema(&output, text, &err) : run_all(&output, text, &err);
    if (status != 0)
        return cli_failure(command, &err);
    return output.rows ? CLI_EXIT_OK : CLI_EXIT_NOTHING;
}

/* Runs the SQL in the warehouse and prints the answer, as one statement over a history in memory. */
static int ask_cluster(const struct cli_command *command, const struct sql_args *args, const char *text,
                       enum cli_format format)
{
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_warehouse_freep) struct occ_warehouse *w = NULL;
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    char *select = NULL;
    int status = cluster_connect(cluster_url(&args->history), &w, &err);
    if (status == 0)
        status = cluster_report(command, w, NULL, format == CLI_FORMAT_JSON, &err);
    if (status == 0)
        status = occ_store_open_memory(&store, &err);
    struct output output = {.db = store ? occ_store_sqlite(store) : NULL, .format = format};
    if (status == 0)
        status = occ_remote_select(w, output.db, text, &select, &err);
    const char *rows = select;
    if (status == 0)
        status = run_statement(&output, &rows, NULL, &err);
    sqlite3_free(select);
    if (status != 0)
        return cli_failure(command, &err);
    return output.rows ? CLI_EXIT_OK : CLI_EXIT_NOTHING;
}

/* Reads standard input as text; NULL: a terminal, empty or unreadable. The caller frees it. */
static char *read_stdin(void)
{
    char *text = NULL;
    size_t room = 0;
    if (!isatty(STDIN_FILENO) && getdelim(&text, &room, '\0', stdin) > 0)
        return text;
    free(text);
    return NULL;
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct sql_args *args = arguments;
    enum cli_format format;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_freep) char *input = NULL;
    const char *text = args->history.list.common.operands[0];
    bool is_stdin = !args->schema && (!text || strcmp(text, "-") == 0);
    if (is_stdin)
        text = input = read_stdin();
    if (cli_output_format(&args->history.list.output, &format, &err) != 0)
        return cli_usage_error(command, &err);
    if (!args->schema && (!text || !text[strspn(text, " \t\r\n;")])) {
        (void)occ_fail(&err, OCC_E_INVALID, is_stdin ? "STATEMENT is missing" : "the statement is empty");
        return cli_usage_error(command, &err);
    }
    return cluster_url(&args->history) ? ask_cluster(command, args, text, format)
                                       : ask(command, args, text, format);
}

static int check(void *arguments, struct occ_error *err)
{
    struct sql_args *args = arguments;
    if (args->schema && cluster_url(&args->history))
        return occ_fail(err, OCC_E_INVALID,
                        "--schema is of a history; of a warehouse: DESCRIBE TABLE occtrace.minute");
    return cluster_check(&args->history, CLUSTER_SUMS, err);
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    CLI_OPTION_CLUSTER,
    CLI_OPTION(0, "schema", CLI_FLAG, struct sql_args, schema, NULL,
               "print the columns of all tables, or of the TABLE given instead of a statement"),
    CLI_OPTION_JSON,
    CLI_OPTION_CSV,
    CLI_OPTIONS_SCREEN,
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

const struct cli_command cli_sql = {
    .name = "sql",
    .group = "Ask",
    .operands = "[STATEMENT]",
    .max_operands = 1,
    .is_paged = true,
    .summary = "query in SQL (read-only)",
    .description = "Runs SQL statements that read, separated by semicolons; without STATEMENT, or with -, "
                   "they come from standard input. Tables: launch, launch_config, kernel, run, device, "
                   "minute, hour, measured_minute, measured_config, device_sample, device_second, loss and "
                   "overhead. --schema (or .schema [TABLE] as a statement) describes their columns, .tables "
                   "lists them; the history itself holds the descriptions in column_help. minute and hour "
                   "answer most questions without reading single launches.\n\n"
                   "Values are raw: ratios from 0 to 1, nanoseconds. Unknown values are NULL (\"-\" in the "
                   "table). TEXT REGEXP PATTERN matches POSIX extended regular expressions; "
                   "kernel_owner(kernel_demangled) is communication, library, framework, triton or unknown. "
                   "With --json, "
                   "each statement prints a document. With --cluster, the statement is ClickHouse's, over "
                   "the tables that occtrace-ship(8) describes, without conversions: add FINAL after the "
                   "name of a table. NaN and infinities are NULL, too; integers above 2^63 are text.\n\n"
                   "In CSV, NULL is an empty field and an empty text is \"\". A text that a spreadsheet "
                   "would run, such as =1+1, has an apostrophe before it, in the CSV of all commands.\n\n"
                   "Exit status 3 if there are no rows.",
    .options = options,
    .examples = {{"occq sql 'SELECT count(*) FROM launch'", "the number of launches in the history"},
                 {"occq sql --schema launch", "its columns, with units"},
                 {"occq sql \"SELECT sum(launches) FROM hour WHERE kernel REGEXP 'gemm'\"",
                  "launches of some kernels, without reading single launches"},
                 {"occq sql 'SELECT start_ns, elapsed_mean FROM device_second'",
                  "a GPU's occupancy, second by second"},
                 {"occq sql --csv 'SELECT * FROM run'", "the runs as CSV"}},
    CLI_ARGS(struct sql_args, ),
    .check = check,
    .run = run,
};
