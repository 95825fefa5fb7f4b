/*
 * Minute and hour rollups of a run. New launches are added up by minute in memory; when the run is some
 * seconds past a minute, its totals are added to the rows of the minute and of its hour. Late launches are
 * added to both in the same way. The run's row stores the end of the time in the tables, so that after a
 * crash the rest is added up again from the chunks. One thread.
 */
#include <stdlib.h>

#include "store/internal.h"

/* Launches of several devices can arrive this far apart without being late. Late launches are counted too, at
 * a higher cost. */
#define GRACE_NS (5 * INT64_C(1000000000))

/* A bulk transaction writes all minutes, even the newest, once it holds more totals than this, about 350
 * bytes each. Many configurations can share a minute. */
#define BULK_TOTALS_MAX 16384u

/* SQL function add_histograms(from the file, from memory). A damaged histogram in the file is no reason to
 * refuse launches. */
static void add_histograms(sqlite3_context *context, int n, sqlite3_value **values)
{
    struct occ_histogram sum = {0};
    struct occ_writer bytes = {0};
    int rc = 0;
    for (int i = 0; i < n && rc != OCC_E_NO_MEMORY; i++)
        rc = occ_histogram_add_bytes(&sum, sqlite3_value_blob(values[i]),
                                     (size_t)sqlite3_value_bytes(values[i]));
    occ_histogram_write(&sum, &bytes);
    if (rc == 0 && !bytes.failed)
        sqlite3_result_blob64(context, bytes.data, bytes.size, SQLITE_TRANSIENT);
    else
        sqlite3_result_error_nomem(context);
    occ_histogram_free(&sum);
    free(bytes.data);
}

int occ_rollup_register(sqlite3 *db)
{
    return sqlite3_create_function_v2(db, "add_histograms", 2,
                                      SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, NULL,
                                      add_histograms, NULL, NULL, NULL);
}

static inline uint64_t first_key(int64_t ns)
{
    return (uint64_t)(ns / MINUTE_NS) << 32;
}

/* Notes a configuration that is new to a minute and may be new to the run. */
static bool note_config(struct occ_run_state *r, uint32_t config)
{
    uint32_t known = r->configs.used;
    if (occ_map_put(&r->configs, config, OCC_CONFIG_NEW) == OCC_MAP_NONE)
        return false;
    r->has_new_configs |= r->configs.used > known;
    return true;
}

int occ_rollup_add(struct occ_run_state *r, const struct occ_store_launch *rows, size_t n)
{
    int64_t minute_ns = 0;
    uint64_t minute = 0;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].start_ns < minute_ns || rows[i].start_ns >= minute_ns + MINUTE_NS) {
            minute = first_key(rows[i].start_ns);
            minute_ns = rows[i].start_ns / MINUTE_NS * MINUTE_NS;
        }
        uint32_t known = r->minutes.n;
        struct occ_totals *t = occ_totals_at(&r->minutes, minute | rows[i].config);
        if (!t || (r->minutes.n > known && !note_config(r, rows[i].config)) ||
            !occ_histogram_add(&t->histogram, rows[i].duration_ns, 1))
            return OCC_E_NO_MEMORY;
        occ_totals_add(t, rows[i].start_ns, rows[i].duration_ns);
    }
    return 0;
}

/* ---- writing ---- */

/* Adds the totals of a minute to the row of its unit of time. */
static int add_to_row(struct occ_store *s, enum occ_sql which, int64_t unit_ns, int64_t run,
                      const struct occ_totals *t, struct occ_error *err)
{
    struct occ_binder b = occ_store_statement(s, which);
    int64_t unit = (int64_t)(t->key >> 32) * MINUTE_NS / unit_ns, start_ns = unit * unit_ns;
    const int64_t values[] = {unit,
                              run,
                              (int64_t)(uint32_t)t->key,
                              (int64_t)t->launches,
                              (int64_t)t->total_ns,
                              (int64_t)t->min_ns,
                              (int64_t)t->max_ns,
                              t->first_ns - start_ns,
                              t->last_ns - start_ns};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        occ_bind_int(&b, values[i]);
    occ_bind_blob(&b, s->bytes.data, s->bytes.size);
    return occ_store_run(s, b.stmt, err);
}

static int write_minute(struct occ_store *s, int64_t run, const struct occ_totals *t, struct occ_error *err)
{
    occ_writer_restart(&s->bytes);
    occ_histogram_write(&t->histogram, &s->bytes);
    if (s->bytes.failed)
        return occ_no_memory(err);
    int rc = add_to_row(s, OCC_SQL_ADD_MINUTE, MINUTE_NS, run, t, err);
    return rc != 0 ? rc : add_to_row(s, OCC_SQL_ADD_HOUR, HOUR_NS, run, t, err);
}

