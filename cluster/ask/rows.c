/*
 * Selects rows of a table of minutes for sums, each in its last version: see load.h. FINAL would do the same
 * for all rows, in about ten times the time of the sums. Within a part of the table no two rows have the same
 * key (a body has each row once, and ClickHouse's inserts and merges keep one), so only minutes in several
 * parts need FINAL.
 */
#include "load.h"

/* maximum list of parts or minutes in a statement; beyond it, FINAL for all rows */
#define LIST_BYTES_MAX 65536

/* Fetches the number of rows by minute and part, and makes lists of minutes and parts. Names of parts come
 * from the answer: only letters and digits are accepted. */
int occ_load_parts(const struct occ_load *l)
{
    return occ_load_fetch(
        l, "parts", "at, part, n", /* the part's number takes a third of the time of its name */
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

/* Selects minutes of one part without FINAL, and the others with FINAL. Newer parts are excluded; merged
 * parts are missing from the count. */
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

/* Selects the last versions of the rows. ret_counted: number of rows with a count. NULL: no memory. */
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

/* Fetches the sums over `rows`; frees `rows`. */
static int fetch_sums(const struct occ_load *l, const struct occ_load_sums *sums, char *rows)
{
    if (!rows)
        return occ_no_memory(l->err);
    /* partitions are days, and the day is part of the key */
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
