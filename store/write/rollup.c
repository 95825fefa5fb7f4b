/*
 * Minute and hour rollups of a run. Launches that are not in stored_minute yet are added up in memory; a
 * minute is written once, when the run is some seconds past it, and then carried to its hour, which is
 * written once when it is over. Later launches are merged into the rows of both. The watermarks in the run's
 * row tell what the tables hold, so that after a crash the rest is added up again from the chunks. One
 * thread.
 */
#include <stdlib.h>

#include "store/internal.h"

/* Launches of several devices arrive this far apart without being late. Late launches are counted too, at
 * more cost. */
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

struct level {
    int64_t unit_ns;
    enum occ_sql get, put;
};

static const struct level minutes = {MINUTE_NS, OCC_SQL_GET_MINUTE, OCC_SQL_PUT_MINUTE};
static const struct level hours = {HOUR_NS, OCC_SQL_GET_HOUR, OCC_SQL_PUT_HOUR};

static int put_row(struct occ_store *s, const struct level *level, int64_t run, const struct occ_totals *t,
                   struct occ_error *err)
{
    struct occ_binder b;
    int64_t start_ns = key_start(t->key, level->unit_ns);
    s->bytes.size = 0;
    occ_histogram_write(&t->histogram, &s->bytes);
    if (s->bytes.failed)
        return occ_store_no_memory(err);
    int rc = occ_store_statement(s, level->put, &b, err);
    if (rc != 0)
        return rc;
    const int64_t values[] = {(int64_t)(t->key >> 32),   run,
                              (int64_t)(uint32_t)t->key, (int64_t)t->launches,
                              (int64_t)t->total_ns,      (int64_t)t->min_ns,
                              (int64_t)t->max_ns,        t->first_ns - start_ns,
                              t->last_ns - start_ns};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        occ_bind_int(&b, values[i]);
    occ_bind_blob(&b, s->bytes.data, s->bytes.size);
    return occ_store_run(s, b.stmt, err);
}

/* Adds a row's columns from `at` on: launches, total, min, max, first, last, histogram. */
static bool add_row(sqlite3_stmt *stmt, int at, int64_t start_ns, struct occ_totals *t)
{
    struct occ_totals row = {
        .launches = (uint64_t)sqlite3_column_int64(stmt, at),
        .total_ns = (uint64_t)sqlite3_column_int64(stmt, at + 1),
        .min_ns = (uint64_t)sqlite3_column_int64(stmt, at + 2),
        .max_ns = (uint64_t)sqlite3_column_int64(stmt, at + 3),
        .first_ns = (int64_t)((uint64_t)start_ns + (uint64_t)sqlite3_column_int64(stmt, at + 4)),
        .last_ns = (int64_t)((uint64_t)start_ns + (uint64_t)sqlite3_column_int64(stmt, at + 5))};
    occ_totals_add_totals(t, &row);
    return occ_histogram_add_bytes(&t->histogram, sqlite3_column_blob(stmt, at + 6),
                                   (size_t)sqlite3_column_bytes(stmt, at + 6));
}

/* Late launches: adds `t` to the row that the table has. */
static int merge_row(struct occ_store *s, const struct level *level, int64_t run, const struct occ_totals *t,
                     struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    struct occ_totals sum = *t;
    sum.histogram = (struct occ_histogram){0};
    int rc = occ_histogram_merge(&sum.histogram, &t->histogram) ? 0 : occ_store_no_memory(err);
    if (rc == 0)
        rc = occ_store_query(s, level->get, OCC_INTS((int64_t)(t->key >> 32), run, (int64_t)(uint32_t)t->key),
                             &stmt, err);
    while (rc == 0 &&
           occ_store_next(s, stmt, &rc, err)) /* a damaged histogram is no reason to refuse launches */
        (void)add_row(stmt, 0, key_start(t->key, level->unit_ns), &sum);
    if (rc == 0)
        rc = put_row(s, level, run, &sum, err);
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
    struct occ_totals **entries = entries_before(&r->hours, HOUR_NS, r->planned.hour_ns, &n);
    int rc = entries ? 0 : occ_store_no_memory(err);
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = put_row(s, &hours, r->id, entries[i], err);
    free(entries);
    return rc;
}

static int write_minute(struct occ_store *s, struct occ_run_state *r, const struct occ_totals *t,
                        struct occ_error *err)
{
    int64_t minute_ns = key_start(t->key, MINUTE_NS);
    int rc = minute_ns < r->rolled.minute_ns ? merge_row(s, &minutes, r->id, t, err)
                                             : put_row(s, &minutes, r->id, t, err);
    if (rc != 0 || minute_ns >= r->planned.hour_ns)
        return rc;
    struct occ_totals hour = *t;
    hour.key = make_key(minute_ns, HOUR_NS, (uint32_t)t->key);
    return merge_row(s, &hours, r->id, &hour, err);
}

