/* The warehouse's tables: creating and upgrading them, and printing the schema. */
#include <stdlib.h>
#include <string.h>

#include "schema/schema.h"
#include "support/cleanup.h"
#include "insert.h"

#define HAS_COLUMN 44 /* code of ClickHouse's exception */

/* ---- making it ---- */

/* A statement is empty if only the other dialect has it. */
static int use_statement(struct occ_body *sql,
                         int (*use)(void *context, const char *statement, struct occ_error *err),
                         void *context, struct occ_error *err)
{
    occ_body_put_raw(sql, "", 1);
    if (sql->failed)
        return occ_no_memory(err);
    const char *statement = sql->data + strspn(sql->data, " \n");
    int rc = *statement ? use(context, statement, err) : 0;
    occ_body_clear(sql);
    return rc;
}

/* Calls `use` with each statement of the schema in a dialect. */
static int for_statements(enum occ_dialect dialect, const char *database,
                          int (*use)(void *context, const char *statement, struct occ_error *err),
                          void *context, struct occ_error *err)
{
    struct occ_body sql = {0};
    int rc = 0, choice = -1; /* position in {new|old}: -1 outside, else the index of the part */
    for (const char *at = occ_schema_warehouse_sql; *at && rc == 0; at++) {
        bool is_others = choice >= 0 && (choice == 0) != (dialect == OCC_DIALECT_NEW);
        if (choice < 0 && strncmp(at, "--", 2) == 0) {
            at += strcspn(at, "\n") - 1; /* comments are for readers of the file */
        } else if (choice < 0 && *at == '{') {
            choice = 0;
        } else if (choice == 0 && *at == '|') {
            choice = 1;
        } else if (choice >= 0 && *at == '}') {
            choice = -1;
        } else if (is_others) {
            continue;
        } else if (strncmp(at, "$db", 3) == 0) {
            occ_body_put_raw(&sql, database, strlen(database));
            at += 2;
        } else if (choice < 0 && strncmp(at, ";\n", 2) == 0) {
            rc = use_statement(&sql, use, context, err);
        } else {
            occ_body_put_raw(&sql, at, 1);
        }
    }
    occ_body_free(&sql);
    return rc;
}

/* true for ALTER TABLE ... ADD COLUMN: version 18.16 lacks IF NOT EXISTS, so the statement may fail on
 * existing columns. */
static bool adds_a_column(const char *statement)
{
    return strncmp(statement, "ALTER TABLE ", 12) == 0 && strstr(statement, " ADD COLUMN ") &&
           !strstr(statement, " IF NOT EXISTS ");
}

static int print_statement(void *out, const char *statement, struct occ_error *err)
{
    (void)err;
    (void)fprintf(out, "%s%s;\n\n", adds_a_column(statement) ? "-- of tables that were made before: " : "",
                  statement);
    return 0;
}

int occ_warehouse_print_schema(enum occ_dialect dialect, const char *database, FILE *out,
                               struct occ_error *err)
{
    return for_statements(dialect, database, print_statement, out, err);
}

void occ_warehouse_print_accounts(enum occ_dialect dialect, const char *database, FILE *out)
{
    const char *text = dialect == OCC_DIALECT_OLD ? occ_schema_accounts_xml : occ_schema_accounts_sql;
    for (const char *at; (at = strstr(text, "$db")); text = at + 3)
        (void)fprintf(out, "%.*s%s", (int)(at - text), text, database);
    (void)fputs(text, out);
}

static int run_statement(void *warehouse, const char *statement, struct occ_error *err)
{
    struct occ_warehouse *w = warehouse;
    int rc = w->dialect == OCC_DIALECT_OLD
                 ? occ_http_add(w->http, "allow_experimental_low_cardinality_type", "1", err)
                 : 0;
    rc = rc == 0 ? occ_warehouse_ask(w, statement, err) : rc;
    bool is_there = rc != 0 && adds_a_column(statement) && occ_warehouse_exception(w) == HAS_COLUMN;
    return is_there ? 0 : rc;
}

int occ_warehouse_init(struct occ_warehouse *w, struct occ_error *err)
{
    uint64_t there = 0, others = 0, version = 0;
    int rc = occ_warehouse_find_tables(w, &there, &others, err);
    bool has_version = there & 1;
    if (rc == 0 && (others || (there && !has_version)))
        rc = occ_warehouse_fail_others(w, others ? others : there, err);
    if (rc == 0 && has_version)
        rc = occ_warehouse_schema_version(w, &version, err);
    if (rc == 0 && version > OCC_WAREHOUSE_SCHEMA)
        rc = occ_warehouse_check(w, OCC_FOR_MAINTENANCE, err);
    if (rc == 0 && version == 1)
        rc =
            occ_fail(err, OCC_E_VERSION,
                     "%s: the tables of database %s are of an older occtrace (version 1), which had measured "
                     "values in other columns: drop the database and make it anew; a node whose ship.db is "
                     "deleted sends what its histories keep",
                     w->options.http.url, w->options.database);
    return rc == 0 ? for_statements(w->dialect, w->options.database, run_statement, w, err) : rc;
}
