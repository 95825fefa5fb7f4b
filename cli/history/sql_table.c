/* Tables of columns over SQL; see sql_table.h. One thread. */
#include "sql_table.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "known.h"
#include "answer/answer.h"
#include "cli/gather.h"
#include "sql_chosen.h"
#include "store/gaps.h"
#include "support/cleanup.h"
#include "support/cut.h"
#include "support/regexp.h"
#include "support/text.h"

/* A row, as passed to getters. */
struct row {
    sqlite3_stmt *statement;
    const struct cli_column *table;
    char *copy;  /* last value that needed a conversion */
    bool failed; /* a value is missing, for lack of memory */
};

static void row_release(struct row *row)
{
    free(row->copy);
}

/* Converts a blob to hexadecimal digits. */
static const char *blob_text(struct row *row, int index)
{
    const uint8_t *bytes = sqlite3_column_blob(row->statement, index);
    size_t n = (size_t)sqlite3_column_bytes(row->statement, index);
    free(row->copy);
    row->copy = bytes || n == 0 ? malloc(2 * n + 1) : NULL;
    row->failed |= !row->copy;
    if (row->copy)
        occ_hex_encode(bytes, n, row->copy);
    return row->copy;
}

/* Replaces each NUL by U+FFFD, since a NUL would end the text. */
static const char *whole_text(struct row *row, int index)
{
    static const char replacement[] = "\xef\xbf\xbd";
    const char *text = (const char *)sqlite3_column_text(row->statement, index);
    size_t n = (size_t)sqlite3_column_bytes(row->statement, index), used = 0;
    row->failed |= !text;
    if (!text || strlen(text) == n)
        return text;
    free(row->copy);
    row->copy = malloc(n * strlen(replacement) + 1);
    row->failed |= !row->copy;
    for (size_t at = 0; row->copy && at <= n; at += strlen(text + at) + 1)
        used += (size_t)sprintf(row->copy + used, "%s%s", at ? replacement : "", text + at);
    return row->copy;
}

struct cli_value sql_get_value(const struct cli_column *column, const void *row_pointer)
{
    struct row *row = *(struct row *const *)row_pointer;
    int index = (int)(column - row->table);
    switch (sqlite3_column_type(row->statement, index)) {
    case SQLITE_INTEGER:
        return cli_integer(sqlite3_column_int64(row->statement, index));
    case SQLITE_FLOAT:
        return cli_real(sqlite3_column_double(row->statement, index));
    case SQLITE_TEXT:
        return cli_string(whole_text(row, index));
    case SQLITE_BLOB:
        return cli_string(blob_text(row, index));
    default:
        return cli_string(NULL);
    }
}

struct cli_value sql_get_flag(const struct cli_column *column, const void *row)
{
    struct cli_value value = sql_get_value(column, row);
    return value.type == CLI_INTEGER ? cli_bool(value.integer != 0) : value;
}

static bool is_simulated(const struct row *row)
{
    for (const struct cli_column *c = row->table; c->name; c++)
        if (strcmp(c->key, "simulated") == 0)
            return sqlite3_column_int(row->statement, (int)(c - row->table)) != 0;
    return false;
}

/* Visits the rows of a prepared statement; uses table and number (0: all) of `list`. */
static int visit(sqlite3_stmt *statement, const struct sql_list *list, const struct sql_visitor *visitor,
                 struct sql_answer *ret_answer, struct occ_error *err)
{
    _cleanup_(row_release) struct row row = {.statement = statement, .table = list->table};
    const struct row *row_pointer = &row;
    struct sql_answer answer = {0};
    int step = SQLITE_DONE, status = 0;
    while (status == 0 && (step = sqlite3_step(statement)) == SQLITE_ROW && !ferror(cli_out())) {
        answer.has_more = list->number > 0 && answer.rows == (size_t)list->number;
        if (answer.has_more)
            break;
        status = visitor->row(visitor->context, &row_pointer, err);
        if (status == 0 && row.failed)
            status = occ_no_memory(err);
        answer.simulated = answer.simulated || is_simulated(&row);
        answer.rows++;
    }
    *ret_answer = answer;
    if (status == 0 && step != SQLITE_DONE && step != SQLITE_ROW)
        return occ_fail(err, OCC_E_IO, "%s", sqlite3_errmsg(sqlite3_db_handle(statement)));
    return status;
}

static int add_to_table(void *table, const void *row, struct occ_error *err)
{
    return cli_table_add(table, row, err);
}

