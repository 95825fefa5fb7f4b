/* Maintenance that the warehouse does not do by itself: sums by hour, and on old servers deleting old rows.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "forget.h"
#include "insert.h"
#include "support/cleanup.h"
#include "support/text.h"

#define SQL_BYTES 2048
#define DAY_S     INT64_C(86400)
/* Changes within this time are added up again: an insert may still be running. */
#define MARGIN_S 600
/* Minutes of hours that are older than the minutes' time without this may be deleted, so their sums stay. */
#define LAST_DAYS 1

/* ---- hours ---- */

/* Rows of a job may differ: one of its programs may claim another account. */
#define ANY_OF(column, ...) ", max(" #column ")"

/* `at`: seconds since 1970. Rows without launches add nothing. */
static int sum_hour(struct occ_warehouse *w, uint64_t at, uint64_t version, struct occ_error *err)
{
    static const char added[] = OCC_SHIP_JOB_ADDED_COLUMNS(OCC_SHIP_NAME),
                      sums[] = OCC_SHIP_JOB_ADDED_COLUMNS(ANY_OF);
    unsigned int n = w->added.minute < w->added.hour ? w->added.minute : w->added.hour;
    char sql[SQL_BYTES];
    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO %s.hour (bucket, cluster, job, user, config, nodes, launches, total_ns, min_ns, max_ns, "
        "achieved_sum, achieved_ns, elapsed_sum, elapsed_ns, wasted_warp_s, capacity_warp_s, version%.*s) "
        "SELECT toDateTime(%llu), cluster, job, user, config, uniqExactIf(node, launches > 0), "
        "sum(launches), sum(total_ns), minIf(min_ns, launches > 0), max(max_ns), "
        "sum(toFloat64(achieved_sum)), "
        "sum(toFloat64(achieved_ns)), sum(toFloat64(elapsed_sum)), sum(toFloat64(elapsed_ns)), "
        "sum(toFloat64(wasted_warp_s)), sum(toFloat64(capacity_warp_s)), %llu%.*s FROM %s.minute "
        "FINAL WHERE bucket >= toDateTime(%llu) AND bucket < toDateTime(%llu) GROUP BY "
        "cluster, job, user, config",
        w->options.database, (int)occ_warehouse_names_length(added, n), added, (unsigned long long)at,
        (unsigned long long)version, (int)occ_warehouse_names_length(sums, n), sums, w->options.database,
        (unsigned long long)at, (unsigned long long)at + 3600);
    return occ_warehouse_ask(w, sql, err);
}

/* Reads the server's clock and the rows of hour_done: the time up to which changes are added up, and the time
 * before which minutes may be deleted. The latter only rises: a longer warehouse.minutes does not bring
 * minutes back. */
static int read_done(struct occ_warehouse *w, uint64_t *ret_now_s, uint64_t *ret_done_s, uint64_t *ret_kept_s,
                     struct occ_error *err)
{
    char sql[SQL_BYTES];
    (void)snprintf(sql, sizeof sql,
                   "SELECT toUInt32(now()), toUInt32(maxIf(done, name = 'hour')), toUInt32(maxIf(done, name "
                   "= 'kept')) FROM %s.hour_done",
                   w->options.database);
    uint64_t times[3] = {0};
    int rc = occ_warehouse_ask_numbers(w, sql, times, 3, err);
    *ret_now_s = times[0];
    *ret_done_s = times[1];
    *ret_kept_s = times[2];
    return rc;
}

/* Adds up hours that changed since the last call, whatever their age: outages delay minutes. Future hours are
 * excluded: a node with a wrong clock could send any number of them, each of which costs a statement. */
