/* Loads the kernels, devices and launch configurations of the sums: see load.h. */
#include <stdlib.h>
#include <string.h>

#include "body.h"
#include "load.h"
#include "occupancy/occupancy.h"
#include "names/demangle.h"

char *occ_load_ids(const struct occ_load *l, const char *sql, char *otherwise)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3_str *list = sqlite3_str_new(l->db);
    int n = 0;
    if (sqlite3_prepare_v2(l->db, sql, -1, &stmt, NULL) == SQLITE_OK)
        while (n <= OCC_LOAD_LISTED_MAX && sqlite3_step(stmt) == SQLITE_ROW)
            sqlite3_str_appendf(list, "%s%lld", n++ > 0 ? ", " : "",
                                (long long)sqlite3_column_int64(stmt, 0)); /* our own text: a number */
    (void)sqlite3_finalize(stmt);
    char *ids = sqlite3_str_finish(list);
    if (n > OCC_LOAD_LISTED_MAX && otherwise) {
        sqlite3_free(ids);
        return otherwise;
    }
    sqlite3_free(otherwise);
    return ids ? ids : sqlite3_mprintf("0");
}

/* ---- launch configurations ---- */

#define N_CONFIG_COL                       (0 OCC_SHIP_LAUNCH_CONFIG_COLUMNS(OCC_SHIP_COUNT))
#define AS_COLUMN(column, expression, ...) ", " expression " AS " #column

/* Makes the table of configurations, with the types of the history's columns. */
static int make_configs(const struct occ_load *l)
{
    return occ_load_run(
        l, sqlite3_mprintf("CREATE TEMP TABLE configs AS SELECT NULL AS config_id, NULL AS kernel_id, NULL "
                           "AS node" OCC_SHIP_LAUNCH_CONFIG_COLUMNS(
                               AS_COLUMN) " FROM stored_launch_config AS c JOIN stored_device AS d LIMIT 0"));
}

static int fetch_configs(const struct occ_load *l)
{
    static const char first[] = "config_id, kernel_id, node",
                      names[] = "config_id, kernel_id, node" OCC_SHIP_LAUNCH_CONFIG_COLUMNS(OCC_LOAD_COMMA);
    char *ids = occ_load_ids(l, "SELECT DISTINCT config_id FROM sums",
                             sqlite3_mprintf("SELECT DISTINCT toInt64(config) FROM %s.minute WHERE %s",
                                             l->w->options.database, l->where));
    int rc = make_configs(l);
    if (rc == 0)
        rc = occ_load_fetch(
            l, "configs", names,
            sqlite3_mprintf("SELECT toInt64(config) AS config_id, toInt64(kernel) AS kernel_id, node%s FROM "
                            "%s.launch_config FINAL WHERE toInt64(config) IN (%s)",
                            names + strlen(first), l->w->options.database, ids));
    sqlite3_free(ids);
    return rc;
}

/* True if a value has its column's type: a text that is not a number stays a text. */
static bool has_type(sqlite3_stmt *stmt, int i)
{
    const char *declared = sqlite3_column_decltype(stmt, i);
    int type = sqlite3_column_type(stmt, i), wanted = !declared                       ? type
                                                      : strcmp(declared, "INT") == 0  ? SQLITE_INTEGER
                                                      : strcmp(declared, "REAL") == 0 ? SQLITE_FLOAT
                                                                                      : type;
    return type == wanted || type == SQLITE_NULL;
}

/* True if the id of the row is the hash of its other columns, computed like the shipper does. */
static bool is_config(sqlite3_stmt *stmt, struct occ_body *row)
{
    enum { ID = 1, KERNEL, FIRST };
    bool has_types = true;
    occ_body_clear(row);
    occ_body_put_u64(row, (uint64_t)sqlite3_column_int64(stmt, KERNEL));
    occ_body_put_columns(row, stmt, FIRST, N_CONFIG_COL);
    for (int i = FIRST; i < FIRST + N_CONFIG_COL; i++)
        has_types = has_types && has_type(stmt, i);
    return has_types &&
           (row->failed || occ_body_id(row->data, row->n) == (uint64_t)sqlite3_column_int64(stmt, ID));
}

