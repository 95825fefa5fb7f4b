/* Reads the energies of devices. One thread. */
#include "query.h"

int occ_store_each_energy(struct occ_store *s, int64_t since_ns, int64_t until_ns,
                          int (*take)(void *context, const struct occ_device_energy *energy), void *context,
                          struct occ_error *err)
{
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_ENERGIES, OCC_INTS(since_ns / SECOND_NS, until_ns));
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err)) {
        const struct occ_device_energy energy = {
            .device = sqlite3_column_int64(stmt, 0),
            .second = occ_column_clamped(stmt, 1, 0, OCC_STORE_START_MAX_NS / SECOND_NS),
            .length_ns = occ_column_clamped(stmt, 2, 0, INT64_MAX),
            .mj = occ_column_clamped(stmt, 3, 0, INT64_MAX)};
        rc = energy.length_ns > 0 ? take(context, &energy) : 0;
    }
    return rc;
}