static int sum_hours(struct occ_warehouse *w, const struct occ_warehouse_keep *keep, uint64_t *ret_hours,
                     struct occ_error *err)
{
    char sql[SQL_BYTES];
    uint64_t now_s = 0, done_s = 0, kept_s = 0, n = 0, time_s = (keep->minutes - LAST_DAYS) * (uint64_t)DAY_S;
    int rc = read_done(w, &now_s, &done_s, &kept_s, err);
    uint64_t first_s = now_s > time_s ? now_s - time_s : 0;
    first_s = first_s > kept_s ? first_s : kept_s;
    if (rc == 0)
        rc = occ_warehouse_erase_again(w, done_s, first_s, err);
    (void)snprintf(sql, sizeof sql,
                   "SELECT toUInt32(hour) AS at FROM %s.hour_change WHERE changed >= toDateTime(%llu) AND "
                   "toUInt32(hour) > %llu AND toUInt32(hour) < %llu GROUP BY at ORDER BY at",
                   w->options.database, (unsigned long long)done_s, (unsigned long long)first_s,
                   (unsigned long long)(now_s + DAY_S));
    rc = rc == 0 ? occ_warehouse_ask(w, sql, err) : rc;
    _cleanup_(occ_freep) char *list = rc == 0 ? strdup(w->answer.text) : NULL;
    char *rest = list;
    for (char *hour; rc == 0 && (hour = strsep(&rest, "\n")) && *hour; n++)
        rc = sum_hour(w, strtoull(hour, NULL, 10), now_s, err);
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO %s.hour_done SELECT if(number = 0, 'hour', 'kept'), toDateTime(if(number = "
                   "0, %llu, %llu)) FROM system.numbers LIMIT 2",
                   w->options.database, (unsigned long long)(now_s - MARGIN_S), (unsigned long long)first_s);
    rc = rc == 0 ? occ_warehouse_ask(w, sql, err) : rc;
    *ret_hours = n;
    return rc;
}

/* ---- rows that are too old ---- */

#define BATCH      SIZE_MAX /* takes the place of an offset: BATCH_DAYS, which the shipper needs */
#define BATCH_DAYS 8

static const struct {
    const char *table;
    size_t days; /* offset in struct occ_warehouse_keep */
    bool by_month;
} partitions[] = {{"minute", offsetof(struct occ_warehouse_keep, minutes), false},
                  {"rank_minute", offsetof(struct occ_warehouse_keep, ranks), false},
                  {"launch", offsetof(struct occ_warehouse_keep, launches), false},
                  {"batch", BATCH, false},
                  {"run", offsetof(struct occ_warehouse_keep, hours), true},
                  {"allocation", offsetof(struct occ_warehouse_keep, hours), true},
                  {"hour", offsetof(struct occ_warehouse_keep, hours), true}};

static unsigned int days_of(const struct occ_warehouse_keep *keep, size_t i)
{
    unsigned int days = BATCH_DAYS;
    if (partitions[i].days != BATCH)
        memcpy(&days, (const char *)keep + partitions[i].days, sizeof days);
    return days;
}

static int drop_old(struct occ_warehouse *w, size_t i, unsigned int days, int64_t now_s,
                    struct occ_error *err)
{
    char sql[SQL_BYTES], first[32];
    time_t first_s = (time_t)(now_s - days * DAY_S);
    const char *quote = partitions[i].by_month ? "" : "'";
    struct tm day = {0};
    (void)gmtime_r(&first_s, &day);
    if (partitions[i].by_month)
        (void)snprintf(first, sizeof first, "%04d%02d", day.tm_year + 1900, day.tm_mon + 1);
    else
        (void)snprintf(first, sizeof first, "%04d-%02d-%02d", day.tm_year + 1900, day.tm_mon + 1,
                       day.tm_mday);
    (void)snprintf(
        sql, sizeof sql,
        "SELECT DISTINCT partition FROM system.parts WHERE database = '%s' AND table = '%s' AND active AND "
        "partition < '%s' ORDER BY partition LIMIT 1000",
        w->options.database, partitions[i].table, first);
    int rc = occ_warehouse_ask(w, sql, err);
    _cleanup_(occ_freep) char *list = rc == 0 ? strdup(w->answer.text) : NULL;
    char *rest = list;
    for (char *name; rc == 0 && (name = strsep(&rest, "\n")) && *name;) {
        (void)snprintf(sql, sizeof sql, "ALTER TABLE %s.%s DROP PARTITION %s%.32s%s", w->options.database,
                       partitions[i].table, quote, name, quote);
        rc = occ_warehouse_ask(w, sql, err);
    }
    return rc;
}

/* Tables without partitions, and the condition on old rows: the texts around the time. */
static const struct {
    const char *table, *before, *after;
} rows[] = {{"kernel", "version < ", " * 1000"},
            {"launch_config", "version < ", " * 1000"},
            {"watermark", "version < ", " * 1000"},
            {"erased", "before < toDateTime(", ")"},
            {"hour_change", "hour < toDateTime(", ")"}};

/* A day's rows at once: each deletion writes parts anew. */
static int delete_old(struct occ_warehouse *w, size_t i, const struct occ_warehouse_keep *keep, int64_t now_s,
                      struct occ_error *err)
{
    _cleanup_(occ_freep) char *condition = NULL;
    uint64_t n = 0;
    if (strcmp(rows[i].table, "erased") == 0 && !w->has_erased)
        return 0;
    unsigned int days = strcmp(rows[i].table, "hour_change") == 0
                            ? keep->minutes + OCC_WAREHOUSE_CHANGES_MORE_DAYS
                            : keep->hours;
    int rc = occ_format_text(&condition, err, "%s%lld%s", rows[i].before,
                             (long long)((now_s / DAY_S - days) * DAY_S), rows[i].after);
    return rc == 0 ? occ_warehouse_delete(w, rows[i].table, condition, &n, err) : rc;
}

int occ_warehouse_maintain(struct occ_warehouse *w, const struct occ_warehouse_keep *keep, int64_t now_s,
                           uint64_t *ret_hours, struct occ_error *err)
{
    int rc = occ_warehouse_check(w, OCC_FOR_MAINTENANCE, err);
    if (rc == 0)
        rc = sum_hours(w, keep, ret_hours, err);
    for (size_t i = 0; i < sizeof partitions / sizeof *partitions && rc == 0 && w->dialect == OCC_DIALECT_OLD;
         i++)
        rc = drop_old(w, i, days_of(keep, i), now_s, err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && rc == 0 && w->dialect == OCC_DIALECT_OLD; i++)
        rc = delete_old(w, i, keep, now_s, err);
    return rc;
}
