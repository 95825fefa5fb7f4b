/* Functions that both virtual tables use. */
#include "vtab.h"

#include <string.h>

int occ_vtab_connect(sqlite3 *db, void *declaration, int argc, const char *const *argv, sqlite3_vtab **ret,
                     char **message)
{
    (void)argc;
    (void)message;
    int rc = sqlite3_declare_vtab(db, declaration);
    if (rc != SQLITE_OK)
        return rc;
    const char *schema = argv[1];
    size_t bytes = strlen(schema) + 1;
    struct occ_vtab *table = sqlite3_malloc64(sizeof *table + bytes);
    if (!table)
        return SQLITE_NOMEM;
    *table = (struct occ_vtab){.db = db, .schema = memcpy(table + 1, schema, bytes)};
    *ret = &table->base;
    return SQLITE_OK;
}

int occ_vtab_disconnect(sqlite3_vtab *vtab)
{
    (void)sqlite3_finalize(((struct occ_vtab *)vtab)->statistics);
    sqlite3_free(vtab);
    return SQLITE_OK;
}

int occ_vtab_fail(sqlite3_vtab *vtab, int rc, const char *text)
{
    sqlite3_free(vtab->zErrMsg);
    vtab->zErrMsg = sqlite3_mprintf("%s", text);
    return rc;
}

int occ_vtab_enter(sqlite3_vtab *vtab)
{
    if (((struct occ_vtab *)vtab)->reading)
        return occ_vtab_fail(vtab, SQLITE_CORRUPT, "the history's schema refers to itself");
    return SQLITE_OK;
}

int occ_vtab_prepare(sqlite3_vtab *vtab, sqlite3_stmt **stmt, const char *format)
{
    struct occ_vtab *table = (struct occ_vtab *)vtab;
    const char *name = table->schema;
    if (*stmt)
        return SQLITE_OK;
    char *sql = sqlite3_mprintf(format, name, name, name, name, name);
    table->reading = true;
    int rc =
        sql ? sqlite3_prepare_v3(table->db, sql, -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL) : SQLITE_NOMEM;
    table->reading = false;
    sqlite3_free(sql);
    return rc == SQLITE_OK || rc == SQLITE_NOMEM ? rc : occ_vtab_fail(vtab, rc, sqlite3_errmsg(table->db));
}

int occ_vtab_step(sqlite3_vtab *vtab, sqlite3_stmt *stmt)
{
    struct occ_vtab *table = (struct occ_vtab *)vtab;
    table->reading = true;
    int rc = sqlite3_step(stmt);
    table->reading = false;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? rc : occ_vtab_fail(vtab, rc, sqlite3_errmsg(table->db));
}

/* ---- conditions ---- */

/* The letter for a comparison in the plan; 0: not one of = > >= < <=. */
static char operator_letter(int op)
{
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return '=';
    case SQLITE_INDEX_CONSTRAINT_GT:
        return '>';
    case SQLITE_INDEX_CONSTRAINT_GE:
        return 'g';
    case SQLITE_INDEX_CONSTRAINT_LT:
        return '<';
    case SQLITE_INDEX_CONSTRAINT_LE:
        return 'l';
    default:
        return 0;
    }
}

static void at_least(struct occ_range *r, int64_t v)
{
    r->low = v > r->low ? v : r->low;
}

static void at_most(struct occ_range *r, int64_t v)
{
    r->high = v < r->high ? v : r->high;
}

static void make_empty(struct occ_range *r)
{
    r->low = 1;
    r->high = 0;
}

static void narrow_integer(struct occ_range *r, char op, int64_t v)
{
    if ((op == '>' && v == INT64_MAX) || (op == '<' && v == INT64_MIN)) {
        make_empty(r);
        return;
    }
    if (op == '=' || op == 'g' || op == '>')
        at_least(r, op == '>' ? v + 1 : v);
    if (op == '=' || op == 'l' || op == '<')
        at_most(r, op == '<' ? v - 1 : v);
}

