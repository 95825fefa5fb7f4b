/* Existing tables and columns: see warehouse.h. */
#include <stdio.h>
#include <string.h>

#include "support/text.h"
#include "tables.h"
#include "warehouse.h"

#define SQL_BYTES 1024

#define ALL     (OCC_FOR_QUESTIONS | OCC_FOR_SHIPPING | OCC_FOR_MAINTENANCE)
#define WRITERS (OCC_FOR_SHIPPING | OCC_FOR_MAINTENANCE)

/* Tables and views, and the purposes that need them; the first is schema_version. */
static const struct {
    const char *name;
    unsigned int needed;
} tables[] = {{"schema_version", ALL},
              {"kernel", ALL},
              {"launch_config", ALL},
              {"run", ALL},
              {"minute", ALL},
              {"rank_minute", ALL},
              {"launch", ALL},
              {"allocation", ALL},
              {"watermark", ALL},
              {"batch", OCC_FOR_SHIPPING},
              {"batch_of_kernel", OCC_FOR_SHIPPING},
              {"batch_of_launch_config", OCC_FOR_SHIPPING},
              {"batch_of_run", OCC_FOR_SHIPPING},
              {"batch_of_minute", OCC_FOR_SHIPPING},
              {"batch_of_rank_minute", OCC_FOR_SHIPPING},
              {"batch_of_launch", OCC_FOR_SHIPPING},
              {"hour", OCC_FOR_MAINTENANCE},
              {"hour_change", WRITERS},
              {"hour_change_of_minute", WRITERS},
              {"hour_done", OCC_FOR_MAINTENANCE},
              {"reader", OCC_FOR_MAINTENANCE}};
#define TABLES (sizeof tables / sizeof *tables)

int occ_warehouse_find_tables(struct occ_warehouse *w, uint64_t *ret_there, uint64_t *ret_others,
                              struct occ_error *err)
{
    char sql[3 * SQL_BYTES], names[SQL_BYTES] = "";
    uint64_t masks[3] = {0};
    for (size_t i = 0; i < TABLES; i++)
        occ_text_append(names, sizeof names, ", ", "'%s'", tables[i].name);
    (void)snprintf(
        sql, sizeof sql,
        "SELECT groupBitOr(bit), groupBitOrIf(bit, NOT ours), countIf(engine = 'Distributed') FROM (SELECT "
        "toUInt64(bitShiftLeft(toUInt64(1), "
        "toUInt8(indexOf([%s], name) - 1))) AS bit, engine, engine = 'Distributed' OR multiIf(name = "
        "'batch', "
        "engine LIKE '%%MergeTree', position(name, '_of_') > 0, engine = 'MaterializedView', engine LIKE "
        "'%%ReplacingMergeTree') AS ours FROM system.tables WHERE database = '%s' AND indexOf([%s], name) > "
        "0)",
        names, w->options.database, names);
    int rc = occ_warehouse_ask_numbers(w, sql, masks, 3, err);
    for (size_t i = 0; i < TABLES && masks[2] > 0; i++) /* views stand for the tables of the shards */
        masks[0] |= (uint64_t)(strstr(tables[i].name, "_of_") != NULL) << i;
    *ret_there = masks[0];
    *ret_others = masks[1];
    return rc;
}

bool occ_warehouse_has_all(uint64_t there)
{
    return there == (UINT64_C(1) << TABLES) - 1;
}

void occ_warehouse_name_missing(uint64_t there, char *out, size_t size)
{
    out[0] = '\0';
    for (size_t i = 0; i < TABLES; i++)
        if (!(there >> i & 1))
            occ_text_append(out, size, ", ", "%s", tables[i].name);
}

int occ_warehouse_fail_others(const struct occ_warehouse *w, uint64_t others, struct occ_error *err)
{
    char names[SQL_BYTES] = "";
    for (size_t i = 0; i < TABLES; i++)
        if (others >> i & 1)
            occ_text_append(names, sizeof names, ", ", "%s", tables[i].name);
    return occ_fail(err, OCC_E_INVALID,
                    "%s: in database %s these are not occtrace's: %s; %s.database names another database",
                    w->options.http.url, w->options.database, names, w->options.section);
}

/* ---- columns ---- */

size_t occ_warehouse_names_length(const char *names, unsigned int n)
{
    const char *at = names;
    for (unsigned int i = 0; i < n && *at; i++)
        at += 1 + strcspn(at + 1, ",");
    return (size_t)(at - names);
}

#define QUOTED(column, ...) "'" #column "', "
/* ", " and the bits of columns: bit i + 1 for the i-th of them that the table has; '' is no column. 18.16
 * knows no column of a subquery in a lambda. */
#define BITS(table, columns)                                                                                 \
    ", groupBitOrIf(bitShiftLeft(toUInt64(1), toUInt8(indexOf([" columns(                                    \
        QUOTED) "''], name))), table = '" table "')"