int sql_print(sqlite3_stmt *statement, const struct sql_list *list, struct sql_answer *ret_answer,
              struct occ_error *err)
{
    _cleanup_(cli_table_freep) struct cli_table *output = NULL;
    int status = cli_table_new(cli_out(), list->name, list->selection, &output, err);
    if (status == 0)
        status = visit(statement, list, &(struct sql_visitor){add_to_table, output}, ret_answer, err);
    (void)sqlite3_reset(statement); /* a table may wait for its reader, and a snapshot keeps the log */
    return status == 0 ? cli_table_finish(output, err) : status;
}

/* ---- lists ---- */

static bool is_selected(const struct cli_selection *selection, const struct cli_column *column)
{
    for (size_t i = 0; selection && i < selection->n; i++)
        if (selection->columns[i] == column)
            return true;
    return !selection || strcmp(column->key, "simulated") == 0 ||
           cli_gather_reads(selection->gather, column->key);
}

static void add_number(sqlite3_str *sql, const char *condition, int64_t number)
{
    if (number != 0) {
        sqlite3_str_appendall(sql, " AND ");
        sqlite3_str_appendf(sql, condition, (long long)number);
    }
}

/* Adds the filter's conditions on runs, with the parameters of occ_filter_bind_runs(). Without the "+" SQLite
 * would scan the table of launches once per run; conditions on the number itself narrow a scan. */
static void add_run_conditions(sqlite3_str *sql, const struct occ_filter *filter)
{
    if (filter->run != 0)
        sqlite3_str_appendf(sql, " AND run_id = %s",
                            filter->run == OCC_RUN_LAST ? OCC_FILTER_RUN_LAST : ":run");
    if (filter->first_run != 0 || filter->last_run != 0)
        sqlite3_str_appendall(sql, OCC_FILTER_RUN_SPAN);
#define HAS_TEXT(member, before, after) || filter->member
    if (false OCC_FILTER_RUN_TEXTS(HAS_TEXT))
        sqlite3_str_appendall(sql,
                              " AND +run_id IN (SELECT run_id FROM stored_run WHERE 1" OCC_FILTER_RUN_TEXTS(
                                  OCC_FILTER_RUN_TEXT) ")");
}

static void add_launch_conditions(sqlite3_str *sql, const struct occ_filter *filter)
{
    if (sql_chooses_kernels(filter))
        sqlite3_str_appendall(sql, " AND " SQL_CHOSEN_KERNEL);
    add_number(sql, "+stream_id = %lld", filter->stream);
    if (filter->range_regex)
        sqlite3_str_appendall(sql, " AND " SQL_CHOSEN_RANGE);
    if (filter->graphs)
        sqlite3_str_appendall(sql, " AND graph_node_id IS NOT NULL");
    if (filter->gpu) {
        sqlite3_str_appendf(sql, " AND +device_id IN (WITH asked(gpu) AS (VALUES(%Q)) ", filter->gpu);
        sqlite3_str_appendall(
            sql, "SELECT device_id FROM device, asked WHERE " OCC_FILTER_GPU("gpu", "device") ")");
    }
}

/* Builds the statement; the caller frees it with sqlite3_free(). NULL: no memory. */
static char *statement_text(const struct sql_list *list)
{
    const struct occ_filter *filter = list->filter;
    sqlite3_str *sql = sqlite3_str_new(NULL);
    for (const struct cli_column *c = list->table; c->name; c++)
        sqlite3_str_appendf(sql, "%s%s", c == list->table ? "SELECT " : ", ",
                            !is_selected(list->selection, c) ? "NULL"
                            : c->sql                         ? c->sql
                                                             : c->key);
    sqlite3_str_appendf(sql, " FROM %s WHERE 1", list->from);
    add_number(sql, list->since, filter->since_ns);
    add_number(sql, list->until, filter->until_ns);
    add_run_conditions(sql, filter);
    if (list->has_launches)
        add_launch_conditions(sql, filter);
    if (list->below && filter->below_achieved > 0) {
        sqlite3_str_appendall(sql, " AND ");
        sqlite3_str_appendf(sql, list->below, filter->below_achieved);
    }
    sqlite3_str_appendf(sql, " ORDER BY %s LIMIT %lld", list->order, (long long)list->number + 1);
    return sqlite3_str_finish(sql);
}