/* Checks the rows' ids, because any node may send rows with any id. */
static int check_configs(const struct occ_load *l)
{
    static const char select[] = "SELECT rowid, config_id, kernel_id" OCC_SHIP_LAUNCH_CONFIG_COLUMNS(
        OCC_LOAD_COMMA) " FROM temp.configs";
    sqlite3_stmt *stmt = NULL;
    struct occ_body row = {0};
    int rc = sqlite3_prepare_v2(l->db, select, -1, &stmt, NULL) == SQLITE_OK ? 0 : occ_no_memory(l->err);
    while (rc == 0 && sqlite3_step(stmt) == SQLITE_ROW) {
        long long id = (long long)sqlite3_column_int64(stmt, 0);
        if (is_config(stmt, &row))
            continue;
        rc =
            occ_load_leave_out(l, sqlite3_mprintf("SELECT node, 1 FROM temp.configs WHERE rowid = %lld", id));
        if (rc == 0)
            rc = occ_load_run(l, sqlite3_mprintf("DELETE FROM temp.configs WHERE rowid = %lld", id));
    }
    (void)sqlite3_finalize(stmt);
    rc = rc == 0 && row.failed ? occ_no_memory(l->err) : rc;
    occ_body_free(&row);
    return rc;
}

#define CAUSE_OF_FOLDED(name, id, text) ", cause_" id " = (main_cause = '" id "') * waste"

/* Splits rows of '(other)', which add up several configurations, into one configuration for each row of
 * `sums`. Known are only a cause, the waste and the capacity of the SMs: each gets no limits or waves, and a
 * GPU with their average number of warps. */
static int split_folded(const struct occ_load *l)
{
    return occ_load_run(
        l,
        sqlite3_mprintf(
            "CREATE TEMP TABLE folded AS SELECT *, wasted / warps AS waste FROM (SELECT config_id || '/' || "
            "rowid AS "
            "id, config_id AS of, rowid AS number, waste * 1e9 / total AS wasted, "
            "max(1, CAST(round(capacity * 1e9 / total) AS INTEGER)) AS warps FROM sums WHERE capacity + 0 > "
            "0);"
            "INSERT INTO temp.configs SELECT id, kernel_id, ''" OCC_SHIP_LAUNCH_CONFIG_COLUMNS(
                OCC_LOAD_COMMA) " FROM folded JOIN configs ON config_id = of;"
                                "UPDATE temp.sums SET config_id = id FROM folded WHERE number = sums.rowid;"
                                "UPDATE temp.configs SET sm_count = warps, max_warps_per_sm = 1, "
                                "expected_elapsed_low = 1 - waste" OCC_CAUSES(
                                    CAUSE_OF_FOLDED) " FROM folded WHERE config_id = id"));
}

/* ---- kernels ---- */

/* SQL function kernel_of(mangled): the kernel's id. */
static void kernel_of(sqlite3_context *context, int argc, sqlite3_value **values)
{
    const char *mangled = (const char *)sqlite3_value_text(values[0]);
    (void)argc;
    sqlite3_result_int64(context,
                         mangled ? (int64_t)occ_body_id(mangled, (size_t)sqlite3_value_bytes(values[0])) : 0);
}

/* SQL functions demangled(mangled), short_name(mangled): other columns of the kernel's row depend on the
 * sending node and are not trusted. */
static void demangle(sqlite3_context *context, int argc, sqlite3_value **values)
{
    const char *mangled = (const char *)sqlite3_value_text(values[0]);
    char *names[2] = {NULL, NULL};
    bool is_short = sqlite3_user_data(context) != NULL;
    (void)argc;
    if (mangled && occ_demangle(mangled, &names[0], &names[1]) == 0)
        sqlite3_result_text(context, names[is_short], -1, SQLITE_TRANSIENT);
    else
        sqlite3_result_error_nomem(context);
    free(names[0]);
    free(names[1]);
}

static int fetch_kernels(const struct occ_load *l, char *ids)
{
    bool done = sqlite3_create_function(l->db, "kernel_of", 1, SQLITE_UTF8, NULL, kernel_of, NULL, NULL) ==
                    SQLITE_OK &&
                sqlite3_create_function(l->db, "demangled", 1, SQLITE_UTF8, NULL, demangle, NULL, NULL) ==
                    SQLITE_OK &&
                sqlite3_create_function(l->db, "short_name", 1, SQLITE_UTF8, l->db, demangle, NULL, NULL) ==
                    SQLITE_OK;
    int rc =
        done ? occ_load_fetch(
                   l, "kernels", "kernel_id, mangled, node",
                   sqlite3_mprintf("SELECT toInt64(kernel) AS kernel_id, mangled, node FROM %s.kernel FINAL "
                                   "WHERE toInt64(kernel) IN (%s)",
                                   l->w->options.database, ids))
             : occ_no_memory(l->err);
    sqlite3_free(ids);
    return rc == 0 ? occ_load_leave_out(l, sqlite3_mprintf("SELECT node, count(*) FROM kernels WHERE "
                                                           "kernel_of(mangled) <> CAST(kernel_id AS INTEGER) "
                                                           "GROUP BY node"))
                   : rc;
}