static int write_minutes(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    uint32_t n = 0;
    struct occ_totals **entries = entries_before(&r->minutes, MINUTE_NS, r->planned.minute_ns, &n);
    int rc = entries ? 0 : occ_store_no_memory(err);
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = write_minute(s, r, entries[i], err);
    free(entries);
    return rc;
}

/* How far minutes may be written: those of a run that ends to the end of its last hour. */
static int64_t closed_before(const struct occ_run_state *r)
{
    int64_t closed = r->rolled.minute_ns, passed = 0;
    if (r->last_ns > 0 && r->ending)
        passed = r->last_ns / HOUR_NS >= INT64_MAX / HOUR_NS - 1 ? INT64_MAX / HOUR_NS * HOUR_NS
                                                                 : (r->last_ns / HOUR_NS + 1) * HOUR_NS;
    else if (r->last_ns > GRACE_NS)
        passed = (r->last_ns - GRACE_NS) / MINUTE_NS * MINUTE_NS;
    if (r->force_minute_ns > closed)
        closed = r->force_minute_ns;
    return passed > closed ? passed : closed;
}

int occ_rollup_write(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    r->planned.minute_ns = closed_before(r);
    r->planned.hour_ns = r->rolled.minute_ns / HOUR_NS * HOUR_NS;
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
        if (minute_ns < r->planned.minute_ns && minute_ns >= r->planned.hour_ns && !carry_to_hour(r, t))
            r->stale = true; /* no memory: the file has it all, it is read again before the next write */
    }
    occ_totals_remove(&r->minutes, before_minute, (uint64_t)r->planned.minute_ns);
    occ_totals_remove(&r->hours, before_hour, (uint64_t)r->planned.hour_ns);
    r->rolled = r->planned;
}

/* ---- after a crash ---- */

/* Adds the launches of a chunk that are not in the rollups. Damaged ones cannot be added up; the rest can. */
static int load_chunk(struct occ_store *s, struct occ_run_state *r, const void *data, size_t bytes)
{
    struct occ_columns c;
    int rc = occ_columns_decode(s->decoder, data, bytes, OCC_COLUMN_BITS(config, start_ns), &c);
    if (rc != 0)
        return rc == OCC_E_NO_MEMORY ? rc : 0;
    for (uint32_t i = 0; i < c.n && rc == 0; i++) {
        struct occ_store_launch row = {.start_ns = (int64_t)c.start_ns[i],
                                       .duration_ns = c.duration_ns[i],
                                       .config = (uint32_t)c.config[i]};
        if (row.start_ns >= r->rolled.minute_ns)
            rc = occ_rollup_add(r, &row, 1);
    }
    return rc;
}

static int load_minutes(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_query(s, OCC_SQL_CHUNKS_FROM, OCC_INTS(r->id, r->rolled.minute_ns), &stmt, err);
    while (occ_store_next(s, stmt, &rc, err))
        if (load_chunk(s, r, sqlite3_column_blob(stmt, 0), (size_t)sqlite3_column_bytes(stmt, 0)) != 0)
            rc = occ_store_no_memory(err);
    return rc;
}

static int load_hours(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int64_t from_ns = r->first_ns / HOUR_NS * HOUR_NS;
    if (from_ns < r->rolled.hour_ns)
        from_ns = r->rolled.hour_ns;
    int rc =
        occ_store_query(s, OCC_SQL_RUN_MINUTES,
                        OCC_INTS(from_ns / MINUTE_NS, r->rolled.minute_ns / MINUTE_NS, r->id), &stmt, err);
    while (occ_store_next(s, stmt, &rc, err)) {
        int64_t minute_ns = (int64_t)((uint64_t)sqlite3_column_int64(stmt, 0) * (uint64_t)MINUTE_NS);
        struct occ_totals *t =
            occ_totals_at(&r->hours, make_key(minute_ns, HOUR_NS, (uint32_t)sqlite3_column_int64(stmt, 1)));
        if (t)
            (void)add_row(stmt, 2, minute_ns, t);
        else
            rc = occ_store_no_memory(err);
    }
    return rc;
}

/* Launches that are not committed yet come on top of the file's. */
static int add_pending(struct occ_run_state *r)
{
    int rc = 0;
    for (uint32_t i = 0; i < r->n_pending && rc == 0; i++)
        rc = occ_rollup_add(r, r->pending[i].rows, r->pending[i].n);
    return rc;
}

int occ_rollup_load(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    occ_totals_table_free(&r->minutes);
    occ_totals_table_free(&r->hours);
    int rc = load_minutes(s, r, err);
    if (rc == 0)
        rc = load_hours(s, r, err);
    if (rc == 0 && add_pending(r) != 0)
        rc = occ_store_no_memory(err);
    r->stale = rc != 0;
    return rc;
}
