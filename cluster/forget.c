/* See forget.h. */
#include "forget.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/ask/remote.h"
#include "support/cleanup.h"
#include "support/clock.h"
#include "support/text.h"

#define TEXT_BYTES (2 * OCC_REMOTE_TEXT_MAX + 3) /* a quoted text; each byte may be escaped */
/* The last time of a run that is known, nanoseconds since 1970. */
#define RUN_LAST_NS "greatest(start_ns, ifNull(last_start_ns, 0))"
#define POLL_NS     200000000
#define POLL_MAX    18000 /* an hour */
#define LATE_S      86400 /* rows of a batch may follow its minutes this much later */

/* ---- deleting ---- */

/* Waits for the deletions in a table of an old server, which does not wait itself. */
static int wait_for_mutations(struct occ_warehouse *w, const char *table, struct occ_error *err)
{
    const struct timespec pause = {.tv_nsec = POLL_NS};
    _cleanup_(occ_freep) char *sql = NULL;
    uint64_t left = 1;
    int rc =
        occ_format_text(&sql, err,
                        "SELECT count() FROM system.mutations WHERE database = '%s' AND table = '%s' AND NOT "
                        "is_done",
                        w->options.database, table);
    for (int i = 0; rc == 0 && left > 0; i++) {
        if (i > POLL_MAX)
            return occ_fail(err, OCC_E_BUSY, "%s: %s: rows are still being deleted", w->options.http.url,
                            table);
        rc = occ_warehouse_ask_numbers(w, sql, &left, 1, err);
        if (rc == 0 && left > 0)
            (void)nanosleep(&pause, NULL);
    }
    return rc;
}

int occ_warehouse_delete(struct occ_warehouse *w, const char *table, const char *condition, uint64_t *rows,
                         struct occ_error *err)
{
    _cleanup_(occ_freep) char *count = NULL, *delete = NULL;
    uint64_t n = 0;
    int rc = occ_format_text(&count, err, "SELECT count() FROM %s.%s WHERE %s", w->options.database, table,
                             condition);
    if (rc == 0)
        rc = occ_format_text(&delete, err, "ALTER TABLE %s.%s DELETE WHERE %s", w->options.database, table,
                             condition);
    if (rc == 0)
        rc = occ_warehouse_ask_numbers(w, count, &n, 1, err);
    if (rc != 0 || n == 0)
        return rc;
    if (w->dialect == OCC_DIALECT_NEW)
        rc = occ_http_add(w->http, "mutations_sync", "2", err);
    if (rc == 0)
        rc = occ_warehouse_ask(w, delete, err);
    if (rc == 0 && w->dialect == OCC_DIALECT_OLD)
        rc = wait_for_mutations(w, table, err);
    *rows += n;
    return rc;
}

/* ---- users ---- */

/* Tables with users, and the condition on rows before a time: the texts around its seconds. */
static const struct {
    const char *table, *before, *after;
} places[] = {{"minute", "bucket < toDateTime(", ")"},
              {"rank_minute", "bucket < toDateTime(", ")"},
              {"launch", "bucket < toDateTime(", ")"},
              {"hour", "bucket < toDateTime(", ")"},
              {"run", RUN_LAST_NS " < toInt64(", ") * 1000000000"}};

#define WHOSE_BYTES (2 * TEXT_BYTES + 32)

/* Writes the condition on rows of a user. */
static void write_whose(const char *cluster, const char *user, char whose[WHOSE_BYTES])
{
    char quoted_cluster[TEXT_BYTES], quoted_user[TEXT_BYTES];
    occ_warehouse_quote(cluster, quoted_cluster, sizeof quoted_cluster);
    occ_warehouse_quote(user, quoted_user, sizeof quoted_user);
    (void)snprintf(whose, WHOSE_BYTES, "cluster = %s AND user = %s", quoted_cluster, quoted_user);
}

/* before_s: of all tables but `hour`; hours_before_s: of `hour`. Seconds since 1970. */
static int erase_before(struct occ_warehouse *w, const char *whose, uint64_t before_s,
                        uint64_t hours_before_s, uint64_t *rows, struct occ_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof places / sizeof *places; i++) {
        _cleanup_(occ_freep) char *condition = NULL;
        uint64_t until_s = strcmp(places[i].table, "hour") == 0 ? hours_before_s : before_s;
        rc = occ_format_text(&condition, err, "%s AND %s%llu%s", whose, places[i].before,
                             (unsigned long long)until_s, places[i].after);
        if (rc == 0)
            rc = occ_warehouse_delete(w, places[i].table, condition, rows, err);
    }
    return rc;
}

