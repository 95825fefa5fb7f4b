/*
 * Minute and hour rollups of a run. Launches that are not in rollup_minute yet are added up in memory; a minute is
 * written once, when the run is some seconds past it, and then carried to its hour, which is written once when it is
 * over. What comes later than that is merged into the rows, at every level. The watermarks in the run's row say what
 * the tables hold, so that after a crash the rest is added up again from the chunks. One thread.
 */
#include <stdlib.h>

#include "store/internal.h"

/* Launches of several devices arrive this far apart without being late; late is right, only dearer. */
#define GRACE_NS (5 * INT64_C(1000000000))

static inline uint64_t make_key(int64_t start_ns, int64_t bucket_ns, uint32_t config)
{
    return (uint64_t)(start_ns / bucket_ns) << 32 | config;
}

static inline int64_t key_start(uint64_t key, int64_t bucket_ns)
{
    return (int64_t)(key >> 32) * bucket_ns;
}

int occ_rollup_add(struct occ_run_state *r, const struct occ_store_launch *rows, size_t n)
{
    int64_t minute_ns = 0;
    uint64_t minute = 0;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].start_ns < minute_ns || rows[i].start_ns >= minute_ns + MINUTE_NS) {
            minute = make_key(rows[i].start_ns, MINUTE_NS, 0);
            minute_ns = key_start(minute, MINUTE_NS);
        }
        struct occ_totals *t = occ_totals_at(&r->minutes, minute | rows[i].config);
        if (!t || !occ_histogram_add(&t->histogram, rows[i].duration_ns, 1))
            return OCC_E_NO_MEMORY;
        occ_totals_add(t, rows[i].start_ns, rows[i].duration_ns);
    }
    return 0;
}

/* ---- rows of the tables ---- */

static void bind_totals(struct occ_binder *b, const struct occ_totals *t, int64_t bucket_ns)
{
    occ_bind_int(b, (int64_t)t->launches);
    occ_bind_int(b, (int64_t)t->total_ns);
    occ_bind_int(b, (int64_t)t->min_ns);
    occ_bind_int(b, (int64_t)t->max_ns);
    occ_bind_int(b, t->first_ns - bucket_ns);
    occ_bind_int(b, t->last_ns - bucket_ns);
}

static int put_row(struct occ_store *s, enum occ_sql which, int64_t run, const struct occ_totals *t,
                   int64_t bucket_ns, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, which, &stmt, err);
    if (rc != 0)
        return rc;
    s->bytes.size = 0;
    occ_histogram_write(&t->histogram, &s->bytes);
    if (s->bytes.failed)
        return occ_store_no_memory(err);
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, (int64_t)(t->key >> 32));
    occ_bind_int(&b, run);
    occ_bind_int(&b, (int64_t)(t->key & UINT32_MAX));
    bind_totals(&b, t, key_start(t->key, bucket_ns));
    occ_bind_blob(&b, s->bytes.data, s->bytes.size);
    return occ_store_run(s, stmt, err, "cannot add a rollup");
}

/* Adds a row's columns from `at` on: launches, total, min, max, first, last, histogram. */
static bool add_row(sqlite3_stmt *stmt, int at, int64_t bucket_ns, struct occ_totals *t)
{
    struct occ_totals row = {
        .launches = (uint64_t)sqlite3_column_int64(stmt, at),
        .total_ns = (uint64_t)sqlite3_column_int64(stmt, at + 1),
        .min_ns = (uint64_t)sqlite3_column_int64(stmt, at + 2),
        .max_ns = (uint64_t)sqlite3_column_int64(stmt, at + 3),
        .first_ns = (int64_t)((uint64_t)bucket_ns + (uint64_t)sqlite3_column_int64(stmt, at + 4)),
        .last_ns = (int64_t)((uint64_t)bucket_ns + (uint64_t)sqlite3_column_int64(stmt, at + 5))};
    occ_totals_add_totals(t, &row);
    return occ_histogram_add_bytes(&t->histogram, sqlite3_column_blob(stmt, at + 6),
                                   (size_t)sqlite3_column_bytes(stmt, at + 6));
}

/* Late launches: what the table has of this key, and `t` on top. */
static int merge_row(struct occ_store *s, enum occ_sql get, enum occ_sql put, int64_t run,
                     const struct occ_totals *t, int64_t bucket_ns, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, get, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, (int64_t)(t->key >> 32));
    occ_bind_int(&b, run);
    occ_bind_int(&b, (int64_t)(t->key & UINT32_MAX));
    struct occ_totals sum = *t;
    sum.histogram = (struct occ_histogram){0};
    bool ok = occ_histogram_merge(&sum.histogram, &t->histogram);
    int step = sqlite3_step(stmt);
    if (ok && step == SQLITE_ROW)
        (void)add_row(stmt, 0, key_start(t->key, bucket_ns),
                      &sum); /* a damaged histogram is not worth a refusal */
    if (step != SQLITE_ROW && step != SQLITE_DONE)
        rc = occ_sql_fail(s->db, s->path, step, err, "cannot read a rollup");
    (void)sqlite3_reset(stmt);
    if (rc == 0)
        rc = ok ? put_row(s, put, run, &sum, bucket_ns, err) : occ_store_no_memory(err);
    occ_histogram_free(&sum.histogram);
    return rc;
}