int sql_prepare_list(struct occ_store *store, const struct sql_list *list, sqlite3_stmt **ret_statement,
                     struct occ_error *err)
{
    sqlite3 *db = occ_store_sqlite(store);
    char *text = statement_text(list);
    int status = text ? 0 : occ_no_memory(err);
    if (status == 0 && list->has_launches)
        status = sql_add_chosen(store, list->filter, err);
    *ret_statement = NULL;
    if (status == 0 && sqlite3_prepare_v2(db, text, -1, ret_statement, NULL) != SQLITE_OK)
        status = occ_fail(err, OCC_E_IO, "%s", sqlite3_errmsg(db));
    if (*ret_statement)
        occ_filter_bind_runs(*ret_statement, list->filter);
    sqlite3_free(text);
    return status;
}

/* Passes the rows to the visitor; NULL: prints them. */
static int ask_list(struct occ_store *store, const struct sql_list *list, const struct sql_visitor *visitor,
                    struct sql_answer *ret_answer, struct occ_error *err)
{
    sqlite3_stmt *statement = NULL;
    int status = sql_prepare_list(store, list, &statement, err);
    if (status == 0)
        status = visitor ? visit(statement, list, visitor, ret_answer, err)
                         : sql_print(statement, list, ret_answer, err);
    (void)sqlite3_finalize(statement);
    return status;
}

int sql_visit_list(struct occ_store *store, const struct sql_list *list, const struct sql_visitor *visitor,
                   struct occ_error *err)
{
    return ask_list(store, list, visitor, &(struct sql_answer){0}, err);
}

int64_t sql_number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int64_t number = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return number;
}

/* Returns a hint for a name with an ellipsis: a screen cut it, and no kernel or range has the cut name. "":
 * no ellipsis. */
static const char *cut_hint(const struct occ_filter *filter)
{
    const char *const texts[] = {filter->kernel, filter->kernel_regex, filter->range_regex};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i] && strstr(texts[i], OCC_ELLIPSIS))
            return "; a name with " OCC_ELLIPSIS " is cut: -o demangled or -o range prints whole ones, 'occq "
                   "show' takes the number in column id";
    return "";
}

/* Returns the nanoseconds of the filter's period in which launches ran that start before it; 0: none, or
 * launches start in the period. */
static int64_t ran_into_ns(struct occ_store *store, const struct occ_filter *filter)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_gpu_estimates estimates = {0};
    double ns = 0;
    if (filter->since_ns <= 0 || occ_overview_is_partial(filter) || filter->gpu ||
        occ_store_gpu_estimates(store, filter, NULL, &estimates, &err) != 0)
        return 0;
    for (size_t i = 0; i < estimates.n; i++)
        ns += (double)estimates.list[i].busy_ns;
    for (size_t i = 0; i < estimates.n; i++)
        ns = estimates.list[i].read > 0 ? 0 : ns;
    occ_gpu_estimates_free(&estimates);
    return ns < 9e18 ? (int64_t)ns : INT64_MAX;
}

int sql_no_launches(const struct cli_command *command, struct occ_store *store,
                    const struct occ_filter *filter, const char *why)
{
    int64_t busy_ns = ran_into_ns(store, filter);
    char text[256], known[HISTORY_KNOWN_BYTES], message[sizeof text + sizeof known];
    if (filter->label && !history_has_label(store, filter->label)) {
        (void)snprintf(message, sizeof message, "no run has the label '%.64s'%s", filter->label,
                       history_known_text(store, filter->label, known));
        return cli_nothing(command, message);
    }
    (void)snprintf(text, sizeof text, "SELECT count(*) FROM run WHERE run_id = %" PRId64, filter->run);
    if (filter->run <= 0 || sql_number(occ_store_sqlite(store), text) > 0) {
        if (busy_ns > 0)
            (void)snprintf(text, sizeof text,
                           "no launch starts in this period; the GPU is busy with earlier ones for %s of it",
                           occ_format_duration(busy_ns, known, sizeof known));
        else
            (void)snprintf(text, sizeof text, "%s%s", why, cut_hint(filter));
        return cli_nothing(command, text);
    }
    (void)snprintf(text, sizeof text, "there is no run %" PRId64 " ('occq runs' lists them)", filter->run);
    return cli_nothing(command, text);
}

int sql_list(const struct cli_command *command, struct occ_store *store, const struct sql_list *list)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct sql_answer answer;
    if (ask_list(store, list, NULL, &answer, &err) != 0)
        return cli_failure(command, &err);
    cli_note_filter(command, store, list->filter);
    if (answer.has_more && list->selection->gather)
        cli_gather_more(list->selection->gather);
    else if (answer.has_more)
        list->note_more(command, store, list);
    if (answer.simulated)
        cli_note_simulated(command, list->selection);
    return answer.rows ? CLI_EXIT_OK : sql_no_launches(command, store, list->filter, list->nothing);
}