/* The hour of the last erased minute, by UTC: toStartOfHour() of a time zone such as +05:30 is another. */
static uint64_t last_hour_s(uint64_t before_s)
{
    return (before_s - 60) / 3600 * 3600;
}

/* Has the hour added up again that is erased in part. */
static int put_change(struct occ_warehouse *w, uint64_t before_s, struct occ_error *err)
{
    _cleanup_(occ_freep) char *change = NULL;
    int rc = occ_format_text(&change, err,
                             "INSERT INTO %s.hour_change (hour, changed) SELECT toDateTime(%llu), now()",
                             w->options.database, (unsigned long long)last_hour_s(before_s));
    return rc == 0 ? occ_warehouse_ask(w, change, err) : rc;
}

/* Keeps the user's name. */
static int put_erased(struct occ_warehouse *w, const char *cluster, const char *user, uint64_t before_s,
                      struct occ_error *err)
{
    char quoted_cluster[TEXT_BYTES], quoted_user[TEXT_BYTES];
    _cleanup_(occ_freep) char *erased = NULL;
    occ_warehouse_quote(cluster, quoted_cluster, sizeof quoted_cluster);
    occ_warehouse_quote(user, quoted_user, sizeof quoted_user);
    int rc = occ_format_text(
        &erased, err,
        "INSERT INTO %s.erased (cluster, user, before, version) SELECT %s, %s, toDateTime(%llu), "
        "%llu",
        w->options.database, quoted_cluster, quoted_user, (unsigned long long)before_s,
        (unsigned long long)before_s);
    return rc == 0 ? occ_warehouse_ask(w, erased, err) : rc;
}

static int check_length(const char *what, const char *text, struct occ_error *err)
{
    size_t n = strlen(text);
    return n == 0 || n > OCC_REMOTE_TEXT_MAX
               ? occ_fail(err, OCC_E_USAGE, "the %s has %zu bytes: 1 to %d are possible", what, n,
                          OCC_REMOTE_TEXT_MAX)
               : 0;
}

int occ_warehouse_erase(struct occ_warehouse *w, const char *cluster, const char *user, uint64_t *ret_rows,
                        struct occ_error *err)
{
    char whose[WHOSE_BYTES];
    uint64_t before_s = 0;
    *ret_rows = 0;
    int rc = check_length("user", user, err);
    if (rc == 0)
        rc = occ_warehouse_ask_numbers(w, "SELECT toUInt32(toStartOfMinute(now())) + 60", &before_s, 1, err);
    if (rc == 0) /* first: shippers leave the rows out from now on */
        rc = put_erased(w, cluster, user, before_s, err);
    write_whose(cluster, user, whose);
    if (rc == 0)
        rc = erase_before(w, whose, before_s, before_s, ret_rows, err);
    return rc == 0 ? put_change(w, before_s, err) : rc; /* last: it counts for MARGIN_S of maintain.c */
}

int occ_warehouse_has_user(struct occ_warehouse *w, const char *cluster, const char *user, bool *ret_has,
                           struct occ_error *err)
{
    char whose[WHOSE_BYTES];
    uint64_t n = 0;
    int rc = check_length("user", user, err);
    *ret_has = false;
    write_whose(cluster, user, whose);
    for (size_t i = 0; rc == 0 && !*ret_has && i < sizeof places / sizeof *places; i++) {
        _cleanup_(occ_freep) char *sql = NULL;
        rc = occ_format_text(&sql, err, "SELECT count() FROM %s.%s WHERE %s", w->options.database,
                             places[i].table, whose);
        rc = rc == 0 ? occ_warehouse_ask_numbers(w, sql, &n, 1, err) : rc;
        *ret_has = n > 0;
    }
    return rc;
}

/* ---- again ---- */

/* Fetches a statement's rows (first, cluster, user), and frees it. */
static int fetch_came(struct occ_warehouse *w, sqlite3 *db, char *sql, struct occ_error *err)
{
    int rc = sql ? occ_remote_fetch(w, db, "came", "first, cluster, user", sql, err) : occ_no_memory(err);
    sqlite3_free(sql);
    return rc;
}

