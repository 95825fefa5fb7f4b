/* See document_rows.h. SQLite parses the document: a statement selects the rows, with a column for each
 * member that a row has, in the order of their first rows. One thread. */
#include "document_rows.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "arrow_stream.h"

/* The first array of the document ?1. */
#define FIRST_ARRAY                                                                                          \
    "json_each(?1, '$.' || (SELECT json_quote(key) FROM json_each(?1) WHERE type = 'array' LIMIT 1))"

static int fail(sqlite3 *db, struct occ_error *err)
{
    return sqlite3_errcode(db) == SQLITE_NOMEM ? occ_no_memory(err)
                                               : occ_fail(err, OCC_E_CORRUPT, "%s", sqlite3_errmsg(db));
}

/* Prepares a statement whose parameter is the document, and frees its text. */
static int prepare(sqlite3 *db, char *sql, const char *document, sqlite3_stmt **ret_statement,
                   struct occ_error *err)
{
    if (!sql)
        return occ_no_memory(err);
    int code = sqlite3_prepare_v2(db, sql, -1, ret_statement, NULL);
    sqlite3_free(sql);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(*ret_statement, 1, document, -1, SQLITE_TRANSIENT);
    return code == SQLITE_OK ? 0 : fail(db, err);
}

/* Adds a member of the rows as a column. A quoted JSON path cannot hold a quote: json_each() finds the name
 * of such a column of a statement. */
static void add_column(sqlite3_str *sql, const char *name, bool is_first)
{
    sqlite3_str_appendall(sql, is_first ? "" : ", ");
    if (strpbrk(name, "\"\\"))
        sqlite3_str_appendf(sql, "(SELECT value FROM json_each(rows.value) WHERE key = %Q) AS \"%w\"", name,
                            name);
    else
        sqlite3_str_appendf(sql, "json_extract(value, '$.\"%q\"') AS \"%w\"", name, name);
}

/* Makes the statement of the rows. *ret_sql NULL: the document has none. */
static int make_statement(sqlite3 *db, const char *document, const char *rows, char **ret_sql,
                          struct occ_error *err)
{
    sqlite3_stmt *names = NULL;
    char *text =
        sqlite3_mprintf("SELECT DISTINCT member.key FROM %s AS rows, json_each(rows.value) AS member "
                        "WHERE typeof(member.key) = 'text'",
                        rows);
    int status = prepare(db, text, document, &names, err), n = 0, code = SQLITE_DONE;
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql, "SELECT ");
    while (status == 0 && (code = sqlite3_step(names)) == SQLITE_ROW)
        add_column(sql, (const char *)sqlite3_column_text(names, 0), n++ == 0);
    if (status == 0 && code != SQLITE_DONE)
        status = fail(db, err);
    (void)sqlite3_finalize(names);
    sqlite3_str_appendf(sql, " FROM %s AS rows", rows);
    *ret_sql = sqlite3_str_finish(sql);
    if (status == 0 && !*ret_sql)
        status = occ_no_memory(err);
    if (status == 0 && n > 0)
        return 0;
    sqlite3_free(*ret_sql);
    *ret_sql = NULL;
    return status;
}

static void close_database(void *db)
{
    (void)sqlite3_close(db);
}

int query_document_rows(const char *document, const char *rows, struct ArrowArrayStream *ret_stream,
                        struct occ_error *err)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    char *sql = NULL;
    int status = 0;
    if (sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, NULL) != SQLITE_OK)
        status = occ_no_memory(err);
    if (status == 0)
        status = make_statement(db, document, rows ? rows : FIRST_ARRAY, &sql, err);
    if (status == 0)
        status = prepare(db, sql ? sql : sqlite3_mprintf("SELECT NULL AS rows WHERE ?1 IS NULL"), document,
                         &statement, err);
    const struct query_source source = {statement, close_database, db, SIZE_MAX, SIZE_MAX};
    if (status == 0)
        return query_stream_begin(&source, ret_stream, err);
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close(db);
    return status;
}
