/* The end of a pass: which names have places, and the pass's part added to the series. See sums.h. */
#include <math.h>
#include <sqlite3.h>

#include "stacks.h"
#include "sums.h"

#define TEXT_OF(number)  #number
#define NUMBER(constant) TEXT_OF(constant)
#define HALF_LIFE        60.0  /* minutes */
#define PLACE_MARGIN     "1.5" /* GPU time of a name with a place counts so many times */
#define NAMES_MAX        "2000"
/* GPU time of a name in a pass, at most: a forged duration keeps a place for hours, not for days. */
#define PASS_NS "6e13"

/* ?1: the minute; ?2: the weight of earlier GPU time */
#define BUSY        "last_minute >= ?1 - " NUMBER(OCC_SUMS_IDLE_MINUTES)
#define NAMES(kind) "SELECT name FROM place WHERE kind = '" #kind "' "
#define PLACED(kind)                                                                                         \
#kind " IN ('" OCC_SUMS_NO_JOB "', '" OCC_SUMS_OTHER "') OR " #kind " IN (" NAMES(kind) "AND has_place)"
#define NAMED(kind) "iif(" PLACED(kind) ", " #kind ", '" OCC_SUMS_OTHER "') AS " #kind
#define RANK(kind, limit)                                                                                    \
    "INSERT INTO place SELECT '" #kind "', " #kind ", min(total(ns), " PASS_NS                               \
    "), 0, max(minute) FROM fresh WHERE " #kind " NOT IN ('" OCC_SUMS_NO_JOB "', '" OCC_SUMS_OTHER           \
    "') GROUP BY " #kind " ON CONFLICT DO UPDATE SET ns = ns + excluded.ns, "                                \
    "last_minute = max(last_minute, excluded.last_minute)",                                                  \
        "UPDATE place SET has_place = name IN (" NAMES(                                                      \
            kind) "AND " BUSY " ORDER BY ns * iif(has_place, " PLACE_MARGIN                                  \
                  ", 1) DESC, name LIMIT " NUMBER(limit) ") WHERE kind = '" #kind "'",                       \
        "DELETE FROM place WHERE kind = '" #kind                                                             \
        "' AND name NOT IN (" NAMES(kind) "ORDER BY has_place DESC, ns DESC LIMIT " NAMES_MAX ")"
#define HOMELESS "NOT (" PLACED(job) ") OR NOT (" PLACED(gpu) ")"
/* Histories that are gone. The shipper looks at each history when it starts and when the history changes. */
#define SILENT "SELECT identity FROM position WHERE stored < datetime('now', '-31 days')"
/* More histories than a node has. A clock that is set must not remove positions: a history without a position
 * would count again. */
#define POSITIONS_MAX   "100000"
#define SUM(column)     ", sum(" #column ") AS " #column
#define UNKNOWN(column) #column " = NULL, "
/* A stream keeps its start, also when late minutes come: receivers take another start for a new stream. */
#define SAME_START "start_minute = start_minute"

