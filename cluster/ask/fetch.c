/* Puts answers of the warehouse into rows of a temporary table: see remote.h. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "remote.h"
#include "support/text.h"

/* Replaces the escapes of TabSeparated in place; returns the length. */
static size_t unescape(char *text)
{
    static const char from[] = "btnrf0", to[] = "\b\t\n\r\f";
    char *out = text;
    for (const char *in = text; *in; in++) {
        const char *escape = *in == '\\' && in[1] ? strchr(from, in[1]) : NULL;
        if (*in == '\\' && in[1])
            in++;
        *out++ = escape ? to[escape - from] : *in;
    }
    *out = '\0';
    return (size_t)(out - text);
}

static int fail_answer(const struct occ_warehouse *w, struct occ_error *err)
{
    return occ_fail(err, OCC_E_IO, "%s: the answer is not whole, or not of ClickHouse", w->options.http.url);
}

static int fail_sql(const struct occ_warehouse *w, sqlite3 *db, struct occ_error *err)
{
    int code = sqlite3_errcode(db) == SQLITE_NOMEM ? OCC_E_NO_MEMORY : OCC_E_CORRUPT;
    return occ_fail(err, code, "%s: the answer has a value that cannot be: %s", w->options.http.url,
                    sqlite3_errmsg(db));
}

/* Inserts the fields of a line as a row. */
static int put_line(const struct occ_warehouse *w, sqlite3_stmt *insert, char *line, struct occ_error *err)
{
    int n = 0, wanted = sqlite3_bind_parameter_count(insert);
    for (char *field; (field = strsep(&line, "\t"));) {
        bool is_null = strcmp(field, "\\N") == 0;
        size_t length = is_null ? 0 : unescape(field);
        if (++n > wanted)
            return fail_answer(w, err);
        (void)sqlite3_bind_text(insert, n, is_null ? NULL : field, (int)length, SQLITE_STATIC);
    }
    if (n != wanted)
        return fail_answer(w, err);
    int code = sqlite3_step(insert);
    (void)sqlite3_reset(insert);
    return code == SQLITE_DONE ? 0 : fail_sql(w, sqlite3_db_handle(insert), err);
}

/* Inserts whole lines. */
static int put_rest(const struct occ_warehouse *w, sqlite3_stmt *insert, char *rest, struct occ_error *err)
{
    int rc = 0;
    for (char *line; rc == 0 && *rest;) {
        line = strsep(&rest, "\n");
        if (!rest)
            return fail_answer(w, err);
        rc = put_line(w, insert, line, err);
    }
    return rc;
}

static int put_lines(const struct occ_warehouse *w, sqlite3_stmt *insert, const char *names,
                     struct occ_error *err)
{
    char *rest = w->answer.text, *header = strsep(&rest, "\n");
    if (!rest || memchr(rest, '\0', w->answer.n - (size_t)(rest - w->answer.text)))
        return fail_answer(w, err);
    for (const char *name = names; *header || *name; header++, name++) { /* compares "a\tb" with "a, b" */
        bool is_end = name[0] == ',' && name[1] == ' ';
        name += is_end;
        if (*header != (is_end ? '\t' : *name))
            return fail_answer(w, err);
    }
    return put_rest(w, insert, rest, err);
}

static int prepare(const struct occ_warehouse *w, sqlite3 *db, const char *table, const char *names,
                   sqlite3_stmt **ret_insert, struct occ_error *err)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql, "INSERT INTO temp.%s VALUES(?", table);
    for (const char *at = names; (at = strchr(at, ',')); at++)
        sqlite3_str_appendall(sql, ", ?");
    sqlite3_str_appendall(sql, ")");
    char *insert = sqlite3_str_finish(sql),
         *create = sqlite3_mprintf("CREATE TEMP TABLE IF NOT EXISTS %s(%s)", table, names);
    bool done = insert && create && sqlite3_exec(db, create, NULL, NULL, NULL) == SQLITE_OK &&
                sqlite3_prepare_v2(db, insert, -1, ret_insert, NULL) == SQLITE_OK;
    sqlite3_free(insert);
    sqlite3_free(create);
    return done ? 0 : fail_sql(w, db, err);
}

int occ_remote_fetch(struct occ_warehouse *w, sqlite3 *db, const char *table, const char *names,
                     const char *sql, struct occ_error *err)
{
    sqlite3_stmt *insert = NULL;
    char *statement = sqlite3_mprintf("%s FORMAT TabSeparatedWithNames", sql);
    int rc = statement ? occ_warehouse_ask(w, statement, err) : occ_no_memory(err);
    sqlite3_free(statement);
    if (rc == 0)
        rc = prepare(w, db, table, names, &insert, err);
    if (rc == 0)
        rc = put_lines(w, insert, names, err);
    (void)sqlite3_finalize(insert);
    return rc;
}