/* ---- writing ---- */

static int compare_keys(const void *a, const void *b)
{
    const struct occ_totals *const *x = a, *const *y = b;
    return (*x)->key < (*y)->key ? -1 : (*x)->key > (*y)->key;
}

/* The table's entries before `limit_ns` in the order of their keys (the tables' order on disk). malloc'ed. */
static struct occ_totals **entries_before(const struct occ_totals_table *table, int64_t bucket_ns,
                                          int64_t limit_ns, uint32_t *ret_n)
{
    struct occ_totals **found = malloc((table->n + 1) * sizeof(*found));
    uint32_t n = 0;
    for (uint32_t i = 0; found && i < table->n; i++)
        if (key_start(table->entries[i].key, bucket_ns) < limit_ns)
            found[n++] = &table->entries[i];
    if (n > 0)
        qsort(found, n, sizeof(*found), compare_keys);
    *ret_n = n;
    return found;
}

static int write_hours(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    uint32_t n = 0;
    struct occ_totals **entries = entries_before(&r->hours, HOUR_NS, r->want_hour_ns, &n);
    int rc = entries ? 0 : occ_store_no_memory(err);
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = put_row(s, OCC_SQL_ADD_HOUR, r->id, entries[i], HOUR_NS, err);
    free(entries);
    return rc;
}

static int write_minute(struct occ_store *s, struct occ_run_state *r, const struct occ_totals *t,
                        struct occ_error *err)
{
    int64_t minute_ns = key_start(t->key, MINUTE_NS);
    int rc = minute_ns < r->rolled_minute_ns
                 ? merge_row(s, OCC_SQL_GET_MINUTE, OCC_SQL_PUT_MINUTE, r->id, t, MINUTE_NS, err)
                 : put_row(s, OCC_SQL_ADD_MINUTE, r->id, t, MINUTE_NS, err);
    if (rc != 0 || minute_ns >= r->want_hour_ns)
        return rc;
    struct occ_totals hour = *t;
    hour.key = make_key(minute_ns, HOUR_NS, (uint32_t)t->key);
    return merge_row(s, OCC_SQL_GET_HOUR, OCC_SQL_PUT_HOUR, r->id, &hour, HOUR_NS, err);
}

static int write_minutes(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    uint32_t n = 0;
    struct occ_totals **entries = entries_before(&r->minutes, MINUTE_NS, r->want_minute_ns, &n);
    int rc = entries ? 0 : occ_store_no_memory(err);
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = write_minute(s, r, entries[i], err);
    free(entries);
    return rc;
}

/* How far minutes may be written: a run that ends is written to the end of its last hour. */
static int64_t closed_before(const struct occ_run_state *r)
{
    int64_t until = r->rolled_minute_ns, passed = 0;
    if (r->last_ns > 0 && r->ending)
        passed = r->last_ns / HOUR_NS >= INT64_MAX / HOUR_NS - 1 ? INT64_MAX / HOUR_NS * HOUR_NS
                                                                 : (r->last_ns / HOUR_NS + 1) * HOUR_NS;
    else if (r->last_ns > GRACE_NS)
        passed = (r->last_ns - GRACE_NS) / MINUTE_NS * MINUTE_NS;
    if (r->force_minute_ns > until)
        until = r->force_minute_ns;
    return passed > until ? passed : until;
}

int occ_rollup_write(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    r->want_minute_ns = closed_before(r);
    r->want_hour_ns = r->rolled_minute_ns / HOUR_NS * HOUR_NS;
    int rc = write_hours(s, r, err);
    return rc != 0 ? rc : write_minutes(s, r, err);
}

static bool before_minute(uint64_t key, uint64_t limit_ns)
{
    return key_start(key, MINUTE_NS) < (int64_t)limit_ns;
}

static bool before_hour(uint64_t key, uint64_t limit_ns)
{
    return key_start(key, HOUR_NS) < (int64_t)limit_ns;
}

static bool carry_to_hour(struct occ_run_state *r, const struct occ_totals *t)
{
    struct occ_totals *hour =
        occ_totals_at(&r->hours, make_key(key_start(t->key, MINUTE_NS), HOUR_NS, (uint32_t)t->key));
    if (!hour || !occ_histogram_merge(&hour->histogram, &t->histogram))
        return false;
    occ_totals_add_totals(hour, t);
    return true;
}