/* A short number for an id: 31 of its bits; NULL (SQLite then chooses one) if two ids give the same
 * number. */
#define NUMBER(id)                                                                                           \
    "iif(row_number() OVER (PARTITION BY CAST(" id " AS INTEGER) & 2147483647 ORDER BY " id ") = 1, "        \
    "max(CAST(" id " AS INTEGER) & 2147483647, 1), NULL) AS number"
#define NUMBERED_FIRST " ORDER BY number IS NULL"

static int put_kernels(const struct occ_load *l)
{
    return occ_load_run(
        l,
        sqlite3_mprintf(
            "INSERT INTO stored_kernel(kernel_id, hash, mangled, demangled, short) "
            "SELECT " NUMBER(
                "kernel_id") ", CAST(kernel_id AS INTEGER), mangled, demangled(mangled), short_name(mangled) "
                             "FROM "
                             "kernels WHERE kernel_of(mangled) = CAST(kernel_id AS INTEGER)" NUMBERED_FIRST));
}

/* Appends the columns of a table of the history; columns from the warehouse get the table's letter. */
static void append_columns(sqlite3_str *sql, char letter, const char *between, bool in_warehouse)
{
    static const struct {
        const char *column, *expression;
    } all[] = {
#define X(column, expression, other) {#column, expression},
        OCC_SHIP_LAUNCH_CONFIG_COLUMNS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bool is_device = all[i].expression[0] == 'd';
        if (is_device != (letter == 'd'))
            continue;
        sqlite3_str_appendall(sql, between);
        if (in_warehouse && all[i].expression[1] == 'o') /* a coalesce() of a text */
            sqlite3_str_appendf(sql, "nullif(%s, '')", all[i].column);
        else
            sqlite3_str_appendall(sql, in_warehouse || !is_device ? all[i].column : all[i].expression + 2);
    }
}

static char *device_key(sqlite3 *db)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql, "CAST(''");
    append_columns(sql, 'd', " || '/' || ", true);
    sqlite3_str_appendall(sql, " AS BLOB)");
    return sqlite3_str_finish(sql);
}

/* Adds the devices. The warehouse's minutes contain models, not devices, so their numbers are negative. */
static int put_devices(const struct occ_load *l, const char *key)
{
    sqlite3_str *sql = sqlite3_str_new(l->db);
    sqlite3_str_appendall(sql, "INSERT OR IGNORE INTO stored_device(device_id, key");
    append_columns(sql, 'd', ", ", false);
    sqlite3_str_appendf(sql, ") SELECT -row_number() OVER (), * FROM (SELECT DISTINCT %s", key);
    append_columns(sql, 'd', ", ", true);
    sqlite3_str_appendall(sql, " FROM configs ORDER BY 1)");
    return occ_load_run(l, sqlite3_str_finish(sql));
}

static int put_configs(const struct occ_load *l, const char *key)
{
    sqlite3_str *sql = sqlite3_str_new(l->db);
    sqlite3_str_appendall(sql,
                          "INSERT OR IGNORE INTO stored_launch_config(config_id, key, kernel_id, device_id");
    append_columns(sql, 'c', ", ", false);
    sqlite3_str_appendall(
        sql, ") SELECT " NUMBER(
                 "config_id") ", CAST(config_id AS BLOB), (SELECT k.kernel_id "
                              "FROM stored_kernel AS k WHERE k.hash = CAST(c.kernel_id AS INTEGER)), (SELECT "
                              "device_id FROM stored_device AS d WHERE d.key = c.device_key)");
    append_columns(sql, 'c', ", ", true);
    sqlite3_str_appendf(sql, " FROM (SELECT *, %s AS device_key FROM configs) AS c" NUMBERED_FIRST, key);
    return occ_load_run(l, sqlite3_str_finish(sql));
}

int occ_load_kernels(const struct occ_load *l, char *ids)
{
    int rc = fetch_kernels(l, ids);
    return rc == 0 ? put_kernels(l) : rc;
}

int occ_load_dimensions(const struct occ_load *l)
{
    char *key = device_key(l->db);
    int rc = key ? fetch_configs(l) : occ_no_memory(l->err);
    if (rc == 0)
        rc = check_configs(l);
    if (rc == 0)
        rc = split_folded(l);
    if (rc == 0 && !l->has_kernels)
        rc = occ_load_kernels(l, occ_load_ids(l, "SELECT DISTINCT kernel_id FROM configs",
                                              sqlite3_mprintf("SELECT toInt64(kernel) FROM %s.launch_config",
                                                              l->w->options.database)));
    if (rc == 0)
        rc = put_devices(l, key);
    if (rc == 0)
        rc = put_configs(l, key);
    sqlite3_free(key);
    return rc;
}
