/* See outcomes.h. */
#include "store/outcomes.h"

#include <stdio.h>
#include <stdlib.h>

#include "store/internal.h"
#include "support/array.h"

static struct occ_advice_outcome outcome_of(sqlite3_stmt *stmt)
{
    const char *change = (const char *)sqlite3_column_text(stmt, 3);
    struct occ_advice_outcome o = {
        .config_before = sqlite3_column_int64(stmt, 0),
        .config_after = sqlite3_column_int64(stmt, 1),
        .compared_ns = sqlite3_column_int64(stmt, 2),
        .is_promised = sqlite3_column_int64(stmt, 4) != 0,
        .predicted = sqlite3_column_double(stmt, 5),
        .predicted_low = sqlite3_column_double(stmt, 6),
        .predicted_high = sqlite3_column_double(stmt, 7),
        .measured = sqlite3_column_double(stmt, 8),
        .measured_low = sqlite3_column_double(stmt, 9),
        .measured_high = sqlite3_column_double(stmt, 10),
    };
    (void)snprintf(o.change, sizeof o.change, "%s", change ? change : "");
    return o;
}

int occ_store_outcomes(struct occ_store *s, struct occ_advice_outcome **ret_outcomes, size_t *ret_n,
                       struct occ_error *err)
{
    struct occ_advice_outcome *list = NULL;
    size_t n = 0, allocated = 0;
    int64_t has_table = 0;
    const int64_t most = OCC_OUTCOMES_MAX;
    int rc = occ_store_number(s, occ_store_query(s, OCC_SQL_HAS_OUTCOMES, NULL, 0), &has_table, err);
    sqlite3_stmt *stmt = rc == 0 && has_table ? occ_store_query(s, OCC_SQL_OUTCOMES, &most, 1) : NULL;
    while (stmt && occ_store_next(s, stmt, &rc, err)) {
        if (!occ_grow((void **)&list, &allocated, n, OCC_OUTCOMES_MAX, sizeof *list)) {
            rc = occ_no_memory(err);
            (void)sqlite3_reset(stmt);
            break;
        }
        list[n++] = outcome_of(stmt);
    }
    if (rc != 0) {
        free(list);
        return rc;
    }
    *ret_outcomes = list;
    *ret_n = n;
    return 0;
}