/* Fetches the first row of each erased user in hours whose minutes changed since `since_s`. */
static int fetch_changed(struct occ_warehouse *w, sqlite3 *db, const char *table, uint64_t since_s,
                         struct occ_error *err)
{
    const char *database = w->options.database;
    unsigned long long since = since_s;
    return fetch_came(
        w, db,
        sqlite3_mprintf("SELECT toUInt32(min(bucket)) AS first, cluster, user FROM %s.%s WHERE bucket >= "
                        "(SELECT min(hour) FROM %s.hour_change WHERE changed >= toDateTime(%llu)) AND "
                        "toStartOfHour(bucket) IN (SELECT hour FROM %s.hour_change WHERE changed >= "
                        "toDateTime(%llu)) AND user IN (SELECT user FROM %s.erased) GROUP BY cluster, user",
                        database, table, database, since, database, since, database),
        err);
}

/* Fetches the first time of each erased user in a table; `first`: the expression, seconds since 1970. */
static int fetch_all(struct occ_warehouse *w, sqlite3 *db, const char *table, const char *first,
                     struct occ_error *err)
{
    const char *database = w->options.database;
    return fetch_came(w, db,
                      sqlite3_mprintf("SELECT toUInt32(%s) AS first, cluster, user FROM %s.%s WHERE user IN "
                                      "(SELECT user FROM %s.erased) GROUP BY cluster, user",
                                      first, database, table, database),
                      err);
}

/* Fetches the erased users, and the first row of each user since the last maintenance. Rows of ranks and
 * launches may come after the minutes of their batch were deleted. An hour counts if it is erased whole. */
static int fetch_again(struct occ_warehouse *w, sqlite3 *db, uint64_t done_s, struct occ_error *err)
{
    uint64_t late_s = done_s > LATE_S ? done_s - LATE_S : 0;
    char *erased = sqlite3_mprintf(
        "SELECT toUInt32(max(before)) AS until, cluster, user FROM %s.erased GROUP BY cluster, user",
        w->options.database);
    int rc =
        erased ? occ_remote_fetch(w, db, "erased", "until, cluster, user", erased, err) : occ_no_memory(err);
    sqlite3_free(erased);
    rc = rc == 0 ? fetch_changed(w, db, "minute", done_s, err) : rc;
    rc = rc == 0 ? fetch_changed(w, db, "rank_minute", late_s, err) : rc;
    rc = rc == 0 ? fetch_changed(w, db, "launch", late_s, err) : rc;
    rc = rc == 0 ? fetch_all(w, db, "run", "intDiv(min(" RUN_LAST_NS "), 1000000000)", err) : rc;
    return rc == 0 ? fetch_all(w, db, "hour", "min(bucket) + 3599", err) : rc;
}

/* The hour that is erased in part is deleted only if it can be added up again, hours that are erased whole in
 * any case. */
static int erase_one_again(struct occ_warehouse *w, const char *cluster, const char *user, uint64_t before_s,
                           uint64_t summed_s, struct occ_error *err)
{
    char whose[WHOSE_BYTES];
    uint64_t rows = 0;
    bool is_summed = last_hour_s(before_s) > summed_s;
    write_whose(cluster, user, whose);
    int rc = erase_before(w, whose, before_s, is_summed ? before_s : before_s / 3600 * 3600, &rows, err);
    return rc == 0 && is_summed ? put_change(w, before_s, err) : rc;
}