/* The number of columns before the first one that the table lacks. */
static unsigned int leading(uint64_t bits)
{
    unsigned int n = 0;
    while (n < 63 && bits >> (n + 1) & 1)
        n++;
    return n;
}

int occ_warehouse_find_columns(struct occ_warehouse *w, struct occ_error *err)
{
    /* clang-format off */
    static const char select[] =
        "SELECT countIf(table = 'minute' AND name = 'evidence'), "
        "countIf(table = 'erased' AND name = 'before'), countIf(table = 'reader_scope' AND name = 'reader')"
        BITS("run", OCC_SHIP_RUN_ADDED_COLUMNS)
        BITS("launch", OCC_SHIP_JOB_ADDED_COLUMNS)
        BITS("minute", OCC_SHIP_JOB_ADDED_COLUMNS)
        BITS("hour", OCC_SHIP_JOB_ADDED_COLUMNS);
    /* clang-format on */
    char sql[2 * SQL_BYTES];
    uint64_t n[7] = {0};
    (void)snprintf(sql, sizeof sql,
                   "%s FROM system.columns WHERE database = '%s' AND table IN ('run', 'launch', 'minute', "
                   "'hour', 'erased', 'reader_scope')",
                   select, w->options.database);
    int rc = occ_warehouse_ask_numbers(w, sql, n, 7, err);
    w->has_evidence = n[0] > 0;
    w->has_erased = n[1] > 0;
    w->has_scopes = n[2] > 0;
    w->added = (struct occ_warehouse_added){
        .run = leading(n[3]), .launch = leading(n[4]), .minute = leading(n[5]), .hour = leading(n[6])};
    return rc;
}

/* ---- checking ---- */

/* Checks a name that the server does not list: the table is missing, or the account may not see it. */
static int ask_table(struct occ_warehouse *w, const char *name, bool *ret_missing, struct occ_error *err)
{
    char sql[SQL_BYTES];
    uint64_t is_there = 0;
    (void)snprintf(sql, sizeof sql, "EXISTS TABLE %s.%s", w->options.database, name);
    int rc = occ_warehouse_ask_numbers(w, sql, &is_there, 1, err);
    *ret_missing = rc == 0 && !is_there;
    return rc == OCC_E_DENIED ? 0 : rc;
}

static int check_tables(struct occ_warehouse *w, unsigned int needs, struct occ_error *err)
{
    char missing[SQL_BYTES] = "";
    uint64_t there = 0, other = 0, others = 0;
    int rc = occ_warehouse_find_tables(w, &there, &other, err);
    w->unseen[0] = '\0';
    for (size_t i = 0; i < TABLES && rc == 0; i++) {
        bool is_there = there >> i & 1, is_missing = false;
        if (!(tables[i].needed & needs))
            continue;
        others |= is_there ? other & UINT64_C(1) << i : 0;
        if (is_there)
            continue;
        rc = ask_table(w, tables[i].name, &is_missing, err);
        occ_text_append(is_missing ? missing : w->unseen, is_missing ? sizeof missing : sizeof w->unseen,
                        ", ", "%s", tables[i].name);
    }
    if (rc == 0 && others)
        return occ_warehouse_fail_others(w, others, err);
    if (rc == 0 && missing[0])
        return occ_fail(err, OCC_E_INVALID,
                        "%s: database %s lacks %s: occtrace-ship --init makes what is missing",
                        w->options.http.url, w->options.database, missing);
    return rc;
}

int occ_warehouse_schema_version(struct occ_warehouse *w, uint64_t *ret_version, struct occ_error *err)
{
    char sql[SQL_BYTES];
    (void)snprintf(sql, sizeof sql, "SELECT max(version) FROM %s.schema_version", w->options.database);
    return occ_warehouse_ask_numbers(w, sql, ret_version, 1, err);
}

int occ_warehouse_check(struct occ_warehouse *w, unsigned int needs, struct occ_error *err)
{
    uint64_t version = 0;
    int rc = occ_warehouse_schema_version(w, &version, err);
    if (rc != 0)
        return rc;
    if (version > OCC_WAREHOUSE_SCHEMA)
        return occ_fail(err, OCC_E_VERSION,
                        "%s: the tables of database %s are of a newer occtrace (version %llu, known is %d): "
                        "update this one",
                        w->options.http.url, w->options.database, (unsigned long long)version,
                        OCC_WAREHOUSE_SCHEMA);
    if (version < OCC_WAREHOUSE_SCHEMA)
        return occ_fail(
            err, OCC_E_VERSION,
            "%s: the tables of database %s are of an older occtrace (version %llu, needed is %d): update "
            "them with occtrace-ship --init",
            w->options.http.url, w->options.database, (unsigned long long)version, OCC_WAREHOUSE_SCHEMA);
    int found = check_tables(w, needs, err);
    return found == 0 ? occ_warehouse_find_columns(w, err) : found;
}
