/*
 * Collects names: kernels, launch configurations, and runs with their ranges and ring positions, which stay
 * when launches are evicted. Together they may take a quarter of the quota, so that there is room for
 * launches whatever the programs' names; above it new kernels, configurations and ranges are refused. From an
 * eighth of that quarter on, unreferenced names are deleted, some ids at a time: ended runs of traced
 * programs without a launch, minute or hour, then configurations without a run, then kernels without a
 * configuration. Imported runs stay. The largest id of a configuration and of a kernel stays, because SQLite
 * would reuse it. The minute changes of a deleted run stay for their usual time: the shipper counts the
 * changes that it has not sent.
 *
 * Foreign keys are not checked meanwhile: SQLite would search tables without an index for references, and by
 * the conditions above there are none. One thread.
 */
#include "store/internal.h"

#define NAMES_SHARE   4   /* names may take 1 / NAMES_SHARE of the quota */
#define COLLECT_SHARE 8   /* names are collected above 1 / COLLECT_SHARE of their share */
#define IDS_AT_ONCE   512 /* ids checked in a step, for each kind of name */

static const struct kind {
    enum occ_sql last, unused, drop[8];
    int n_drop;
} kinds[] = {
    [OCC_NAME_RUN] = {OCC_SQL_LAST_RUN,
                      OCC_SQL_SPENT_RUNS,
                      {OCC_SQL_DROP_RUN_RING, OCC_SQL_DROP_RUN_CONFIGS, OCC_SQL_DROP_RUN_LOSSES,
                       OCC_SQL_DROP_RUN_OVERHEAD, OCC_SQL_DROP_RUN_PERIODS, OCC_SQL_DROP_RUN_CHANGE,
                       OCC_SQL_DROP_RUN_RANGES, OCC_SQL_DROP_RUN},
                      8},
    [OCC_NAME_CONFIG] = {OCC_SQL_LAST_CONFIG, OCC_SQL_UNUSED_CONFIGS, {OCC_SQL_DROP_CONFIG}, 1},
    [OCC_NAME_KERNEL] = {OCC_SQL_LAST_KERNEL, OCC_SQL_UNUSED_KERNELS, {OCC_SQL_DROP_KERNEL}, 1},
};

uint64_t occ_store_names_share(const struct occ_store *s)
{
    return s->options.max_bytes ? s->options.max_bytes / NAMES_SHARE : UINT64_MAX;
}

static uint64_t name_bytes(struct occ_store *s)
{
    int64_t bytes = 0;
    (void)occ_store_number(s, occ_store_query(s, OCC_SQL_NAME_BYTES, NULL, 0), &bytes, NULL);
    return bytes > 0 ? (uint64_t)bytes : 0;
}

int occ_names_check(struct occ_store *s, struct occ_error *err)
{
    if (s->options.max_bytes == 0 || name_bytes(s) < occ_store_names_share(s))
        return 0;
    return occ_fail(err, OCC_E_DENIED,
                    "%s: kernels, launch configurations and runs have their share of the quota", s->path);
}

/* Lists the ids after the cursor without references in the file, and moves the cursor. */
static int list_unused(struct occ_store *s, enum occ_name name, int64_t ids[IDS_AT_ONCE], size_t *ret_n,
                       struct occ_error *err)
{
    int64_t last = 0, *cursor = &s->collected[name];
    sqlite3_stmt *stmt = occ_store_query(s, kinds[name].unused, OCC_INTS(*cursor, *cursor + IDS_AT_ONCE));
    int rc = 0;
    *ret_n = 0;
    while (occ_store_next(s, stmt, &rc, err)) /* ids are unique, so at most IDS_AT_ONCE rows */
        ids[(*ret_n)++] = sqlite3_column_int64(stmt, 0);
    if (rc == 0)
        rc = occ_store_number(s, occ_store_query(s, kinds[name].last, NULL, 0), &last, err);
    *cursor = *cursor + IDS_AT_ONCE < last ? *cursor + IDS_AT_ONCE : 0;
    return rc;
}

static int collect(struct occ_store *s, enum occ_name name, const struct occ_name_keeper *keeper,
                   struct occ_error *err)
{
    int64_t ids[IDS_AT_ONCE];
    bool kept[IDS_AT_ONCE] = {false};
    size_t n = 0;
    int rc = list_unused(s, name, ids, &n, err);
    keeper->keep(keeper->context, name, ids, n, kept);
    for (size_t i = 0; i < n && rc == 0; i++)
        for (int k = 0; k < kinds[name].n_drop && rc == 0 && !kept[i]; k++)
            rc = occ_store_execute(s, kinds[name].drop[k], &ids[i], 1, err);
    return rc;
}

int occ_store_collect_names(struct occ_store *s, const struct occ_name_keeper *keeper, bool *ret_more,
                            struct occ_error *err)
{
    if (s->options.max_bytes == 0 || name_bytes(s) < occ_store_names_share(s) / COLLECT_SHARE)
        return 0;
    (void)sqlite3_exec(s->db, "PRAGMA foreign_keys=OFF", NULL, NULL, NULL);
    int rc = occ_store_begin(s, err);
    for (int name = 0; name < OCC_NAME_COUNT && rc == 0; name++)
        rc = collect(s, (enum occ_name)name, keeper, err);
    rc = occ_store_conclude(s, rc, err);
    (void)sqlite3_exec(s->db, "PRAGMA foreign_keys=ON", NULL, NULL, NULL);
    for (int name = 0; name < OCC_NAME_COUNT; name++)
        *ret_more |= rc == 0 && s->collected[name] > 0;
    return rc;
}
