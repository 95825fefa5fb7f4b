/* Makes the SQL interface of a history: views, virtual tables, column_help. Stateless, any thread. */
#include "sql_nouns.h"

#include <sqlite3.h>
#include <stddef.h>
#include <string.h>

static int execute(sqlite3 *db, sqlite3_str *sql)
{
    char *text = sqlite3_str_finish(sql);
    int rc = text ? sqlite3_exec(db, text, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(text);
    return rc;
}

static void add_columns(sqlite3_str *view, const struct occ_sql_noun *noun)
{
    const char *comma = "";
    for (int list = 0; list < 3 && noun->columns[list]; list++)
        for (const struct occ_sql_column *c = noun->columns[list]; c->name; c++) {
            sqlite3_str_appendf(view, "%s\n  %s AS %s", comma, c->expression, c->name);
            comma = ",";
        }
}

static int make_noun(sqlite3 *db, const struct occ_sql_noun *noun, const char *kind)
{
    sqlite3_str *text = sqlite3_str_new(db);
    if (noun->from) {
        sqlite3_str_appendf(text, "CREATE %s %s AS SELECT", kind, noun->name);
        add_columns(text, noun);
        sqlite3_str_appendf(text, "\nFROM %s", noun->from);
    } else {
        sqlite3_str_appendf(text, "CREATE VIRTUAL TABLE IF NOT EXISTS %s USING " OCC_SQL_MODULE("%s"),
                            noun->name, noun->name);
    }
    return execute(db, text);
}

/* Adds the rows of one noun by the statement `insert`. */
static int add_help(sqlite3_stmt *insert, const struct occ_sql_noun *noun)
{
    int rc = SQLITE_OK;
    for (int list = 0; list < 3 && noun->columns[list]; list++)
        for (const struct occ_sql_column *c = noun->columns[list]; c->name && rc == SQLITE_OK; c++) {
            const char *const values[] = {noun->name, c->name, c->type, c->unit, c->help};
            for (int i = 0; i < 5; i++)
                (void)sqlite3_bind_text(insert, i + 1, values[i], -1, SQLITE_STATIC);
            (void)sqlite3_step(insert);
            rc = sqlite3_reset(insert);
        }
    return rc;
}

/* Prepares one statement for all rows: a program under occtrace waits for a new history, and parsing a
 * statement for each row took a quarter of the time. */
static int make_help(sqlite3 *db)
{
    sqlite3_stmt *insert = NULL;
    int rc = sqlite3_prepare_v2(db, "INSERT INTO column_help VALUES(?, ?, ?, ?, ?)", -1, &insert, NULL);
    for (const struct occ_sql_noun *noun = occ_sql_nouns; noun->name && rc == SQLITE_OK; noun++)
        rc = add_help(insert, noun);
    (void)sqlite3_finalize(insert);
    return rc;
}

int occ_sql_drop_nouns(sqlite3 *db)
{
    static const char texts[] = "SELECT printf('DROP VIEW \"%w\"', name) FROM sqlite_master WHERE type = "
                                "'view' AND name IN (SELECT table_name FROM column_help)";
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_table_column_metadata(db, "main", "column_help", NULL, NULL, NULL, NULL, NULL, NULL) !=
        SQLITE_OK)
        return SQLITE_OK; /* the file is new */
    sqlite3_str *drops = sqlite3_str_new(db);
    int rc = sqlite3_prepare_v2(db, texts, -1, &stmt, NULL);
    while (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        sqlite3_str_appendf(drops, "%s;", sqlite3_column_text(stmt, 0));
    rc = rc == SQLITE_OK ? sqlite3_finalize(stmt) : rc;
    sqlite3_str_appendall(drops, "DROP TABLE column_help");
    int dropped = execute(db, drops);
    return rc == SQLITE_OK ? dropped : rc;
}

int occ_sql_make_nouns(sqlite3 *db)
{
    int rc = sqlite3_exec(db,
                          "CREATE TABLE column_help(table_name TEXT NOT NULL, column_name TEXT NOT NULL, "
                          "type TEXT NOT NULL, unit TEXT NOT NULL, help TEXT NOT NULL) STRICT",
                          NULL, NULL, NULL);
    for (const struct occ_sql_noun *noun = occ_sql_nouns; noun->name && rc == SQLITE_OK; noun++)
        rc = make_noun(db, noun, "VIEW");
    return rc == SQLITE_OK ? make_help(db) : rc;
}

int occ_sql_hide_noun(sqlite3 *db, const char *name)
{
    const struct occ_sql_noun *noun = occ_sql_nouns;
    while (strcmp(noun->name, name) != 0)
        noun++;
    return make_noun(db, noun, "TEMP VIEW");
}
