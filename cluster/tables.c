/* The warehouse's tables: creating them, applying migrations, and printing the schema. */
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "schema/schema.h"
#include "support/text.h"
#include "insert.h"

#define HAS_COLUMN 44 /* code of ClickHouse's exception */

/* ---- statements ---- */

typedef int use_fn(void *context, const char *statement, struct occ_error *err);

/* A statement is empty if only the other dialect has it. */
static int use_statement(struct occ_body *sql, use_fn *use, void *context, struct occ_error *err)
{
    occ_body_put_raw(sql, "", 1);
    if (sql->failed)
        return occ_no_memory(err);
    const char *statement = sql->data + strspn(sql->data, " \n");
    int rc = *statement ? use(context, statement, err) : 0;
    occ_body_clear(sql);
    return rc;
}

/* The words of the schema that settings replace. */
#define VARIABLES_MAX 6
struct variable {
    const char *name; /* "$..." */
    char text[OCC_CONFIG_TEXT_BYTES];
};

static void set_variables(const char *database, const struct occ_warehouse_keep *keep,
                          struct variable variables[VARIABLES_MAX])
{
    const struct {
        const char *name;
        unsigned int days;
    } times[] = {{"$launches", keep->launches},
                 {"$minutes", keep->minutes},
                 {"$ranks", keep->ranks},
                 {"$hours", keep->hours},
                 {"$changes", keep->minutes + OCC_WAREHOUSE_CHANGES_MORE_DAYS}};
    variables[0].name = "$db";
    (void)snprintf(variables[0].text, sizeof variables[0].text, "%s", database);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        variables[i + 1].name = times[i].name;
        (void)snprintf(variables[i + 1].text, sizeof variables[i + 1].text, "%u", times[i].days);
    }
}

/* Puts the value of the variable at `at`, and returns the length of its name; 0: no variable. */
static size_t put_variable(struct occ_body *sql, const struct variable variables[VARIABLES_MAX],
                           const char *at)
{
    for (int i = 0; *at == '$' && i < VARIABLES_MAX; i++) {
        size_t n = strlen(variables[i].name);
        if (strncmp(at, variables[i].name, n) == 0) {
            occ_body_put_raw(sql, variables[i].text, strlen(variables[i].text));
            return n;
        }
    }
    return 0;
}

