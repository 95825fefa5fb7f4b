/* What Nsight Compute's reports have of a launch configuration. One thread. */
#include "query.h"

int occ_ncu_read(struct occ_store *s, int64_t config, int64_t run, struct occ_arena *arena,
                 struct occ_ncu_values *ret_values, struct occ_error *err)
{
    const struct occ_ncu_value **end = &ret_values->first;
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_NCU_METRICS, OCC_INTS(config, run));
    int rc = 0;
    *ret_values = (struct occ_ncu_values){0};
    while (occ_store_next(s, stmt, &rc, err)) {
        struct occ_ncu_value *value = occ_arena_get(arena, 1, sizeof *value);
        uint64_t launches = (uint64_t)sqlite3_column_int64(stmt, 1);
        if (!value)
            continue; /* the arena has failed */
        *value = (struct occ_ncu_value){.metric =
                                            occ_arena_copy(arena, (const char *)sqlite3_column_text(stmt, 2)),
                                        .mean = sqlite3_column_double(stmt, 3)};
        ret_values->run = sqlite3_column_int64(stmt, 0);
        ret_values->launches = launches > ret_values->launches ? launches : ret_values->launches;
        *end = value;
        end = &value->next;
    }
    return rc;
}