static int compare_keys(const void *a, const void *b)
{
    const struct occ_totals *const *x = a, *const *y = b;
    return (*x)->key < (*y)->key ? -1 : (*x)->key > (*y)->key;
}

bool occ_rollup_force(struct occ_run_state *r, int64_t before_ns)
{
    bool some = false;
    for (uint32_t i = 0; i < r->minutes.n && !some && before_ns > 0; i++)
        some = r->minutes.entries[i].key < first_key(before_ns);
    if (some && before_ns > r->forced_ns)
        r->forced_ns = before_ns;
    r->dirty |= some;
    return some;
}

/* The time before which minutes may be written; for an ending run the end of its last hour. */
static int64_t closed_before(const struct occ_store *s, const struct occ_run_state *r)
{
    int64_t closed = r->forced_ns > r->rolled_ns ? r->forced_ns : r->rolled_ns, passed = 0;
    if (r->last_ns > 0 && r->ending)
        passed = r->last_ns / HOUR_NS >= INT64_MAX / HOUR_NS - 1 ? INT64_MAX / HOUR_NS * HOUR_NS
                                                                 : (r->last_ns / HOUR_NS + 1) * HOUR_NS;
    else if (s->bulk && r->minutes.n > BULK_TOTALS_MAX)
        passed = (r->last_ns / MINUTE_NS + 1) * MINUTE_NS;
    else if (r->last_ns > GRACE_NS)
        passed = (r->last_ns - GRACE_NS) / MINUTE_NS * MINUTE_NS;
    return passed > closed ? passed : closed;
}

int occ_rollup_write(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    const struct occ_totals **closed = malloc((r->minutes.n + 1) * sizeof(*closed));
    uint32_t n = 0;
    int rc = closed ? 0 : occ_no_memory(err);
    r->planned_ns = closed_before(s, r);
    for (uint32_t i = 0; closed && i < r->minutes.n; i++)
        if (r->minutes.entries[i].key < first_key(r->planned_ns))
            closed[n++] = &r->minutes.entries[i];
    if (n > 0) /* key order of the tables; the loop needs equal minutes together */
        qsort(closed, n, sizeof(*closed), compare_keys);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        int64_t minute = (int64_t)(closed[i]->key >> 32);
        rc = write_minute(s, r->id, closed[i], err);
        if (rc == 0 && (i + 1 == n || (int64_t)(closed[i + 1]->key >> 32) != minute))
            rc = occ_store_execute(s, OCC_SQL_ADD_MINUTE_CHANGE, OCC_INTS(minute, r->id), err);
    }
    free(closed);
    return rc;
}

void occ_rollup_written(struct occ_run_state *r)
{
    occ_totals_remove(&r->minutes, first_key(r->planned_ns));
    r->rolled_ns = r->planned_ns;
}

/* ---- loading: totals that the file's rollups lack ---- */

/* Adds the launches of a chunk that are not in the rollups. A damaged chunk is skipped; the other chunks
 * count. */
static int load_chunk(struct occ_store *s, struct occ_run_state *r, const void *data, size_t bytes)
{
    struct occ_columns c;
    int rc = occ_columns_decode(s->work->decoder, data, bytes, OCC_COLUMN_BITS(config, start_ns), &c);
    if (rc != 0)
        return rc == OCC_E_NO_MEMORY ? rc : 0;
    for (uint32_t i = 0; i < c.n && rc == 0; i++) {
        struct occ_store_launch row = {.start_ns = (int64_t)c.start_ns[i],
                                       .duration_ns = c.duration_ns[i],
                                       .config = (uint32_t)c.config[i]};
        if (row.start_ns >= r->rolled_ns)
            rc = occ_rollup_add(r, &row, 1);
    }
    return rc;
}

static int load_minutes(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_CHUNKS_FROM, OCC_INTS(r->id, r->rolled_ns));
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err))
        if (load_chunk(s, r, sqlite3_column_blob(stmt, 0), (size_t)sqlite3_column_bytes(stmt, 0)) != 0)
            rc = occ_no_memory(err);
    return rc;
}

/* Adds the launches that wait for a commit to the minutes, which have the file's launches already. */
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
    int rc = load_minutes(s, r, err);
    if (rc == 0 && add_pending(r) != 0)
        rc = occ_no_memory(err);
    r->stale = rc != 0;
    return rc;
}
