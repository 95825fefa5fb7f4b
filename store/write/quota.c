/*
 * The file's size limit: PRAGMA max_page_count makes SQLite refuse to grow, and then the oldest part of the
 * history is evicted: first launches (with their measured values) and samples of devices, then minutes, then
 * seconds of devices, last hours. Rows are deleted in the transaction that needs the room. Launches are
 * evicted in the order of their arrival, because programs report their own times.
 *
 * On a full disk below the quota, the file may grow only while the disk has room for the file and its log, so
 * the same eviction frees pages of the file. If the log itself finds no room, commits fail until the disk has
 * room; the ring holds launches until then, then drops and counts them. One thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "store/internal.h"
#include "support/cleanup.h"

#define QUOTA_MIN_BYTES (1u << 20)
#define LOG_MAX_BYTES   (8u << 20) /* checkpoints limit the log to 4 MiB and one transaction */
/* allowance beside the quota for a log that a reader holds: a tenth of the quota, and at least this much */
#define LOG_HELD_BYTES (32u << 20)
#define LOG_HELD_PART  10
#define CHUNKS_AT_ONCE 4u
#define CHUNKS_MAX     4096u
#define ROOM_PAGES     2048
#define ROWS_AT_ONCE   1000 /* rows of a rollup */

static uint64_t free_bytes(const struct occ_store *s)
{
    struct statvfs disk;
    return statvfs(s->path, &disk) == 0 ? (uint64_t)disk.f_bavail * disk.f_frsize : UINT64_MAX;
}

/* Sets the maximum size of the file: the quota, or less if the disk has less room. */
static void limit_growth(struct occ_store *s)
{
    char pragma[64];
    int64_t limit = (int64_t)(s->options.max_bytes / OCC_STORE_PAGE_BYTES), pages = 0;
    uint64_t room = free_bytes(s);
    (void)occ_store_number(s, occ_store_query(s, OCC_SQL_FILE_PAGES, NULL, 0), &pages, NULL);
    room = room > LOG_MAX_BYTES ? (room - LOG_MAX_BYTES) / OCC_STORE_PAGE_BYTES : 0;
    if (room < (uint64_t)INT64_MAX / 2 && limit > pages + (int64_t)room)
        limit = pages + (int64_t)room;
    limit = limit > pages ? limit : pages;
    (void)snprintf(pragma, sizeof pragma, "PRAGMA max_page_count=%lld", (long long)limit);
    (void)sqlite3_exec(s->db, pragma, NULL, NULL, NULL);
    s->page_limit = limit;
}

static uint64_t log_bytes(const struct occ_store *s)
{
    _cleanup_(occ_freep) char *path = NULL;
    struct stat status;
    if (asprintf(&path, "%s-wal", s->path) < 0)
        path = NULL;
    return path && stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static uint64_t held_bytes(const struct occ_store *s)
{
    uint64_t part = s->options.max_bytes / LOG_HELD_PART;
    return part > LOG_HELD_BYTES ? part : LOG_HELD_BYTES;
}

int occ_quota_check_log(struct occ_store *s, struct occ_error *err)
{
    int64_t pages = 0;
    if (s->options.max_bytes == 0 || s->bulk || log_bytes(s) <= LOG_HELD_BYTES)
        return 0;
    (void)occ_store_number(s, occ_store_query(s, OCC_SQL_FILE_PAGES, NULL, 0), &pages, NULL);
    uint64_t allowed = s->options.max_bytes + held_bytes(s), file = (uint64_t)pages * OCC_STORE_PAGE_BYTES;
    if (file + log_bytes(s) > allowed)
        (void)occ_quota_relieve(s);
    uint64_t log = log_bytes(s);
    if (log <= LOG_HELD_BYTES || file + log <= allowed)
        return 0;
    return occ_fail(err, OCC_E_FULL,
                    "%s: its write-ahead log has %llu MiB, and a program that reads the history keeps it "
                    "from being emptied",
                    s->path, (unsigned long long)(log >> 20));
}

bool occ_quota_relieve(struct occ_store *s)
{
    int64_t before = s->page_limit;
    /* Moves the log's pages into the file and truncates the log, if readers allow. Does not wait: a full file
     * is normal with a quota, and waiting for a slow reader would lose launches. */
    (void)sqlite3_busy_timeout(s->db, 0);
    (void)sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    (void)sqlite3_busy_timeout(s->db, (int)s->options.busy_timeout_ms);
    limit_growth(s);
    return s->page_limit > before;
}

bool occ_store_has_room(struct occ_store *s)
{
    int64_t pages = 0, unused = 0;
    (void)occ_store_number(s, occ_store_query(s, OCC_SQL_FILE_PAGES, NULL, 0), &pages, NULL);
    (void)occ_store_number(s, occ_store_query(s, OCC_SQL_FREE_PAGES, NULL, 0), &unused, NULL);
    return s->options.max_bytes == 0 || s->page_limit - pages + unused >= ROOM_PAGES;
}

int occ_quota_open(struct occ_store *s, struct occ_error *err)
{
    if (s->options.max_bytes == 0) {
        (void)sqlite3_exec(s->db, "PRAGMA max_page_count=4294967294", NULL, NULL, NULL);
        return 0;
    }
    if (s->options.max_bytes < QUOTA_MIN_BYTES)
        return occ_fail(err, OCC_E_INVALID, "%s: a quota below 1 MiB leaves no room for a history", s->path);
    limit_growth(s);
    return 0;
}

/* ---- chunks ---- */

struct oldest {
    int64_t id, run, last_ns, rolled_ns;
};

/* Lists chunks that start before `before_ns`, or the oldest chunks in the order of arrival. */
static int list_oldest(struct occ_store *s, int64_t before_ns, uint32_t max, struct oldest *list,
                       uint32_t *ret_n, struct occ_error *err)
{
    uint32_t n = 0;
    sqlite3_stmt *stmt = before_ns == INT64_MAX
                             ? occ_store_query(s, OCC_SQL_OLDEST_CHUNKS, OCC_INTS(max))
                             : occ_store_query(s, OCC_SQL_CHUNKS_BEFORE, OCC_INTS(before_ns, max));
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err)) /* at most max rows */
        list[n++] = (struct oldest){.id = sqlite3_column_int64(stmt, 0),
                                    .run = sqlite3_column_int64(stmt, 1),
                                    .last_ns = occ_column_clamped(stmt, 2, 0, INT64_MAX - 1),
                                    .rolled_ns = sqlite3_column_int64(stmt, 3)};
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

