/*
 * The file's size limit: PRAGMA max_page_count makes SQLite refuse to grow, and then the oldest part of the history
 * goes: launches (with what was read of them) and samples of devices first, minutes next, then seconds of devices, hours
 * last; a deletion happens in the transaction that needs the room.
 *
 * On a full disk below the quota the file may only grow as far as the disk has room for it and for its log, so the
 * same eviction frees pages of the file. Where the log itself finds no room, commits fail until the disk has some; the
 * ring holds launches meanwhile, then drops and counts them. One thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "store/internal.h"

#define PAGE_BYTES      4096
#define QUOTA_MIN_BYTES (1u << 20)
#define LOG_MAX_BYTES   (8u << 20) /* checkpoints keep it at 4 MiB and a transaction */
#define CHUNKS_AT_ONCE  4u
#define HOURS_AT_ONCE   24
#define SECONDS_AT_ONCE 3600
#define SHARE_FOR_MORE  4u
#define SHARE_FOR_LAST  64u

static int64_t pragma_number(struct occ_store *s, const char *pragma)
{
    sqlite3_stmt *stmt = NULL;
    int64_t value = 0;
    if (sqlite3_prepare_v2(s->db, pragma, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        value = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return value;
}

static uint64_t free_bytes(const struct occ_store *s)
{
    struct statvfs disk;
    return statvfs(s->path, &disk) == 0 ? (uint64_t)disk.f_bavail * disk.f_frsize : UINT64_MAX;
}

/* The quota, or as far as the disk has room. */
static void limit_growth(struct occ_store *s)
{
    char pragma[64];
    int64_t limit = (int64_t)(s->options.max_bytes / PAGE_BYTES),
            pages = pragma_number(s, "PRAGMA page_count");
    uint64_t room = free_bytes(s);
    room = room > LOG_MAX_BYTES ? (room - LOG_MAX_BYTES) / PAGE_BYTES : 0;
    if (room < (uint64_t)INT64_MAX / 2 && limit > pages + (int64_t)room)
        limit = pages + (int64_t)room;
    (void)snprintf(pragma, sizeof pragma, "PRAGMA max_page_count=%lld", (long long)(limit > 0 ? limit : 1));
    s->page_limit = pragma_number(s, pragma); /* never below what the file has */
}

bool occ_quota_relieve(struct occ_store *s)
{
    int64_t before = s->page_limit;
    /* Moves the log's pages into the file and truncates the log, as far as readers allow: a full file is the usual
     * state under a quota, and waiting for a slow reader would lose launches. */
    (void)sqlite3_busy_timeout(s->db, 0);
    (void)sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    (void)sqlite3_busy_timeout(s->db, (int)s->options.busy_timeout_ms);
    limit_growth(s);
    return s->page_limit > before;
}

int occ_quota_open(struct occ_store *s, struct occ_error *err)
{
    if (s->options.max_bytes == 0)
        return 0;
    if (s->options.max_bytes < QUOTA_MIN_BYTES)
        return occ_fail(err, OCC_E_INVALID, "%s: a quota below 1 MiB leaves no room for a history", s->path);
    limit_growth(s);
    return 0;
}

static int run_with(struct occ_store *s, enum occ_sql which, int64_t first, int64_t second, int n,
                    struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, which, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, first);
    if (n > 1)
        occ_bind_int(&b, second);
    return occ_store_run(s, stmt, err, "cannot make room");
}

/* ---- chunks ---- */

struct oldest {
    int64_t id, run, last_ns, rolled_ns;
};

static int list_oldest(struct occ_store *s, uint32_t most, struct oldest *list, uint32_t *ret_n,
                       struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_OLDEST_CHUNKS, &stmt, err), step = SQLITE_DONE;
    uint32_t n = 0;
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, most);
    while (n < most && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        list[n++] = (struct oldest){.id = sqlite3_column_int64(stmt, 0),
                                    .run = sqlite3_column_int64(stmt, 1),
                                    .last_ns = sqlite3_column_int64(stmt, 2),
                                    .rolled_ns = sqlite3_column_int64(stmt, 3)};
    if (n < most && step != SQLITE_DONE)
        rc = occ_sql_fail(s->db, s->path, step, err, "cannot read chunks");
    (void)sqlite3_reset(stmt);
    *ret_n = n;
    return rc;
}

