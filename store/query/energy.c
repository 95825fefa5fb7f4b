/* Reads the energies of devices. One thread. */
#include "query.h"

void occ_store_begin_energies(struct occ_store *s, int64_t since_ns, int64_t until_ns)
{
    /* an earlier reading may have stopped before its end */
    (void)sqlite3_reset(occ_store_statement(s, OCC_SQL_ENERGIES).stmt);
    (void)occ_store_query(s, OCC_SQL_ENERGIES, OCC_INTS(since_ns / SECOND_NS, until_ns));
}

int occ_store_next_energy(struct occ_store *s, struct occ_device_energy *ret_energy, struct occ_error *err)
{
    sqlite3_stmt *stmt = occ_store_statement(s, OCC_SQL_ENERGIES).stmt;
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err)) {
        *ret_energy = (struct occ_device_energy){
            .device = sqlite3_column_int64(stmt, 0),
            .second = occ_column_clamped(stmt, 1, 0, OCC_STORE_START_MAX_NS / SECOND_NS),
            .length_ns = occ_column_clamped(stmt, 2, 0, INT64_MAX),
            .mj = occ_column_clamped(stmt, 3, 0, INT64_MAX)};
        if (ret_energy->length_ns > 0)
            return 1;
    }
    return rc;
}