/* True if a chunk may be deleted: its launches must be in the minutes, or get there in this transaction. A
 * run that another writer has, or had when it was killed, is rolled up here; a live writer sees the new
 * watermark at its next commit (occ_run_follow_watermark). */
static bool is_evictable(struct occ_store *s, const struct oldest *c, bool committing)
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
    if (r->forced_ns < minute_end)
        r->forced_ns = minute_end;
    r->dirty = true;
    return true;
}

static int evict_chunk(struct occ_store *s, const struct oldest *c, struct occ_error *err)
{
    int rc = occ_store_execute(s, OCC_SQL_DROP_CHUNK, OCC_INTS(c->id), err);
    if (rc == 0)
        rc = occ_store_execute(s, OCC_SQL_EVICT_RUN, OCC_INTS(c->last_ns + 1, c->run), err);
    if (rc == 0)
        rc =
            occ_store_execute(s, OCC_SQL_DROP_VALUES_WITHOUT_LAUNCHES, OCC_INTS(c->run, c->last_ns + 1), err);
    return rc;
}

static int evict_chunks(struct occ_store *s, int64_t before_ns, uint32_t max, bool committing,
                        uint32_t *evicted, struct occ_error *err)
{
    struct oldest *list = malloc(max * sizeof *list);
    uint32_t n = 0;
    if (!list)
        return occ_no_memory(err);
    int rc = list_oldest(s, before_ns, max, list, &n, err);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        if (!is_evictable(s, &list[i], committing))
            continue;
        rc = evict_chunk(s, &list[i], err);
        ++*evicted;
    }
    free(list);
    return rc;
}

int occ_quota_evict_before(struct occ_store *s, int64_t before_ns, uint32_t max, uint32_t *ret_evicted,
                           struct occ_error *err)
{
    *ret_evicted = 0;
    return evict_chunks(s, before_ns, max, false, ret_evicted, err);
}

/* Evicts samples of devices that are older than every full chunk of launches. */
static int evict_samples(struct occ_store *s, uint32_t max, uint32_t *evicted, struct occ_error *err)
{
    int rc = occ_store_execute(s, OCC_SQL_DROP_OLDEST_SAMPLES, OCC_INTS(max), err);
    *evicted += rc == 0 ? (uint32_t)sqlite3_changes(s->db) : 0;
    return rc;
}

/* ---- rollups ---- */

/* A table by units of time, and all data that ends with its rows: statements with the first unit to keep as
 * parameter. Minutes also hold values of launches that arrived after the launches were evicted. */
struct rollup {
    int64_t unit_ns;
    enum occ_sql ends;
    enum occ_sql drop[7];
    int n_drop;
};

static const struct rollup minutes = {
    MINUTE_NS,
    OCC_SQL_MINUTE_ENDS,
    {OCC_SQL_DROP_MINUTES, OCC_SQL_SET_MINUTES_FROM, OCC_SQL_DROP_MEASURED_MINUTES, OCC_SQL_DROP_LOST_VALUES,
     OCC_SQL_DROP_MINUTE_CHANGES, OCC_SQL_DROP_REMOVED_MINUTES, OCC_SQL_DROP_REMOVED_RUNS},
    7};