static struct occ_run_state *find_run(struct occ_store *s, int64_t run)
{
    for (uint32_t i = 0; i < s->n_runs; i++)
        if (s->runs[i].id == run)
            return &s->runs[i];
    return NULL;
}

/* May this chunk go? Its launches must be in rollup_minute, or get there in this transaction. A run that another
 * writer has, or had when it was killed, is rolled up for it; if it lives, it notices (append.c). */
static bool may_go(struct occ_store *s, const struct oldest *c, bool committing)
{
    int64_t minute_end =
        c->last_ns / MINUTE_NS < INT64_MAX / MINUTE_NS ? (c->last_ns / MINUTE_NS + 1) * MINUTE_NS : INT64_MAX;
    if (minute_end <= c->rolled_ns)
        return true;
    if (minute_end == INT64_MAX)
        return false;
    struct occ_run_state *r = find_run(s, c->run);
    if (!r && occ_store_run_state(s, c->run, &r, NULL) == 0)
        r->foreign = true;
    if (!r || !(committing || r->foreign))
        return false;
    if (r->force_minute_ns < minute_end)
        r->force_minute_ns = minute_end;
    r->dirty = true;
    return true;
}

static int retire_chunks(struct occ_store *s, uint32_t most, bool committing, uint32_t *taken,
                         struct occ_error *err)
{
    struct oldest *list = malloc(most * sizeof *list);
    uint32_t n = 0;
    if (!list)
        return occ_store_no_memory(err);
    int rc = list_oldest(s, most, list, &n, err);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        if (!may_go(s, &list[i], committing))
            continue;
        rc = occ_chunk_drop(s, list[i].id, err);
        if (rc == 0)
            rc = run_with(s, OCC_SQL_EVICT_RUN, list[i].last_ns + 1, list[i].run, 2, err);
        if (rc == 0)
            rc = run_with(s, OCC_SQL_DROP_VALUES_WITHOUT_LAUNCHES, list[i].run, list[i].last_ns + 1, 2, err);
        ++*taken;
    }
    free(list);
    return rc;
}

/* Samples of devices that are older than every full chunk of launches: time goes as a whole. */
static int retire_samples(struct occ_store *s, uint32_t most, uint32_t *taken, struct occ_error *err)
{
    int rc = run_with(s, OCC_SQL_DROP_OLDEST_SAMPLES, most, 0, 1, err);
    *taken += rc == 0 ? (uint32_t)sqlite3_changes(s->db) : 0;
    return rc;
}

/* ---- rollups ---- */

static int table_ends(struct occ_store *s, enum occ_sql which, int64_t *ret_oldest, int64_t *ret_newest,
                      struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, which, &stmt, err);
    if (rc != 0)
        return rc;
    int step = sqlite3_step(stmt);
    if (step == SQLITE_ROW) {
        *ret_oldest = sqlite3_column_int64(stmt, 0);
        *ret_newest = sqlite3_column_int64(stmt, 1);
    } else {
        rc = occ_sql_fail(s->db, s->path, step, err, "cannot read rollups");
    }
    (void)sqlite3_reset(stmt);
    return rc;
}

/* Whole hours of minutes, or few minutes, that lie at least `keep` minutes back. */
static int retire_minutes(struct occ_store *s, int64_t at_once, int64_t keep, bool *ret_some,
                          struct occ_error *err)
{
    int64_t oldest = 0, newest = 0;
    int rc = table_ends(s, OCC_SQL_MINUTE_ENDS, &oldest, &newest, err);
    int64_t until = (oldest / at_once + 1) * at_once;
    if (rc != 0 || until + keep > newest)
        return rc;
    rc = run_with(s, OCC_SQL_DROP_MINUTES, until, 0, 1, err);
    if (rc == 0)
        rc = run_with(s, OCC_SQL_SET_MINUTES_FROM, until, 0, 1, err);
    if (rc == 0)
        rc = run_with(s, OCC_SQL_DROP_MEASURED, until, 0, 1, err);
    if (rc == 0) /* values that came when their launches were gone */
        rc = run_with(s, OCC_SQL_DROP_LOST_VALUES, until * MINUTE_NS, 0, 1, err);
    *ret_some = true;
    return rc;
}