/* Narrows by a real, which compares with integers by value: "> 1.5" is ">= 2". */
static void narrow_real(struct occ_range *r, char op, double v)
{
    const double limit = 9223372036854775808.0; /* 2^63 */
    if (v >= limit || v < -limit) {
        bool above = v >= limit;
        if (op == '=' || (above ? op == '>' || op == 'g' : op == '<' || op == 'l'))
            make_empty(r);
        return;
    }
    int64_t whole = (int64_t)v; /* towards zero */
    if ((double)whole == v) {
        narrow_integer(r, op, whole);
    } else if (op == '=') {
        make_empty(r);
    } else {
        int64_t below = v < 0 ? whole - 1 : whole;
        narrow_integer(r, op == '>' || op == 'g' ? '>' : 'l', below);
    }
}

/* The comparison of an integer column with any value, as SQL defines it. */
void occ_range_narrow(struct occ_range *r, char op, sqlite3_value *value)
{
    switch (sqlite3_value_numeric_type(value)) {
    case SQLITE_INTEGER:
        narrow_integer(r, op, sqlite3_value_int64(value));
        break;
    case SQLITE_FLOAT:
        narrow_real(r, op, sqlite3_value_double(value));
        break;
    case SQLITE_NULL:
        make_empty(r);
        break;
    default: /* text and blobs are larger than every number */
        if (op == '=' || op == '>' || op == 'g')
            make_empty(r);
    }
}

static const struct occ_vtab_key *find_key(const struct occ_vtab_key *keys, int n_keys, int column)
{
    for (int i = 0; i < n_keys; i++)
        if (keys[i].column == column)
            return &keys[i];
    return NULL;
}

/* Estimates the share of rows that a comparison leaves: for equality, as if all values were equally frequent;
 * otherwise a guess. */
static double share_of(char letter, sqlite3_stmt *statistics, int key)
{
    double values = sqlite3_column_double(statistics, 1 + key);
    return letter != '=' ? 0.25 : values > 1 ? 1 / values : 1;
}

/* Estimates the cost. Unpacking a row costs half as much as returning it. */
static void estimate(sqlite3_index_info *info, double unpacked, double rows)
{
    info->estimatedCost = unpacked * 0.5 + rows + 100;
    info->estimatedRows = (sqlite3_int64)rows + 1;
}

int occ_vtab_plan(sqlite3_vtab *vtab, sqlite3_index_info *info, const struct occ_vtab_key *keys, int n_keys,
                  const char *statistics)
{
    struct occ_vtab *table = (struct occ_vtab *)vtab;
    char plan[64];
    int n = 0, rc = occ_vtab_enter(vtab);
    if (rc == SQLITE_OK)
        rc = occ_vtab_prepare(vtab, &table->statistics, statistics);
    if (rc == SQLITE_OK)
        rc = occ_vtab_step(vtab, table->statistics);
    if (rc != SQLITE_ROW)
        return rc;
    double rows = sqlite3_column_double(table->statistics, 0), unpacked = rows;
    for (int i = 0; i < info->nConstraint && 2 * n + 2 < (int)sizeof plan; i++) {
        const struct occ_vtab_key *key =
            info->aConstraint[i].usable ? find_key(keys, n_keys, info->aConstraint[i].iColumn) : NULL;
        char op = operator_letter(info->aConstraint[i].op);
        if (!key || op == 0)
            continue;
        plan[2 * n] = key->letter;
        plan[2 * n + 1] = op;
        info->aConstraintUsage[i].argvIndex = ++n;
        info->aConstraintUsage[i].omit = 1;
        double share = share_of(op, table->statistics, (int)(key - keys));
        rows *= share;
        unpacked *= key->of_rows ? 1 : share;
    }
    (void)sqlite3_reset(table->statistics);
    estimate(info, unpacked, rows);
    info->idxStr = sqlite3_mprintf("%.*s", 2 * n, plan);
    info->needToFreeIdxStr = 1;
    return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}
