/* Applies the history's limits while it grows: deletes data beyond its age, and shrinks a file above its
 * quota. In steps, because the loop that reads the programs' rings has no time for more: each step deletes,
 * moves or frees a bounded number of rows, chunks and pages. One thread. */
#include "store/internal.h"

#define ROWS_AT_ONCE   2000
#define CHUNKS_AT_ONCE 16u
#define PAGES_AT_ONCE  128
#define GIVE_BACK      "PRAGMA incremental_vacuum(128)"
#define LOG_MAX_PAGES  4096 /* more unmoved pages, held by a reader, stop the shrinking */
#define STEPS_A_LOOK   16u  /* steps from one checkpoint of the log to the next, which waits for the disk */
#define IDLE_NS        (90 * SECOND_NS)

int occ_store_set_limits(struct occ_store *s, uint64_t max_bytes, const struct occ_store_ages *ages,
                         struct occ_error *err)
{
    s->options.max_bytes = max_bytes;
    s->options.ages = *ages;
    return occ_quota_open(s, err);
}

/* ---- ages ---- */

/* The first unit of time to keep, a multiple of `multiple`; 0: all are kept. */
static int64_t first_kept(const struct occ_store *s, int64_t age_ns, int64_t now_ns, int64_t multiple_ns)
{
    int64_t hours_ns = s->options.ages.hours_ns;
    if (age_ns == 0 || (hours_ns != 0 && age_ns > hours_ns))
        age_ns = hours_ns;
    return age_ns == 0 || now_ns <= age_ns ? 0 : (now_ns - age_ns) / multiple_ns * multiple_ns;
}

/* Deletes rows and adds their number to *deleted. */
static int expire(struct occ_store *s, enum occ_sql statement, int64_t first, int64_t *deleted,
                  struct occ_error *err)
{
    int rc = occ_store_execute(s, statement, OCC_INTS(first, ROWS_AT_ONCE), err);
    *deleted += rc == 0 ? sqlite3_changes(s->db) : 0;
    return rc;
}

/* Deletes keys of removed runs once their minutes are beyond the age of minutes here or in the warehouse. */
static int expire_removed(struct occ_store *s, int64_t minutes_ns, int64_t now_ns, struct occ_error *err)
{
    int64_t kept = minutes_ns / MINUTE_NS, sent = now_ns / MINUTE_NS - OCC_SENT_MINUTES;
    int64_t first = kept > sent ? kept : sent;
    if (first <= 0)
        return 0;
    int rc = occ_store_execute(s, OCC_SQL_DROP_REMOVED_MINUTES, OCC_INTS(first), err);
    return rc == 0 ? occ_store_execute(s, OCC_SQL_DROP_REMOVED_RUNS, OCC_INTS(first), err) : rc;
}

static int expire_rows(struct occ_store *s, int64_t now_ns, int64_t *deleted, struct occ_error *err)
{
    const struct occ_store_ages *ages = &s->options.ages;
    int64_t minutes_ns = first_kept(s, ages->minutes_ns, now_ns, HOUR_NS), from_minutes = 0;
    const struct {
        enum occ_sql statement;
        int64_t first;
        int64_t *deleted;
    } tables[] = {
        {OCC_SQL_EXPIRE_SAMPLES, first_kept(s, ages->raw_ns, now_ns, 1), deleted},
        {OCC_SQL_EXPIRE_SECONDS, first_kept(s, ages->seconds_ns, now_ns, SECOND_NS) / SECOND_NS, deleted},
        {OCC_SQL_EXPIRE_MINUTES, minutes_ns / MINUTE_NS, &from_minutes},
        {OCC_SQL_EXPIRE_MEASURED_MINUTES, minutes_ns / MINUTE_NS, deleted},
        {OCC_SQL_EXPIRE_HOURS, first_kept(s, 0, now_ns, HOUR_NS) / HOUR_NS, deleted},
        {OCC_SQL_EXPIRE_MEASURED_HOURS, first_kept(s, 0, now_ns, HOUR_NS) / HOUR_NS, deleted},
    };
    int rc = 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && rc == 0; i++)
        if (tables[i].first > 0)
            rc = expire(s, tables[i].statement, tables[i].first, tables[i].deleted, err);
    if (rc == 0 && from_minutes > 0)
        rc = occ_store_execute(s, OCC_SQL_SET_MINUTES_FROM, OCC_INTS(minutes_ns / MINUTE_NS), err);
    if (rc == 0 && minutes_ns > 0)
        rc = occ_store_execute(s, OCC_SQL_DROP_MINUTE_CHANGES, OCC_INTS(minutes_ns / MINUTE_NS), err);
    *deleted += from_minutes;
    return rc == 0 ? expire_removed(s, minutes_ns, now_ns, err) : rc;
}