static const struct rollup hours = {
    HOUR_NS,
    OCC_SQL_HOUR_ENDS,
    {OCC_SQL_DROP_HOURS, OCC_SQL_DROP_MEASURED_HOURS, OCC_SQL_DROP_NCU_METRICS},
    3};
static const struct rollup seconds = {SECOND_NS, OCC_SQL_SECOND_ENDS, {OCC_SQL_DROP_SECONDS}, 1};

/* Tiers of eviction from rollups, in order. An eviction of `amount` (1, 2, 4, ...) deletes from a tier the
 * oldest unit and about (amount - 1) x ROWS_AT_ONCE rows more, up to a multiple of `multiple` units; the
 * newest `keep` units always stay. A tier is used if nothing older was evicted, and from the amount
 * `with_older` on also if too little was. */
static const struct tier {
    const struct rollup *rollup;
    int64_t multiple, keep;
    uint32_t with_older;
} tiers[] = {{&minutes, 60, 120, 4},
             {&seconds, 3600, 3600, 4},
             {&hours, 24, 0, UINT32_MAX},
             /* last resort: the quota cannot hold even the recent rollups, and recording must go on */
             {&minutes, 5, 3, 64},
             {&seconds, 60, 60, 64}};

static int evict_tier(struct occ_store *s, const struct tier *tier, int64_t rows, bool *ret_some,
                      struct occ_error *err)
{
    int64_t max = INT64_MAX / tier->rollup->unit_ns, oldest = 0, nth = 0, newest = 0;
    sqlite3_stmt *stmt = occ_store_query(s, tier->rollup->ends, OCC_INTS(rows));
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err)) {
        oldest = occ_column_clamped(stmt, 0, 0, max);
        nth = occ_column_clamped(stmt, 1, 0, max);
        newest = occ_column_clamped(stmt, 2, 0, max);
    }
    int64_t until = nth / tier->multiple + 1, end = (newest - tier->keep) / tier->multiple;
    until = (until < end ? until : end) * tier->multiple;
    if (rc != 0 || until <= oldest)
        return rc;
    for (int i = 0; i < tier->rollup->n_drop && rc == 0; i++)
        rc = occ_store_execute(s, tier->rollup->drop[i], &until, 1, err);
    *ret_some = true;
    return rc;
}

int occ_quota_evict(struct occ_store *s, uint32_t amount, bool committing, bool *ret_some,
                    struct occ_error *err)
{
    uint32_t max = amount < CHUNKS_MAX / CHUNKS_AT_ONCE ? amount * CHUNKS_AT_ONCE : CHUNKS_MAX, evicted = 0;
    int rc = evict_samples(s, max, &evicted, err);
    if (rc == 0 && (evicted == 0 || (amount >= tiers[0].with_older && evicted < max)))
        rc = evict_chunks(s, INT64_MAX, max, committing, &evicted, err);
    *ret_some |= evicted > 0;
    s->evicted_chunks += evicted;
    for (size_t i = 0; i < sizeof tiers / sizeof *tiers && rc == 0; i++)
        if (!*ret_some || (amount >= tiers[i].with_older && evicted < max))
            rc = evict_tier(s, &tiers[i], (int64_t)(amount - 1) * ROWS_AT_ONCE, ret_some, err);
    return rc;
}

void occ_store_get_stats(struct occ_store *s, struct occ_store_stats *ret_stats)
{
    int64_t pages = 0, oldest_ns = 0;
    (void)occ_store_number(s, occ_store_query(s, OCC_SQL_FILE_PAGES, NULL, 0), &pages, NULL);
    (void)occ_store_number(s, occ_store_query(s, OCC_SQL_OLDEST_LAUNCH, NULL, 0), &oldest_ns, NULL);
    *ret_stats = (struct occ_store_stats){.bytes = (uint64_t)pages * OCC_STORE_PAGE_BYTES,
                                          .quota_bytes = s->options.max_bytes,
                                          .evicted_chunks = s->evicted_chunks,
                                          .oldest_ns = oldest_ns};
}

static int write_foreign_runs(struct occ_store *s, struct occ_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < s->n_runs && rc == 0; i++)
        if (s->runs[i].foreign)
            rc = occ_run_write(s, &s->runs[i], err);
    return rc;
}

int occ_quota_make_room(struct occ_store *s, struct occ_error *err)
{
    bool some = false;
    if (s->options.max_bytes == 0 || !sqlite3_get_autocommit(s->db))
        return occ_fail(err, OCC_E_FULL, "%s: disk or quota full", s->path);
    int rc = occ_store_begin(s, err);
    if (rc != 0)
        return rc;
    rc = occ_quota_evict(s, 2, false, &some, err);
    if (rc == 0)
        rc = write_foreign_runs(s, err);
    occ_runs_forget_foreign(s);
    if (rc == 0 && !some)
        rc = occ_fail(err, OCC_E_FULL, "%s: disk or quota full, and nothing is old enough to be evicted",
                      s->path);
    return occ_store_conclude(s, rc, err);
}