static int erase_all_again(struct occ_warehouse *w, sqlite3 *db, uint64_t summed_s, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(
                 db,
                 "SELECT DISTINCT until + 0, cluster, user FROM erased JOIN came USING(cluster, user) "
                 "WHERE first + 0 < until + 0",
                 -1, &stmt, NULL) == SQLITE_OK
                 ? 0
                 : occ_no_memory(err);
    while (rc == 0 && sqlite3_step(stmt) == SQLITE_ROW)
        rc = erase_one_again(w, (const char *)sqlite3_column_text(stmt, 1),
                             (const char *)sqlite3_column_text(stmt, 2),
                             (uint64_t)sqlite3_column_int64(stmt, 0), summed_s, err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

int occ_warehouse_erase_again(struct occ_warehouse *w, uint64_t done_s, uint64_t summed_s,
                              struct occ_error *err)
{
    sqlite3 *db = NULL;
    if (!w->has_erased)
        return 0;
    int rc =
        sqlite3_open(":memory:", &db) == SQLITE_OK ? fetch_again(w, db, done_s, err) : occ_no_memory(err);
    if (rc == 0)
        rc = erase_all_again(w, db, summed_s, err);
    (void)sqlite3_close(db);
    return rc;
}

/* ---- nodes ---- */

/* *ret_shared: a cluster has a node of that name. */
static int find_node(struct occ_warehouse *w, const char *quoted_node, bool *ret_shared,
                     struct occ_error *err)
{
    _cleanup_(occ_freep) char *sql = NULL;
    uint64_t n = 0;
    int rc = occ_format_text(&sql, err, "SELECT count() FROM %s.watermark WHERE node = %s",
                             w->options.database, quoted_node);
    if (rc == 0)
        rc = occ_warehouse_ask_numbers(w, sql, &n, 1, err);
    *ret_shared = n > 0;
    return rc;
}

int occ_warehouse_retire(struct occ_warehouse *w, const char *cluster, const char *node, bool *ret_shared,
                         struct occ_error *err)
{
    char quoted_cluster[TEXT_BYTES], quoted_node[TEXT_BYTES];
    _cleanup_(occ_freep) char *condition = NULL;
    uint64_t rows = 0, allocations = 0;
    *ret_shared = false;
    int rc = check_length("node", node, err);
    if (rc != 0)
        return rc;
    occ_warehouse_quote(cluster, quoted_cluster, sizeof quoted_cluster);
    occ_warehouse_quote(node, quoted_node, sizeof quoted_node);
    rc = occ_format_text(&condition, err, "cluster = %s AND node = %s", quoted_cluster, quoted_node);
    if (rc == 0)
        rc = occ_warehouse_delete(w, "watermark", condition, &rows, err);
    if (rc == 0)
        rc = occ_warehouse_delete(w, "allocation", condition, &allocations, err);
    if (rc == 0)
        rc = find_node(w, quoted_node, ret_shared, err);
    return rc == 0 && rows == 0
               ? occ_fail(err, OCC_E_USAGE, "cluster '%.100s' has no node '%.100s'", cluster, node)
               : rc;
}

/* ---- the shipper's part ---- */

void occ_erased_free(struct occ_erased *erased)
{
    (void)sqlite3_finalize(erased->find);
    (void)sqlite3_close(erased->db);
    *erased = (struct occ_erased){0};
}

static int fetch_erased(struct occ_warehouse *w, struct occ_erased *erased, struct occ_error *err)
{
    char quoted[TEXT_BYTES];
    occ_warehouse_quote(w->options.cluster, quoted, sizeof quoted);
    char *sql = sqlite3_mprintf(
        "SELECT toUInt32(max(before)) AS until, user FROM %s.erased WHERE cluster = %s GROUP BY "
        "user",
        w->options.database, quoted);
    int rc = sql && sqlite3_open(":memory:", &erased->db) == SQLITE_OK
                 ? occ_remote_fetch(w, erased->db, "erased", "until, user", sql, err)
                 : occ_no_memory(err);
    sqlite3_free(sql);
    if (rc == 0 && (sqlite3_exec(erased->db, "CREATE INDEX temp.by_user ON erased(user)", NULL, NULL, NULL) !=
                        SQLITE_OK ||
                    sqlite3_prepare_v2(erased->db, "SELECT until + 0 FROM erased WHERE user = ?", -1,
                                       &erased->find, NULL) != SQLITE_OK))
        rc = occ_no_memory(err);
    return rc;
}

int occ_erased_read(struct occ_warehouse *w, struct occ_erased *erased, struct occ_error *err)
{
    occ_erased_free(erased);
    int rc = w->has_erased ? fetch_erased(w, erased, err) : 0;
    if (rc != 0)
        occ_erased_free(erased);
    return rc == OCC_E_DENIED ? 0 : rc;
}

int64_t occ_erased_before_s(const struct occ_erased *erased, const char *user)
{
    int64_t before_s = 0;
    if (!erased || !erased->find)
        return 0;
    (void)sqlite3_bind_text(erased->find, 1, user, -1, SQLITE_STATIC);
    if (sqlite3_step(erased->find) == SQLITE_ROW)
        before_s = sqlite3_column_int64(erased->find, 0);
    (void)sqlite3_reset(erased->find);
    return before_s;
}
