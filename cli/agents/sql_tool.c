/* The tool "sql": one guarded statement, with limits of rows and bytes; the question's watch limits the time.
 * One thread. */
#include <sqlite3.h>
#include <string.h>

#include "cli/history/sql_guard.h"
#include "question.h"

enum {
    COLUMNS_MAX = 32,
    VALUE_BYTES_MAX = 32 << 20, /* of a text or blob: a packed chunk has a few megabytes */
    MEMORY_BYTES_MAX = 512 << 20,
};

/* Limits the memory of the statement: a huge intermediate result fails instead of exhausting the machine. */
static void limit(sqlite3 *db)
{
    (void)sqlite3_limit(db, SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX);
    (void)sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    (void)sqlite3_limit(db, SQLITE_LIMIT_WORKER_THREADS, 0);
    (void)sqlite3_hard_heap_limit64(MEMORY_BYTES_MAX); /* the whole process's, until agent_sql() returns */
}

static void put_value(struct occ_json *json, sqlite3_stmt *statement, int i)
{
    const char *digits = (const char *)sqlite3_column_text(statement, i);
    switch (sqlite3_column_type(statement, i)) {
    case SQLITE_INTEGER:
        occ_json_raw(json, NULL, digits);
        break;
    case SQLITE_FLOAT:
        agent_known(json, NULL, sqlite3_column_double(statement, i));
        break;
    case SQLITE_TEXT:
        agent_quote(json, NULL, digits);
        break;
    case SQLITE_BLOB:
        agent_quote(json, NULL, "(blob)");
        break;
    default:
        occ_json_null(json, NULL);
    }
}

static int put_row(struct agent_document *document, sqlite3_stmt *statement, struct occ_error *err)
{
    struct agent_row row;
    if (agent_row_open(&row, err) != 0)
        return err->code;
    for (int i = 0; i < sqlite3_column_count(statement); i++)
        put_value(&row.json, statement, i);
    return agent_row_close(&row, document, err);
}

/* Quotes the column names: they come from the statement and may be expressions. */
static void open_rows(struct agent_document *document, sqlite3_stmt *statement)
{
    occ_json_array(&document->json, "quoted_columns", true);
    for (int i = 0; i < sqlite3_column_count(statement); i++)
        agent_quote(&document->json, NULL, sqlite3_column_name(statement, i));
    occ_json_close(&document->json);
    occ_json_array(&document->json, "quoted_rows", true);
}

static int put_rows(const struct agent_question *question, struct agent_document *document,
                    sqlite3_stmt *statement, struct occ_error *err)
{
    struct occ_json *json = &document->json;
    int64_t shown = 0;
    int status = 1, code = SQLITE_ROW;
    occ_json_string(
        json, "units",
        "by the column's name: _ns nanoseconds, _bytes bytes, ratios 0 to 1; null: not measured or "
        "not known; definitions: SELECT column_name, unit, help FROM column_help WHERE table_name = "
        "'launch'");
    open_rows(document, statement);
    while (status == 1 && (code = sqlite3_step(statement)) == SQLITE_ROW &&
           shown < question->args->max_rows) {
        status = put_row(document, statement, err);
        shown += status == 1;
    }
    occ_json_close(json);
    if (status < 0)
        return status;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return occ_fail(err, OCC_E_INVALID, "%s", sqlite3_errmsg(sqlite3_db_handle(statement)));
    if (status == 0 && shown == 0)
        return occ_fail(err, OCC_E_FULL,
                        "the first row does not fit: name fewer columns, or raise max_bytes");
    occ_json_integer(json, "rows_shown", shown);
    if (code == SQLITE_ROW)
        occ_json_string(
            json, "more",
            "there are more rows: aggregate, use LIMIT and OFFSET, or raise max_rows or max_bytes");
    return 0;
}

int agent_sql(const struct agent_question *question, struct agent_document *document, struct occ_error *err)
{
    sqlite3 *db = occ_store_sqlite(question->store);
    sqlite3_stmt *statement = NULL;
    const char *rest = NULL;
    int status = sql_guard(db, err);
    limit(db);
    if (status == 0)
        status = sql_prepare_read(db, question->args->statement, &statement, &rest, err);
    if (status == 0 && !statement)
        status = occ_fail(err, OCC_E_INVALID, "the statement is empty");
    if (status == 0 && rest[strspn(rest, " \t\r\n;")])
        status = occ_fail(err, OCC_E_INVALID, "one statement at a time");
    if (status == 0 && sqlite3_column_count(statement) > COLUMNS_MAX)
        status = occ_fail(err, OCC_E_FULL, "more than %d columns", COLUMNS_MAX);
    if (status == 0)
        status = put_rows(question, document, statement, err);
    (void)sqlite3_finalize(statement);
    (void)sqlite3_hard_heap_limit64(0);
    return status;
}