/* ---- any statement ---- */

#define READ_ONLY 164 /* exception code of ClickHouse */

/* Sends a statement; tables without a database are the warehouse's. */
static int ask_database(struct occ_warehouse *w, const char *sql, struct occ_error *err)
{
    int rc = occ_http_add(w->http, "database", w->options.database, err);
    return rc == 0 ? occ_warehouse_ask(w, sql, err) : rc;
}

/* Sends a statement in read-only mode. A read-only account may not even request this mode. The server reports
 * errors in the statement. */
static int ask_read_only(struct occ_warehouse *w, const char *sql, struct occ_error *err)
{
    int rc = occ_http_add(w->http, "readonly", "1", err);
    if (rc == 0)
        rc = ask_database(w, sql, err);
    if (rc == OCC_E_DENIED && occ_warehouse_exception(w) == READ_ONLY && strstr(w->answer.text, "'readonly'"))
        rc = ask_database(w, sql, err);
    if ((rc == OCC_E_NOT_FOUND || rc == OCC_E_INVALID) && occ_warehouse_exception(w) != 0) {
        w->answer.text[strcspn(w->answer.text, "\r\n")] = '\0';
        occ_text_sanitise(w->answer.text);
        return occ_fail(err, rc, "%s: %s", w->options.http.url, w->answer.text);
    }
    return rc;
}

/* Makes columns c0, c1 ... from a line of names and a line of types, and the statement that gives the columns
 * their names. Numbers stay numbers: integers within SQLite's range; NaN and infinities become NULL. */
static bool make_columns(char *names, char *types, sqlite3_str *columns, sqlite3_str *select)
{
    for (int n = 0; names && types; n++) {
        char *name = strsep(&names, "\t"), *type = strsep(&types, "\t");
        bool is_real = strncmp(type, "Float", 5) == 0 || strncmp(type, "Nullable(Float", 14) == 0;
        (void)unescape(name);
        sqlite3_str_appendf(columns, "%sc%d%s", n ? ", " : "", n, is_real ? " REAL" : " TEXT");
        sqlite3_str_appendall(select, n ? ", " : "SELECT ");
        if (is_real)
            sqlite3_str_appendf(select, "iif(typeof(c%d) = 'real', c%d, NULL)", n, n);
        else if (strstr(type, "Int"))
            sqlite3_str_appendf(select,
                                "iif(CAST(CAST(c%d AS INTEGER) AS TEXT) = c%d, CAST(c%d AS INTEGER), c%d)", n,
                                n, n, n);
        else
            sqlite3_str_appendf(select, "c%d", n);
        sqlite3_str_appendf(select, " AS \"%w\"", name);
    }
    sqlite3_str_appendall(select, " FROM temp.rows");
    return !names && !types;
}

static int put_answer(struct occ_warehouse *w, sqlite3 *db, sqlite3_str *select, struct occ_error *err)
{
    char *rest = w->answer.text, *names = strsep(&rest, "\n"), *types = rest ? strsep(&rest, "\n") : NULL;
    sqlite3_str *list = sqlite3_str_new(db);
    sqlite3_stmt *insert = NULL;
    bool is_whole = rest && !memchr(rest, '\0', w->answer.n - (size_t)(rest - w->answer.text)) &&
                    make_columns(names, types, list, select);
    char *columns = sqlite3_str_finish(list);
    int rc = is_whole && columns ? prepare(w, db, "rows", columns, &insert, err) : fail_answer(w, err);
    if (rc == 0)
        rc = put_rest(w, insert, rest, err);
    (void)sqlite3_finalize(insert);
    sqlite3_free(columns);
    return rc;
}

int occ_remote_select(struct occ_warehouse *w, sqlite3 *db, const char *sql, char **ret_select,
                      struct occ_error *err)
{
    size_t n = strlen(sql);
    while (n > 0 && strchr(" \t\r\n;", sql[n - 1]))
        n--;
    char *statement = sqlite3_mprintf("%.*s\nFORMAT TabSeparatedWithNamesAndTypes", (int)n, sql);
    int rc = statement ? ask_read_only(w, statement, err) : occ_no_memory(err);
    sqlite3_str *select = sqlite3_str_new(db);
    if (rc == 0)
        rc = put_answer(w, db, select, err);
    sqlite3_free(statement);
    *ret_select = sqlite3_str_finish(select);
    return rc;
}