static int expire_all(struct occ_store *s, int64_t now_ns, bool *ret_more, struct occ_error *err)
{
    int64_t deleted = 0, raw_ns = first_kept(s, s->options.ages.raw_ns, now_ns, 1);
    uint32_t chunks = 0;
    int rc = occ_store_begin(s, err);
    if (rc != 0)
        return rc;
    rc = expire_rows(s, now_ns, &deleted, err);
    if (rc == 0 && raw_ns > 0)
        rc = occ_quota_evict_before(s, raw_ns, CHUNKS_AT_ONCE, &chunks, err);
    rc = occ_store_conclude(s, rc, err);
    *ret_more = rc == 0 && (deleted >= ROWS_AT_ONCE || chunks == CHUNKS_AT_ONCE);
    return rc;
}

bool occ_store_is_spent(struct occ_store *s, int64_t now_ns)
{
    int64_t first_ns = first_kept(s, 0, now_ns, 1), is_spent = 0;
    return first_ns > 0 &&
           occ_store_number(s, occ_store_query(s, OCC_SQL_IS_SPENT, OCC_INTS(first_ns)), &is_spent, NULL) ==
               0 &&
           is_spent;
}

/* ---- size ---- */

static int count_pages(struct occ_store *s, enum occ_sql which, int64_t *ret_pages, struct occ_error *err)
{
    return occ_store_number(s, occ_store_query(s, which, NULL, 0), ret_pages, err);
}

/* Moves the log into the file. False: a reader prevents it, so every step would make the log grow. */
static bool has_short_log(struct occ_store *s)
{
    int pages = 0, moved = 0;
    if (s->shrink_steps++ % STEPS_A_LOOK != 0)
        return true;
    (void)sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &moved);
    return pages - moved <= LOG_MAX_PAGES;
}

/* Evicts if too few pages are free, then moves pages from the file's end into free pages and truncates the
 * file. */
static int shrink(struct occ_store *s, bool *ret_more, struct occ_error *err)
{
    int64_t quota = (int64_t)(s->options.max_bytes / OCC_STORE_PAGE_BYTES), before = 0, free = 0, after = 0;
    int rc = count_pages(s, OCC_SQL_FILE_PAGES, &before, err);
    if (rc != 0 || quota == 0 || before <= quota || !has_short_log(s))
        return rc;
    rc = count_pages(s, OCC_SQL_FREE_PAGES, &free, err);
    if (rc == 0 && free < PAGES_AT_ONCE)
        rc = occ_quota_make_room(s, err);
    if (rc == 0 && sqlite3_exec(s->db, GIVE_BACK, NULL, NULL, NULL) != SQLITE_OK)
        rc = occ_sql_fail(s->db, s->path, sqlite3_extended_errcode(s->db), err, "cannot shrink");
    if (rc == 0)
        rc = count_pages(s, OCC_SQL_FILE_PAGES, &after, err);
    if (rc == 0 && after <= quota)
        /* shrinks the file itself: until here the truncation is only in the log */
        (void)occ_quota_relieve(s);
    *ret_more |= rc == 0 && after > quota && after < before;
    return rc;
}

/* Minutes are usually written when a run's launches are past them. Writes the minutes of runs without further
 * launches. */
static int write_idle_minutes(struct occ_store *s, int64_t now_ns, struct occ_error *err)
{
    int64_t before_ns = (now_ns - IDLE_NS) / MINUTE_NS * MINUTE_NS;
    bool some = false;
    for (uint32_t i = 0; i < s->n_runs; i++)
        some |= occ_rollup_force(&s->runs[i], before_ns);
    return some ? occ_store_commit(s, err) : 0;
}

int occ_store_maintain(struct occ_store *s, int64_t now_ns, bool *ret_more, struct occ_error *err)
{
    *ret_more = false;
    int rc = write_idle_minutes(s, now_ns, err);
    if (rc == 0)
        rc = expire_all(s, now_ns, ret_more, err);
    return rc != 0 ? rc : shrink(s, ret_more, err);
}
