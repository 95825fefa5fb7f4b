/*
 * Which rows of a table of minutes sums are over, each in its last version: see load.h. FINAL does it for all
 * rows, and takes some ten times as long as the sums. Within a part of the table no two rows are alike (a
 * body has each row once, ClickHouse's inserts and merges leave one), so that only minutes that are in
 * several parts need it.
 */
#include "load.h"

#define LIST_BYTES_MAX 65536 /* of parts or minutes in a statement; more: FINAL for all */

/* Rows by minute and part, and the lists of those. Names of parts are text of the answer: letters and digits.
 */
int occ_load_parts(const struct occ_load *l)
{
    return occ_load_fetch(
        l, "parts", "at, part, n", /* by the part's number, which takes a third of the time of its name */
        sqlite3_mprintf("SELECT toUInt32(bucket) AS at, any(_part) AS part, count() AS n FROM %s.%s WHERE %s "
                        "GROUP BY at, _part_index",
                        l->w->options.database, l->table, l->where));
}

static const char read_parts[] =
    "WITH shared AS (SELECT CAST(at AS INTEGER) AS at FROM parts GROUP BY at HAVING count(*) > 1) "
    "SELECT (SELECT group_concat(quote(part)) FROM (SELECT DISTINCT part FROM parts)), coalesce((SELECT "
    "group_concat(at) FROM shared), '0'), (SELECT total(n) FROM parts WHERE CAST(at AS INTEGER) NOT IN "
    "shared), "
    "(SELECT count(*) FROM parts WHERE part GLOB '*[^0-9A-Za-z_-]*')";

static char *select_rows(const struct occ_load *l, const char *columns, const char *counted, const char *rows)
{
    return sqlite3_mprintf("SELECT %s AS is_counted, %s FROM %s.%s %s AND %s", counted, columns,
                           l->w->options.database, l->table, rows, l->where);
}

/* Of minutes of one part as they are, and of the others with FINAL. Parts that came since are left out, and
 * those that are gone, being merged, are missing from the count. */
static char *split_rows(const struct occ_load *l, const char *columns, sqlite3_stmt *lists)
{
    const char *parts = (const char *)sqlite3_column_text(lists, 0),
               *shared = (const char *)sqlite3_column_text(lists, 1);
    char *plain = sqlite3_mprintf("WHERE _part IN (%s) AND toUInt32(bucket) NOT IN (%s)", parts, shared),
         *final = sqlite3_mprintf("FINAL PREWHERE toUInt32(bucket) IN (%s) WHERE 1", shared);
    char *first = plain ? select_rows(l, columns, "1", plain) : NULL,
         *second = final ? select_rows(l, columns, "0", final) : NULL;
    char *rows = first && second ? sqlite3_mprintf("%s UNION ALL %s", first, second) : NULL;
    sqlite3_free(plain);
    sqlite3_free(final);
    sqlite3_free(first);
    sqlite3_free(second);
    return rows;
}

static char *all_rows(const struct occ_load *l, const char *columns)
{
    return select_rows(l, columns, "0", "FINAL WHERE 1");
}

/* *ret_counted: how many of them count themselves. NULL: no memory. */
static char *last_rows(const struct occ_load *l, const char *columns, int64_t *ret_counted)
{
    sqlite3_stmt *lists = NULL;
    char *rows = NULL;
    *ret_counted = 0;
    if (sqlite3_prepare_v2(l->db, read_parts, -1, &lists, NULL) == SQLITE_OK &&
        sqlite3_step(lists) == SQLITE_ROW && sqlite3_column_int(lists, 3) == 0 &&
        sqlite3_column_bytes(lists, 0) > 0 && sqlite3_column_bytes(lists, 0) <= LIST_BYTES_MAX &&
        sqlite3_column_bytes(lists, 1) <= LIST_BYTES_MAX) {
        rows = split_rows(l, columns, lists);
        *ret_counted = sqlite3_column_int64(lists, 2);
    } else
        rows = all_rows(l, columns);
    (void)sqlite3_finalize(lists);
    return rows;
}

/* Frees `rows`. */
static int fetch_sums(const struct occ_load *l, const struct occ_load_sums *sums, char *rows)
{
    if (!rows)
        return occ_no_memory(l->err);
    /* days are partitions, and part of the key */
    bool is_new = l->w->dialect == OCC_DIALECT_NEW;
    int rc = occ_load_fetch(
        l, "sums", sums->names,
        sqlite3_mprintf("SELECT %s, sum(is_counted) AS counted FROM (%s) GROUP BY %s%s", sums->sums, rows,
                        sums->keys,
                        is_new ? " SETTINGS do_not_merge_across_partitions_select_final = 1" : ""));
    sqlite3_free(rows);
    return rc;
}

int occ_load_sums(const struct occ_load *l, const struct occ_load_sums *sums)
{
    int64_t counted = 0;
    int rc = fetch_sums(l, sums, last_rows(l, sums->columns, &counted));
    if (rc != 0 || occ_load_number(l, "SELECT CAST(total(counted) AS INTEGER) FROM sums") == counted)
        return rc;
    rc = occ_load_run(l, sqlite3_mprintf("DROP TABLE temp.sums"));
    return rc == 0 ? fetch_sums(l, sums, all_rows(l, sums->columns)) : rc;
}