/* ---- REGEXP ---- */

static void regexp_free(void *regexp)
{
    occ_regexp_free(regexp);
}

/* Returns the compiled pattern, which SQLite keeps while the pattern is the same; NULL: an error is set. */
static struct occ_regexp *compile(sqlite3_context *context, sqlite3_value *pattern)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_regexp *regexp = sqlite3_get_auxdata(context, 0);
    if (regexp)
        return regexp;
    if (occ_regexp_compile((const char *)sqlite3_value_text(pattern), &regexp, &err) == 0) {
        sqlite3_set_auxdata(context, 0, regexp, regexp_free);
        return sqlite3_get_auxdata(context, 0);
    }
    sqlite3_result_error(context, err.message, -1);
    return NULL;
}

/* Computes regexp(pattern, text); SQLite calls it for "text REGEXP pattern". */
static void match(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    const char *text = (const char *)sqlite3_value_text(argv[1]);
    if (!text || !sqlite3_value_text(argv[0]))
        return;
    struct occ_regexp *regexp = compile(context, argv[0]);
    if (regexp)
        sqlite3_result_int(context, occ_regexp_matches(regexp, text));
}

int sql_add_regexp(sqlite3 *db, struct occ_error *err)
{
    int code =
        sqlite3_create_function(db, "regexp", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, match, NULL, NULL);
    return code == SQLITE_OK ? 0 : occ_fail(err, OCC_E_NO_MEMORY, "%s", sqlite3_errmsg(db));
}

void sql_leave_unknown_times_out(const struct cli_command *command, struct occ_store *store,
                                 struct occ_filter *filter)
{
    uint64_t n = 0;
    if (filter->run != 0 || filter->since_ns != 0 || filter->until_ns != 0 ||
        occ_store_count_unknown_time_base(store, &n, NULL) != 0 || n == 0 ||
        !sql_number(occ_store_sqlite(store),
                    "SELECT EXISTS(SELECT 1 FROM run WHERE time_base IS NOT 'unknown')"))
        return;
    filter->since_ns = 1;
    cli_note(command, "%" PRIu64 " imported run%s without absolute times %s left out; --run chooses one", n,
             n == 1 ? "" : "s", n == 1 ? "is" : "are");
}

/* ---- partial recordings ---- */

static const struct cli_column partial[] = {
    SQL_COLUMN("runs", "runs", CLI_PLAIN, 0, "count(*)", ""),
    SQL_COLUMN("lost", "lost", CLI_PLAIN, 0, "coalesce(sum(lost), 0)", ""),
    CLI_COLUMN_END,
};

static int read_partial(void *context, const void *row, struct occ_error *err)
{
    struct sql_partial *partial_runs = context;
    (void)err;
    partial_runs->runs = sql_get_value(&partial[0], row).integer;
    partial_runs->lost = sql_get_value(&partial[1], row).integer;
    return 0;
}

struct sql_partial sql_count_partial(struct occ_store *store, const struct occ_filter *filter)
{
    struct sql_partial found = {0};
    char from[512];
    const struct sql_list list = {.table = partial,
                                  .from = from,
                                  .order = "1",
                                  .since = SQL_RUN_SINCE,
                                  .until = SQL_RUN_UNTIL,
                                  .filter = filter};
    (void)snprintf(from, sizeof from,
                   "(SELECT * FROM run WHERE lost > 0 OR run_id IN (SELECT run_id FROM recording_period "
                   "WHERE level IN ('configs', 'nothing', 'unknown') AND coalesce(until_ns, %" PRId64
                   ") > %" PRId64 " AND from_ns < %" PRId64 "))",
                   INT64_MAX, filter->since_ns, filter->until_ns > 0 ? filter->until_ns : INT64_MAX);
    (void)sql_visit_list(store, &list, &(struct sql_visitor){read_partial, &found}, NULL);
    return found;
}

void sql_note_partial(const struct cli_command *command, struct occ_store *store,
                      const struct occ_filter *filter)
{
    const struct sql_partial found = sql_count_partial(store, filter);
    char lost[64] = "";
    if (found.lost > 0)
        (void)snprintf(lost, sizeof lost, ", %" PRId64 " launches were lost", found.lost);
    if (found.runs > 0)
        cli_note(command, "%" PRId64 " run%s recorded in part%s ('occq runs' tells why)", found.runs,
                 found.runs == 1 ? " was" : "s were", lost);
}
