/* See holes.h. Periods overlap in a damaged file only; there the first period counts. */
#include "holes.h"

#include "store/gaps.h"

int occ_holes_read(struct occ_store *s, int64_t run, struct occ_holes *ret_holes, struct occ_error *err)
{
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_HOLES, OCC_INTS(run));
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err))
        rc = occ_holes_add(ret_holes,
                           (struct occ_hole){{sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1)},
                                             sqlite3_column_int(stmt, 2) ? OCC_GAP_SAMPLED_NS : 0},
                           err);
    return rc;
}