/* `at_once` seconds that lie at least `keep` seconds back. */
static int retire_seconds(struct occ_store *s, int64_t at_once, int64_t keep, bool *ret_some,
                          struct occ_error *err)
{
    int64_t oldest = 0, newest = 0;
    int rc = table_ends(s, OCC_SQL_SECOND_ENDS, &oldest, &newest, err);
    if (rc != 0 || oldest + at_once + keep > newest)
        return rc;
    *ret_some = true;
    return run_with(s, OCC_SQL_DROP_SECONDS, oldest + at_once, 0, 1, err);
}

static int retire_hours(struct occ_store *s, bool *ret_some, struct occ_error *err)
{
    int64_t oldest = 0, newest = 0;
    int rc = table_ends(s, OCC_SQL_HOUR_ENDS, &oldest, &newest, err);
    if (rc != 0 || oldest + HOURS_AT_ONCE > newest)
        return rc;
    *ret_some = true;
    return run_with(s, OCC_SQL_DROP_HOURS, oldest + HOURS_AT_ONCE, 0, 1, err);
}

static int retire_last_hours(struct occ_store *s, bool *ret_some, struct occ_error *err)
{
    int rc = retire_minutes(s, 5, 3, ret_some, err);
    return rc != 0 ? rc : retire_seconds(s, 300, 60, ret_some, err);
}

static int retire(struct occ_store *s, uint32_t share, bool committing, bool *ret_some, struct occ_error *err)
{
    uint32_t most = share < 1024 ? share * CHUNKS_AT_ONCE : 4096, taken = 0;
    /* smaller shares were not enough, and what is oldest is less than was wanted: what comes next goes too */
    bool more = share >= SHARE_FOR_MORE;
    int rc = retire_samples(s, most, &taken, err);
    if (rc == 0 && (taken == 0 || (more && taken < most)))
        rc = retire_chunks(s, most, committing, &taken, err);
    *ret_some |= taken > 0;
    more = more && taken < most;
    /* hours are made of minutes, after a crash from the file: two hours of them stay if they can */
    bool hours = false; /* of minutes or of seconds went */
    if (rc == 0 && (!*ret_some || more))
        rc = retire_minutes(s, 60, 120, &hours, err);
    if (rc == 0 && (!(*ret_some || hours) || more))
        rc = retire_seconds(s, SECONDS_AT_ONCE, SECONDS_AT_ONCE, &hours, err);
    *ret_some |= hours;
    if (rc == 0 && !*ret_some)
        rc = retire_hours(s, ret_some, err);
    /* a quota too small for the last hours of so many shapes or devices, or an old hour that gives nothing back: going on
     * recording counts for more */
    if (rc == 0 && (!*ret_some || (more && (!hours || share >= SHARE_FOR_LAST))))
        rc = retire_last_hours(s, ret_some, err);
    return rc;
}

int occ_quota_retire(struct occ_store *s, uint32_t share, bool *ret_some, struct occ_error *err)
{
    return retire(s, share, true, ret_some, err);
}

int occ_quota_make_room(struct occ_store *s, struct occ_error *err)
{
    bool some = false;
    if (s->options.max_bytes == 0 || !sqlite3_get_autocommit(s->db))
        return occ_fail(err, OCC_E_FULL, "%s: disk or quota full", s->path);
    int rc = occ_store_do(s, OCC_SQL_BEGIN_IMMEDIATE, err);
    if (rc != 0)
        return rc;
    rc = retire(s, 2, false, &some, err);
    for (uint32_t i = 0; i < s->n_runs && rc == 0; i++)
        if (s->runs[i].foreign)
            rc = occ_run_write(s, &s->runs[i], err);
    occ_runs_forget_foreign(s);
    if (rc == 0 && !some)
        rc =
            occ_fail(err, OCC_E_FULL, "%s: disk or quota full, and nothing old enough to give back", s->path);
    if (rc == 0)
        rc = occ_store_do(s, OCC_SQL_COMMIT, err);
    if (rc != 0)
        occ_store_rollback(s);
    return rc;
}