void occ_rollup_written(struct occ_run_state *r)
{
    for (uint32_t i = 0; i < r->minutes.n; i++) {
        const struct occ_totals *t = &r->minutes.entries[i];
        int64_t minute_ns = key_start(t->key, MINUTE_NS);
        if (minute_ns < r->want_minute_ns && minute_ns >= r->want_hour_ns && !carry_to_hour(r, t))
            r->stale = true; /* no memory: the file has it all, it is read again before the next write */
    }
    occ_totals_remove(&r->minutes, before_minute, (uint64_t)r->want_minute_ns);
    occ_totals_remove(&r->hours, before_hour, (uint64_t)r->want_hour_ns);
    r->rolled_minute_ns = r->want_minute_ns;
    r->rolled_hour_ns = r->want_hour_ns;
}

/* ---- after a crash ---- */

/* Adds the launches that are not in the rollups. */
static int load_chunk(struct occ_store *s, struct occ_run_state *r, const void *data, size_t bytes)
{
    struct occ_columns v;
    int rc = occ_columns_decode(s->decoder, data, bytes, OCC_COLUMN_BITS(config, start_ns), &v);
    if (rc != 0) /* damaged launches cannot be added up; the rest can */
        return rc == OCC_E_NO_MEMORY ? rc : 0;
    for (uint32_t i = 0; i < v.n && rc == 0; i++) {
        struct occ_store_launch row = {.start_ns = (int64_t)v.start_ns[i],
                                       .duration_ns = v.duration_ns[i],
                                       .config = (uint32_t)v.config[i]};
        if (row.start_ns >= r->rolled_minute_ns)
            rc = occ_rollup_add(r, &row, 1);
    }
    return rc;
}

/* A level-0 chunk whose launches are also in a chunk that waits for the next commit. */
static bool is_obsolete(const struct occ_run_state *r, int64_t id)
{
    for (uint32_t i = 0; i < r->n_lanes; i++)
        for (uint32_t k = 0; k < r->lanes[i].obsolete; k++)
            if (r->lanes[i].small_ids[k] == id)
                return true;
    return false;
}

static int load_minutes(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_CHUNKS_FROM, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, r->id);
    occ_bind_int(&b, r->rolled_minute_ns);
    int step = SQLITE_DONE;
    while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        if (!is_obsolete(r, sqlite3_column_int64(stmt, 0)) &&
            load_chunk(s, r, sqlite3_column_blob(stmt, 1), (size_t)sqlite3_column_bytes(stmt, 1)) != 0)
            rc = occ_store_no_memory(err);
    if (rc == 0 && step != SQLITE_DONE)
        rc = occ_sql_fail(s->db, s->path, step, err, "cannot read chunks");
    (void)sqlite3_reset(stmt);
    return rc;
}

static int load_hours(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int64_t from_ns = r->rolled_hour_ns;
    if (r->first_ns / HOUR_NS * HOUR_NS > from_ns)
        from_ns = r->first_ns / HOUR_NS * HOUR_NS;
    int rc = occ_store_statement(s, OCC_SQL_RUN_MINUTES, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, from_ns / MINUTE_NS);
    occ_bind_int(&b, r->rolled_minute_ns / MINUTE_NS);
    occ_bind_int(&b, r->id);
    int step = SQLITE_DONE;
    while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        int64_t minute_ns = (int64_t)((uint64_t)sqlite3_column_int64(stmt, 0) * (uint64_t)MINUTE_NS);
        struct occ_totals *t =
            occ_totals_at(&r->hours, make_key(minute_ns, HOUR_NS, (uint32_t)sqlite3_column_int64(stmt, 1)));
        if (!t)
            rc = occ_store_no_memory(err);
        else
            (void)add_row(stmt, 2, minute_ns, t);
    }
    if (rc == 0 && step != SQLITE_DONE)
        rc = occ_sql_fail(s->db, s->path, step, err, "cannot read rollups");
    (void)sqlite3_reset(stmt);
    return rc;
}

/* Launches that are not committed yet are on top of what the file has. */
static int add_pending(struct occ_store *s, struct occ_run_state *r)
{
    int rc = 0;
    for (uint32_t i = 0; i < r->n_lanes && rc == 0; i++) {
        const struct occ_lane *lane = &r->lanes[i];
        if (lane->n > lane->committed)
            rc = occ_rollup_add(r, lane->rows + lane->committed, lane->n - lane->committed);
    }
    for (uint32_t i = 0; i < r->n_sealed && rc == 0; i++)
        rc = load_chunk(s, r, r->sealed[i].data, r->sealed[i].data_bytes);
    return rc;
}

int occ_rollup_load(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    occ_totals_table_free(&r->minutes);
    occ_totals_table_free(&r->hours);
    int rc = load_minutes(s, r, err);
    if (rc == 0)
        rc = load_hours(s, r, err);
    if (rc == 0 && add_pending(s, r) != 0)
        rc = occ_store_no_memory(err);
    r->stale = rc != 0;
    return rc;
}