/* Calls `use` with each statement of a text in a dialect. */
static int for_statements(const char *text, enum occ_dialect dialect,
                          const struct variable variables[VARIABLES_MAX], use_fn *use, void *context,
                          struct occ_error *err)
{
    struct occ_body sql = {0};
    int rc = 0, choice = -1; /* position in {new|old}: -1 outside, else the index of the part */
    for (const char *at = text; *at && rc == 0; at++) {
        bool is_others = choice >= 0 && (choice == 0) != (dialect == OCC_DIALECT_NEW);
        size_t n = 0;
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
        } else if ((n = put_variable(&sql, variables, at)) > 0) {
            at += n - 1;
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

/* As --init runs it. */
static int print_due(void *out, const char *statement, struct occ_error *err)
{
    (void)err;
    (void)fprintf(out, "%s;\n\n", statement);
    return 0;
}

static int print_statement(void *out, const char *statement, struct occ_error *err)
{
    if (adds_a_column(statement))
        (void)fputs("-- of tables that were made before: ", out);
    return print_due(out, statement, err);
}

/* Records a migration: database, number, name. */
#define RECORD "INSERT INTO %s.migration SELECT %d, '%s', now()"

int occ_warehouse_print_schema(enum occ_dialect dialect, const char *database,
                               const struct occ_warehouse_keep *keep, FILE *out, struct occ_error *err)
{
    struct variable variables[VARIABLES_MAX];
    set_variables(database, keep, variables);
    int rc = for_statements(occ_schema_warehouse_sql, dialect, variables, print_statement, out, err);
    for (const struct occ_schema_migration *m = occ_schema_warehouse_migrations; m->version && rc == 0; m++) {
        rc = for_statements(m->sql, dialect, variables, print_statement, out, err);
        (void)fprintf(out, RECORD ";\n\n", database, m->version, m->name);
    }
    return rc;
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

/* ---- migrations ---- */

/* Migrations of this version, and what the warehouse says of them. */
struct plan {
    uint64_t applied; /* bit: version - 1; schema/embed.cmake limits their number */
    uint64_t n_newer; /* applied migrations that this version does not know */
    bool is_whole;    /* no table or column is missing; else recorded migrations are applied again, too */
};

/* Reads the numbers of applied migrations; none without the table. */
static int read_applied(struct occ_warehouse *w, struct plan *plan, struct occ_error *err)
{
    char sql[512];
    uint64_t n[3] = {0};
    int newest = 0;
    for (const struct occ_schema_migration *m = occ_schema_warehouse_migrations; m->version; m++)
        newest = m->version;
    (void)snprintf(sql, sizeof sql, "EXISTS TABLE %s.migration", w->options.database);
    int rc = occ_warehouse_ask_numbers(w, sql, n, 1, err);
    if (rc != 0 || n[0] == 0)
        return rc;
    (void)snprintf(
        sql, sizeof sql,
        "SELECT groupBitOrIf(bitShiftLeft(toUInt64(1), toUInt8(number - 1)), number >= 1 AND number "
        "<= %d), uniqExactIf(number, number > %d), count() FROM %s.migration",
        newest, newest, w->options.database);
    rc = occ_warehouse_ask_numbers(w, sql, n, 3, err);
    plan->applied = n[0];
    plan->n_newer = n[1];
    return rc;
}

bool occ_warehouse_has_sent_columns(const struct occ_warehouse *w)
{
    return w->added.run == (0 OCC_SHIP_RUN_ADDED_COLUMNS(OCC_SHIP_COUNT)) &&
           w->added.minute == OCC_SHIP_JOB_ADDED_COUNT && w->added.launch == OCC_SHIP_JOB_ADDED_COUNT;
}

static bool is_due(const struct plan *plan, const struct occ_schema_migration *m)
{
    return !plan->is_whole || !(plan->applied >> (m->version - 1) & 1);
}

/* Applies a migration and records it then: an interrupted one is applied again. */
static int apply(struct occ_warehouse *w, const struct variable variables[VARIABLES_MAX],
                 const struct occ_schema_migration *m, struct occ_error *err)
{
    char sql[512];
    int rc = for_statements(m->sql, w->dialect, variables, run_statement, w, err);
    (void)snprintf(sql, sizeof sql, RECORD, w->options.database, m->version, m->name);
    rc = rc == 0 ? occ_warehouse_ask(w, sql, err) : rc;
    return rc == 0 ? 0 : occ_error_prefix(err, "migration %s", m->name);
}

/* Checks that the warehouse is occtrace's and may be changed by this version. *ret_there: bits of the tables
 * that it has. */
static int check_ours(struct occ_warehouse *w, uint64_t *ret_there, struct occ_error *err)
{
    uint64_t others = 0, version = 0;
    int rc = occ_warehouse_find_tables(w, ret_there, &others, err);
    bool has_version = *ret_there & 1;
    if (rc == 0 && (others || (*ret_there && !has_version)))
        rc = occ_warehouse_fail_others(w, others ? others : *ret_there, err);
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
    return rc;
}

static int make_plan(struct occ_warehouse *w, struct plan *plan, uint64_t *ret_there, struct occ_error *err)
{
    int rc = check_ours(w, ret_there, err);
    *plan = (struct plan){0};
    if (rc == 0 && *ret_there)
        rc = read_applied(w, plan, err);
    if (rc == 0)
        rc = occ_warehouse_find_columns(w, err);
    plan->is_whole = occ_warehouse_has_all(*ret_there) && occ_warehouse_has_sent_columns(w) &&
                     w->has_erased && w->has_scopes && w->added.hour == OCC_SHIP_JOB_ADDED_COUNT;
    return rc;
}

int occ_warehouse_init(struct occ_warehouse *w, const struct occ_warehouse_keep *keep, struct occ_error *err)
{
    struct variable variables[VARIABLES_MAX];
    struct plan plan;
    uint64_t there = 0;
    int rc = make_plan(w, &plan, &there, err);
    set_variables(w->options.database, keep, variables);
    if (rc == 0)
        rc = for_statements(occ_schema_warehouse_sql, w->dialect, variables, run_statement, w, err);
    for (const struct occ_schema_migration *m = occ_schema_warehouse_migrations; m->version && rc == 0; m++)
        rc = is_due(&plan, m) ? apply(w, variables, m, err) : 0;
    if (rc == 0)
        rc = for_statements(occ_schema_retention_sql, w->dialect, variables, run_statement, w, err);
    return rc;
}

int occ_warehouse_print_plan(struct occ_warehouse *w, const struct occ_warehouse_keep *keep, FILE *out,
                             struct occ_error *err)
{
    struct variable variables[VARIABLES_MAX];
    struct plan plan;
    uint64_t there = 0;
    char missing[1024];
    unsigned int n = 0, due = 0;
    int rc = make_plan(w, &plan, &there, err);
    if (rc != 0)
        return rc;
    set_variables(w->options.database, keep, variables);
    occ_warehouse_name_missing(there, missing, sizeof missing);
    if (missing[0])
        (void)fprintf(out, "-- tables and views to be made: %s\n\n", missing);
    for (const struct occ_schema_migration *m = occ_schema_warehouse_migrations; m->version && rc == 0; m++) {
        n++;
        if (!is_due(&plan, m))
            continue;
        due++;
        (void)fprintf(out, "-- migration %s\n", m->name);
        rc = for_statements(m->sql, w->dialect, variables, print_due, out, err);
    }
    (void)fputs("-- times of rows by the settings warehouse.*: a shorter time deletes rows\n", out);
    if (rc == 0)
        rc = for_statements(occ_schema_retention_sql, w->dialect, variables, print_due, out, err);
    (void)fprintf(out, "-- database %s: %u of %u migrations to be applied", w->options.database, due, n);
    if (plan.n_newer > 0)
        (void)fprintf(out, "; it has %llu of a newer occtrace", (unsigned long long)plan.n_newer);
    (void)fputs("\n", out);
    return rc;
}
