/* Counters of the sums, and --status: see sums.h. */
#include <sqlite3.h>
#include <string.h>
#include <time.h>

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
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(occ_sums_sqlite(s), "INSERT OR REPLACE INTO counter VALUES(?, ?)", -1, &stmt,
                           NULL) != SQLITE_OK)
        return occ_sums_fail(s, err);
    (void)sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
    if (text)
        (void)sqlite3_bind_text(stmt, 2, text, -1, SQLITE_STATIC);
    else
        (void)sqlite3_bind_int64(stmt, 2, value);
    int rc = sqlite3_step(stmt) == SQLITE_DONE ? 0 : occ_sums_fail(s, err);
    (void)sqlite3_finalize(stmt);
    return rc;
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

static void print_counter(const char *label, int64_t value, bool is_time, FILE *out)
{
    char text[64] = "never";
    time_t time = (time_t)value;
    struct tm tm = {0};
    if (!is_time)
        (void)snprintf(text, sizeof text, "%lld", (long long)value);
    else if (value > 0 && localtime_r(&time, &tm))
        (void)strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    (void)fprintf(out, "  %-24s %s\n", label, text);
}

int occ_sums_print(struct occ_sums *s, FILE *out, struct occ_error *err)
{
    struct occ_sums_counters counters;
    sqlite3_stmt *stmt = NULL;
    enum { COUNT, TIME };
    int rc = occ_sums_load_counters(s, &counters, err);
    if (rc != 0)
        return rc;
    (void)fprintf(out, "OTLP:\n");
#define X(name, label, kind) print_counter(label, counters.name, kind == TIME, out);
    OCC_SUMS_COUNTERS(X)
#undef X
    (void)sqlite3_prepare_v2(occ_sums_sqlite(s),
                             "SELECT value FROM counter WHERE name = 'failure' AND value <> ''", -1, &stmt,
                             NULL);
    if (stmt && sqlite3_step(stmt) == SQLITE_ROW)
        (void)fprintf(out, "  %-24s %s\n", "it fails", (const char *)sqlite3_column_text(stmt, 0));
    (void)sqlite3_finalize(stmt);
    return 0;
}