static const char *const steps[] = {
    "UPDATE place SET ns = ns * ?2",
    RANK(job, OCC_SUMS_JOBS),
    RANK(gpu, OCC_SUMS_GPUS),
    RANK(kernel, OCC_SUMS_KERNELS),
    /* series whose names have lost their places end; their later launches count as (other) */
    "DELETE FROM series WHERE NOT (" PLACED(job) ") OR NOT (" PLACED(gpu) ") OR NOT (" PLACED(kernel) ")",
    "DELETE FROM size WHERE NOT (" PLACED(job) ") OR NOT (" PLACED(gpu) ")",
    "DELETE FROM job WHERE NOT (" PLACED(job) ")",
    "DELETE FROM gpu WHERE NOT (" PLACED(gpu) ")",
    /* the pass's part, by the names of series */
    "CREATE TEMP TABLE mapped AS SELECT " NAMED(job) ", " NAMED(gpu) ", " NAMED(
        kernel) ", min(minute) AS minute" OCC_SUMS_TOTALS(SUM)
        OCC_SUMS_MEANS(SUM) " FROM fresh GROUP BY 1, 2, 3",
    "UPDATE mapped SET kernel = '" OCC_SUMS_OTHER "' WHERE rowid IN (SELECT m.rowid FROM mapped m LEFT JOIN "
    "series s USING(job, gpu, kernel) WHERE m.kernel <> '" OCC_SUMS_OTHER
    "' AND s.start_minute IS NULL ORDER BY "
    "m.ns DESC LIMIT -1 OFFSET max(0, " NUMBER(OCC_SUMS_SERIES) " - (SELECT count(*) FROM series)))",
    "INSERT INTO series SELECT job, gpu, kernel, min(minute)" OCC_SUMS_TOTALS(SUM) OCC_SUMS_MEANS(
        SUM) " FROM mapped GROUP BY job, gpu, kernel ON CONFLICT DO UPDATE SET " OCC_SUMS_TOTALS(OCC_SUMS_ADD)
        OCC_SUMS_MEANS(OCC_SUMS_ADD) SAME_START,
    "DROP TABLE mapped",
    /* the start of a histogram is the first one of its buckets: a new bucket does not change it */
    "INSERT INTO size SELECT job, gpu, kind, bucket, coalesce((SELECT min(s.start_minute) FROM size s WHERE "
    "s.job = m.job AND s.gpu = m.gpu AND s.kind = m.kind), minute), launches, total FROM (SELECT " NAMED(
        job) ", " NAMED(gpu) ", kind, bucket, min(minute) AS minute, sum(launches) AS launches, "
                             "sum(total) AS total FROM fresh_size GROUP BY 1, 2, 3, 4) m "
                             "WHERE true ON CONFLICT DO UPDATE SET launches = launches + excluded.launches, "
                             "total = total + excluded.total, " SAME_START,
    /* stacks of names without places, which may be older ones than this pass's */
    "CREATE TEMP TABLE moved AS SELECT " NAMED(job) ", " NAMED(gpu) ", path, kernel, " OCC_STACKS_SUMS
                                                                    " FROM stack WHERE " HOMELESS
                                                                    " GROUP BY 1, 2, 3, 4",
    "DELETE FROM stack WHERE " HOMELESS,
    "INSERT INTO stack SELECT * FROM moved WHERE true ON CONFLICT DO UPDATE SET " OCC_STACKS_MERGE,
    "DROP TABLE moved",
    "DELETE FROM counted WHERE identity IN (" SILENT ")",
    "DELETE FROM counted_range WHERE identity IN (" SILENT ")",
    "DELETE FROM run WHERE identity IN (" SILENT ")",
    "DELETE FROM position WHERE (SELECT count(*) FROM position) > " POSITIONS_MAX
    " AND identity NOT IN (SELECT identity FROM position ORDER BY stored DESC LIMIT " POSITIONS_MAX ")",
    "INSERT OR REPLACE INTO counter VALUES('folded_minute', ?1)",
};

static int run_step(struct occ_sums *s, const char *sql, int64_t minute, double weight, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    bool done = sqlite3_prepare_v2(occ_sums_sqlite(s), sql, -1, &stmt, NULL) == SQLITE_OK;
    int n = sqlite3_bind_parameter_count(stmt);
    if (n >= 1)
        (void)sqlite3_bind_int64(stmt, 1, minute);
    if (n >= 2)
        (void)sqlite3_bind_double(stmt, 2, weight);
    done = done && sqlite3_step(stmt) == SQLITE_DONE;
    int rc = done ? 0 : occ_sums_fail(s, err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* The minute of the last pass; the present one if there was none. */
static int load_last_minute(struct occ_sums *s, int64_t minute, int64_t *ret_minute, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    bool done =
        sqlite3_prepare_v2(occ_sums_sqlite(s), "SELECT max(value) FROM counter WHERE name = 'folded_minute'",
                           -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW;
    *ret_minute =
        done && sqlite3_column_type(stmt, 0) == SQLITE_INTEGER ? sqlite3_column_int64(stmt, 0) : minute;
    int rc = done ? 0 : occ_sums_fail(s, err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

int occ_sums_clear_means(struct occ_sums *s, struct occ_error *err)
{
    return occ_sums_run(s, "UPDATE series SET " OCC_SUMS_MEANS(UNKNOWN) SAME_START, err);
}

int occ_sums_end(struct occ_sums *s, int64_t minute, struct occ_error *err)
{
    int64_t last = minute;
    int rc = load_last_minute(s, minute, &last, err);
    double passed = last < minute ? (double)minute - (double)last : 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && rc == 0; i++)
        rc = run_step(s, steps[i], minute, exp2(-passed / HALF_LIFE), err);
    return rc == 0 ? occ_sums_run(s, "COMMIT", err) : rc;
}
