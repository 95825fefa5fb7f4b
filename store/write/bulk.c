/* Bulk transactions: what an import puts and commits becomes durable together. One thread. */
#include "store/internal.h"

int occ_store_begin_bulk(struct occ_store *s, struct occ_error *err)
{
    int rc = occ_store_execute(s, OCC_SQL_BEGIN_IMMEDIATE, NULL, 0, err);
    if (rc == 0)
        s->bulk = true;
    return rc;
}

int occ_bulk_check(struct occ_store *s, struct occ_error *err)
{
    /* SQLite itself rolls back after some errors: what follows would be a transaction of its own */
    s->bulk_failed |= s->bulk && sqlite3_get_autocommit(s->db) != 0;
    return s->bulk_failed
               ? occ_fail(err, OCC_E_INVALID,
                          "%s: an earlier write of this transaction failed, nothing of it is stored", s->path)
               : 0;
}

int occ_store_end_bulk(struct occ_store *s, struct occ_error *err)
{
    int rc = occ_bulk_check(s, err);
    if (rc == 0)
        rc = occ_store_execute(s, OCC_SQL_COMMIT, NULL, 0, err);
    s->bulk = s->bulk_failed = rc != 0;
    if (rc != 0)
        occ_store_rollback(s);
    return rc;
}
