/* Counters of the sums, and --status: see sums.h. */
#include <sqlite3.h>
#include <string.h>

#include "cluster/seen/state_file.h"
#include "sums.h"

int occ_sums_load_counters(struct occ_sums *s, struct occ_sums_counters *ret_counters, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(occ_sums_sqlite(s), "SELECT name, value FROM counter", -1, &stmt, NULL);
    *ret_counters = (struct occ_sums_counters){0};
    while (code == SQLITE_OK && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(stmt, 0);
#define X(counter, label, kind)                                                                              \
    if (name && strcmp(name, #counter) == 0)                                                                 \
        ret_counters->counter = sqlite3_column_int64(stmt, 1);
        OCC_SUMS_COUNTERS(X)
#undef X
        code = SQLITE_OK;
    }
    int rc = code == SQLITE_DONE ? 0 : occ_sums_fail(s, err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

static int put_counter(struct occ_sums *s, const char *name, int64_t value, const char *text,
                       struct occ_error *err)
{
    return occ_state_file_put(occ_sums_sqlite(s), name, value, text) ? 0 : occ_sums_fail(s, err);
}

int occ_sums_store_counters(struct occ_sums *s, const struct occ_sums_counters *counters, const char *failure,
                            struct occ_error *err)
{
    int rc = occ_sums_run(s, "SAVEPOINT counters", err);
    if (rc != 0)
        return rc;
#define X(name, label, kind)                                                                                 \
    if (rc == 0)                                                                                             \
        rc = put_counter(s, #name, counters->name, NULL, err);
    OCC_SUMS_COUNTERS(X)
#undef X
    if (rc == 0 && failure)
        rc = put_counter(s, "failure", 0, failure, err);
    if (rc != 0)
        (void)occ_sums_run(s, "ROLLBACK TO counters", NULL);
    int released = occ_sums_run(s, "RELEASE counters", rc == 0 ? err : NULL);
    return rc != 0 ? rc : released;
}

int occ_sums_print(struct occ_sums *s, FILE *out, struct occ_error *err)
{
    struct occ_sums_counters counters;
    enum { COUNT, TIME, PROFILES };
    int rc = occ_sums_load_counters(s, &counters, err);
    if (rc != 0)
        return rc;
    bool has_profiles = counters.profile_requests > 0 || counters.profile_failures > 0;
    (void)fprintf(out, "OTLP:\n");
#define X(name, label, kind)                                                                                 \
    if (kind != PROFILES || has_profiles)                                                                    \
        occ_state_file_print(out, label, counters.name, kind == TIME);
    OCC_SUMS_COUNTERS(X)
#undef X
    occ_state_file_print_failure(out, occ_sums_sqlite(s));
    return 0;
}
