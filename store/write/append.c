/*
 * Launches on their way in: the runs that this handle writes, what is pending of them, and the commit that makes it
 * durable. A transaction only writes; what is in memory changes after it succeeded, so that a failed one is simply
 * tried again. One thread a handle.
 */
#include <stdlib.h>
#include <string.h>

#include "store/internal.h"

/* Rows that are also in the file are kept for merging up to here (all lanes together); beyond, the largest lanes
 * read them back from the file. */
#define KEPT_MOST_BYTES (8u << 20)
/* What may wait for a commit that does not succeed; the launches after that are refused. */
#define PENDING_MOST_BYTES (48u << 20)

/* ---- state of a run ---- */

void occ_run_state_free(struct occ_run_state *r)
{
    for (uint32_t i = 0; i < r->n_lanes; i++) {
        free(r->lanes[i].rows);
        free(r->lanes[i].small_ids);
    }
    free(r->lanes);
    occ_sealed_free(r, 0);
    free(r->sealed);
    free(r->new_shapes);
    occ_totals_table_free(&r->minutes);
    occ_totals_table_free(&r->hours);
    occ_map_free(&r->shapes);
}

static int load_row(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_RUN_STATE, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, r->id);
    int step = sqlite3_step(stmt);
    if (step == SQLITE_ROW) {
        r->launches = (uint64_t)sqlite3_column_int64(stmt, 0);
        r->gpu_ns = (uint64_t)sqlite3_column_int64(stmt, 1);
        r->first_ns = sqlite3_column_int64(stmt, 2);
        r->last_ns = sqlite3_column_int64(stmt, 3);
        r->rolled_minute_ns = sqlite3_column_int64(stmt, 4);
        r->rolled_hour_ns = sqlite3_column_int64(stmt, 5);
        r->retired_ns = sqlite3_column_int64(stmt, 6);
    } else {
        rc = step == SQLITE_DONE
                 ? occ_fail(err, OCC_E_NOT_FOUND, "%s: no run %lld", s->path, (long long)r->id)
                 : occ_sql_fail(s->db, s->path, step, err, "cannot read a run");
    }
    (void)sqlite3_reset(stmt);
    return rc;
}

static int load_shapes(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_RUN_SHAPES, &stmt, err), step = SQLITE_DONE;
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, r->id);
    while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        if (occ_map_put(&r->shapes, (uint64_t)sqlite3_column_int64(stmt, 0), 0) == OCC_MAP_NONE)
            rc = occ_store_no_memory(err);
    if (rc == 0 && step != SQLITE_DONE)
        rc = occ_sql_fail(s->db, s->path, step, err, "cannot read a run");
    (void)sqlite3_reset(stmt);
    return rc;
}

/* The level-0 chunks that the last writer of this run left. */
static int load_lanes(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_SMALL_CHUNKS, &stmt, err), step = SQLITE_DONE;
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, r->id);
    while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct occ_lane *lane = occ_run_lane(r, sqlite3_column_int64(stmt, 1));
        if (!lane || !occ_lane_add_small(lane, sqlite3_column_int64(stmt, 0))) {
            rc = occ_store_no_memory(err);
            break;
        }
        int64_t n = sqlite3_column_int64(stmt, 2);
        lane->dropped += n > 0 && n <= OCC_CHUNK_MAX_ROWS ? (uint32_t)n : 0;
        lane->n_small_dropped = lane->n_small;
    }
    if (rc == 0 && step != SQLITE_DONE)
        rc = occ_sql_fail(s->db, s->path, step, err, "cannot read chunks");
    (void)sqlite3_reset(stmt);
    return rc;
}

static int load_run(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    int rc = load_row(s, r, err);
    if (rc != 0 || r->launches == 0)
        return rc;
    rc = load_shapes(s, r, err);
    if (rc == 0)
        rc = load_lanes(s, r, err);
    if (rc == 0)
        rc = occ_rollup_load(s, r, err);
    return rc;
}

int occ_store_run_state(struct occ_store *s, int64_t run, struct occ_run_state **ret, struct occ_error *err)
{
    for (uint32_t i = 0; i < s->n_runs; i++)
        if (s->runs[i].id == run) {
            *ret = &s->runs[i];
            return 0;
        }
    struct occ_run_state *runs = realloc(s->runs, (s->n_runs + 1) * sizeof *runs);
    if (!runs)
        return occ_store_no_memory(err);
    s->runs = runs;
    struct occ_run_state *r = &runs[s->n_runs];
    *r = (struct occ_run_state){.id = run};
    int rc = load_run(s, r, err);
    if (rc != 0) {
        occ_run_state_free(r);
        return rc;
    }
    s->n_runs++;
    *ret = r;
    return 0;
}

static void forget(struct occ_store *s, bool (*drop)(const struct occ_run_state *r))
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->n_runs; i++) {
        if (drop(&s->runs[i]))
            occ_run_state_free(&s->runs[i]);
        else
            s->runs[kept++] = s->runs[i];
    }
    s->n_runs = kept;
}

static bool is_foreign(const struct occ_run_state *r)
{
    return r->foreign;
}

void occ_runs_forget_foreign(struct occ_store *s)
{
    forget(s, is_foreign);
}

/* ---- append ---- */

uint64_t occ_store_memory_bytes(const struct occ_store *s)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < s->n_runs; i++) {
        const struct occ_run_state *r = &s->runs[i];
        for (uint32_t k = 0; k < r->n_lanes; k++)
            bytes += (uint64_t)r->lanes[k].capacity * sizeof(struct occ_store_launch);
        for (uint32_t k = 0; k < r->n_sealed; k++)
            bytes += r->sealed[k].data_bytes + r->sealed[k].totals_bytes;
    }
    return bytes;
}

static uint64_t pending_bytes(const struct occ_store *s)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < s->n_runs; i++) {
        const struct occ_run_state *r = &s->runs[i];
        for (uint32_t k = 0; k < r->n_lanes; k++)
            bytes += (uint64_t)(r->lanes[k].n - r->lanes[k].committed) * sizeof(struct occ_store_launch);
        for (uint32_t k = 0; k < r->n_sealed; k++)
            bytes += r->sealed[k].data_bytes + r->sealed[k].totals_bytes;
    }
    return bytes;
}

static int check(const struct occ_store *s, const struct occ_store_launch *launches, size_t n,
                 struct occ_error *err)
{
    if (s->options.mode != OCC_STORE_WRITE)
        return occ_fail(err, OCC_E_READ_ONLY, "%s: opened for reading", s->path);
    for (size_t i = 0; i < n; i++)
        if (launches[i].start_ns <= 0 || launches[i].start_ns == INT64_MAX ||
            launches[i].duration_ns > (uint64_t)(INT64_MAX - launches[i].start_ns) || launches[i].shape == 0)
            return occ_fail(err, OCC_E_INVALID, "a launch has impossible times or no shape");
    if (pending_bytes(s) > PENDING_MOST_BYTES)
        return occ_fail(err, OCC_E_FULL, "%s: too much is waiting for a commit", s->path);
    return 0;
}

static bool note_shape(struct occ_run_state *r, uint32_t shape)
{
    if (occ_map_get(&r->shapes, shape) != OCC_MAP_NONE)
        return true;
    if (r->n_new_shapes == r->new_shapes_capacity) {
        uint32_t capacity = r->new_shapes_capacity * 2 + 64;
        uint32_t *shapes = realloc(r->new_shapes, capacity * sizeof *shapes);
        if (!shapes)
            return false;
        r->new_shapes = shapes;
        r->new_shapes_capacity = capacity;
    }
    if (occ_map_put(&r->shapes, shape, 0) == OCC_MAP_NONE)
        return false;
    r->new_shapes[r->n_new_shapes++] = shape;
    return true;
}

static bool note_shapes(struct occ_run_state *r, const struct occ_store_launch *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!note_shape(r, rows[i].shape))
            return false;
    return true;
}

static void count(struct occ_run_state *r, const struct occ_store_launch *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        r->gpu_ns = occ_add_saturated(r->gpu_ns, rows[i].duration_ns);
        r->first_ns = rows[i].start_ns < r->first_ns ? rows[i].start_ns : r->first_ns;
        r->last_ns = rows[i].start_ns > r->last_ns ? rows[i].start_ns : r->last_ns;
    }
    r->launches += n;
    r->dirty = true;
    if (occ_rollup_add(r, rows, n) != 0)
        r->stale = true; /* added up again from chunks and rows when the commit begins */
}

/* Memory for all pieces of an append before the first one goes in: what fits the chunk under way, then full chunks. */
static bool reserve_all(struct occ_lane *lane, size_t n, uint32_t chunk_rows)
{
    uint32_t held = lane->dropped + lane->n;
    size_t first = held < chunk_rows && chunk_rows - held < n ? chunk_rows - held : n;
    size_t later = n - first < chunk_rows ? n - first : chunk_rows;
    if (later > lane->n + first)
        first = later - lane->n;
    return occ_lane_reserve(lane, (uint32_t)first, chunk_rows);
}

int occ_store_append(struct occ_store *s, int64_t run, int64_t device,
                     const struct occ_store_launch *launches, size_t n, struct occ_error *err)
{
    struct occ_run_state *r = NULL;
    int rc = check(s, launches, n, err);
    if (rc == 0 && n > 0)
        rc = occ_store_run_state(s, run, &r, err);
    if (rc != 0 || n == 0)
        return rc;
    struct occ_lane *lane = occ_run_lane(r, device);
    if (!lane || n > UINT32_MAX / 4 || !note_shapes(r, launches, n))
        return occ_store_no_memory(err);
    if (!reserve_all(lane, n, s->options.chunk_rows))
        return occ_store_no_memory(err);
    while (n > 0) {
        uint32_t held = lane->dropped + lane->n;
        size_t room = held < s->options.chunk_rows ? s->options.chunk_rows - held : n;
        size_t piece = n < room ? n : room;
        if (!occ_lane_reserve(lane, (uint32_t)piece, s->options.chunk_rows))
            return occ_store_no_memory(err);
        memcpy(lane->rows + lane->n, launches, piece * sizeof *launches);
        lane->n += (uint32_t)piece;
        count(r, launches, piece);
        launches += piece;
        n -= piece;
        if (lane->dropped + lane->n >= s->options.chunk_rows)
            (void)occ_lane_seal(s, r, lane,
                                NULL); /* failing, the rows wait: the next append or commit tries again */
    }
    return 0;
}

int occ_store_end_run(struct occ_store *s, int64_t run, struct occ_error *err)
{
    struct occ_run_state *r = NULL;
    int rc = s->options.mode == OCC_STORE_WRITE
                 ? occ_store_run_state(s, run, &r, err)
                 : occ_fail(err, OCC_E_READ_ONLY, "%s: opened for reading", s->path);
    if (rc != 0)
        return rc;
    for (uint32_t i = 0; i < r->n_lanes && rc == 0; i++)
        rc = occ_lane_seal(s, r, &r->lanes[i], err);
    if (rc == 0)
        r->ending = r->dirty = true;
    return rc;
}

/* ---- facts ---- */

static int put_fact(struct occ_store *s, const struct occ_fact *fact, struct occ_error *err)
{
    if (s->options.mode != OCC_STORE_WRITE)
        return occ_fail(err, OCC_E_READ_ONLY, "%s: opened for reading", s->path);
    for (uint32_t i = 0; i < s->n_facts; i++) {
        struct occ_fact *known = &s->facts[i];
        if (known->statement == fact->statement && known->run == fact->run &&
            strcmp(known->word, fact->word) == 0 && memcmp(known->uuid, fact->uuid, sizeof fact->uuid) == 0) {
            known->value = fact->value;
            return 0;
        }
    }
    struct occ_fact *facts = realloc(s->facts, (s->n_facts + 1) * sizeof *facts);
    if (!facts)
        return occ_store_no_memory(err);
    s->facts = facts;
    s->facts[s->n_facts++] = *fact;
    return 0;
}

static int put_total(struct occ_store *s, enum occ_sql statement, int64_t run, const char *word,
                     uint64_t value, struct occ_error *err)
{
    struct occ_fact fact = {
        .statement = statement, .run = run, .value = value > INT64_MAX ? INT64_MAX : (int64_t)value};
    (void)strncpy(fact.word, word, sizeof fact.word - 1);
    return put_fact(s, &fact, err);
}

int occ_store_put_losses(struct occ_store *s, int64_t run, const struct occ_loss *losses, size_t n,
                         struct occ_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = put_total(s, OCC_SQL_SET_LOSS, run, losses[i].cause, losses[i].count, err);
    return rc;
}

int occ_store_put_costs(struct occ_store *s, int64_t run, const struct occ_cost_total *costs, size_t n,
                        struct occ_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = put_total(s, OCC_SQL_SET_COST, run, costs[i].what, costs[i].total, err);
    return rc;
}

static int put_position(struct occ_store *s, enum occ_sql statement, const uint8_t uuid[16], uint64_t next,
                        struct occ_error *err)
{
    struct occ_fact fact = {.statement = statement};
    memcpy(fact.uuid, uuid, sizeof fact.uuid);
    memcpy(&fact.value, &next, sizeof next);
    return put_fact(s, &fact, err);
}

static int read_position(struct occ_store *s, enum occ_sql statement, const uint8_t uuid[16],
                         uint64_t *ret_next, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, statement, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_blob(&b, uuid, 16);
    int step = sqlite3_step(stmt);
    int64_t next = step == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
    if (step != SQLITE_ROW && step != SQLITE_DONE)
        rc = occ_sql_fail(s->db, s->path, step, err, "cannot read a position");
    (void)sqlite3_reset(stmt);
    if (rc == 0)
        memcpy(ret_next, &next, sizeof next);
    return rc;
}

int occ_store_put_ring_position(struct occ_store *s, const uint8_t uuid[16], uint64_t next,
                                struct occ_error *err)
{
    return put_position(s, OCC_SQL_SET_POSITION, uuid, next, err);
}

int occ_store_ring_position(struct occ_store *s, const uint8_t uuid[16], uint64_t *ret_next,
                            struct occ_error *err)
{
    return read_position(s, OCC_SQL_POSITION, uuid, ret_next, err);
}

int occ_store_put_measured_position(struct occ_store *s, const uint8_t uuid[16], uint64_t next,
                                    struct occ_error *err)
{
    return put_position(s, OCC_SQL_SET_MEASURED_POSITION, uuid, next, err);
}

int occ_store_measured_position(struct occ_store *s, const uint8_t uuid[16], uint64_t *ret_next,
                                struct occ_error *err)
{
    return read_position(s, OCC_SQL_MEASURED_POSITION, uuid, ret_next, err);
}

static int write_facts(struct occ_store *s, struct occ_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < s->n_facts && rc == 0; i++) {
        const struct occ_fact *fact = &s->facts[i];
        sqlite3_stmt *stmt = NULL;
        rc = occ_store_statement(s, fact->statement, &stmt, err);
        if (rc != 0)
            break;
        struct occ_binder b = {.stmt = stmt};
        if (fact->statement == OCC_SQL_SET_POSITION || fact->statement == OCC_SQL_SET_MEASURED_POSITION) {
            occ_bind_blob(&b, fact->uuid, sizeof fact->uuid);
        } else {
            occ_bind_int(&b, fact->run);
            occ_bind_text(&b, fact->word);
        }
        occ_bind_int(&b, fact->value);
        rc = occ_store_run(s, stmt, err, "cannot add a total");
    }
    return rc;
}

/* ---- commit ---- */

static int write_new_shapes(struct occ_store *s, const struct occ_run_state *r, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_ADD_RUN_SHAPE, &stmt, err);
    for (uint32_t i = 0; i < r->n_new_shapes && rc == 0; i++) {
        struct occ_binder b = {.stmt = stmt};
        occ_bind_int(&b, r->id);
        occ_bind_int(&b, r->new_shapes[i]);
        rc = occ_store_run(s, stmt, err, "cannot add a shape to a run");
    }
    return rc;
}

static int write_state(struct occ_store *s, const struct occ_run_state *r, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_SET_RUN_STATE, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, (int64_t)r->launches);
    occ_bind_int(&b, (int64_t)r->gpu_ns);
    if (r->launches > 0) {
        occ_bind_int(&b, r->first_ns);
        occ_bind_int(&b, r->last_ns);
    } else {
        b.at += 2; /* NULL */
    }
    occ_bind_int(&b, r->want_minute_ns);
    occ_bind_int(&b, r->want_hour_ns);
    occ_bind_int(&b, r->id);
    return occ_store_run(s, stmt, err, "cannot update a run");
}

int occ_run_write(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < r->n_lanes && rc == 0; i++)
        rc = occ_lane_write(s, r, &r->lanes[i], err);
    if (rc == 0) /* after the lanes, which gave back what these replace */
        rc = occ_sealed_write(s, r, err);
    if (rc == 0)
        rc = occ_rollup_write(s, r, err);
    if (rc == 0)
        rc = write_new_shapes(s, r, err);
    return rc != 0 ? rc : write_state(s, r, err);
}

static void run_written(struct occ_run_state *r)
{
    occ_sealed_free(r, 0);
    for (uint32_t i = 0; i < r->n_lanes; i++)
        occ_lane_written(&r->lanes[i]);
    occ_rollup_written(r);
    r->n_new_shapes = 0;
    r->force_minute_ns = 0;
    r->dirty = r->ending && r->hours.n > 0; /* the hours of a run that ends follow in a second transaction */
}

/* Another writer may have rolled the run up to make room (quota.c): what it wrote must not be written again. */
static int follow_watermarks(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    struct occ_run_state file = {.id = r->id};
    int rc = load_row(s, &file, err);
    if (rc != 0 || (file.rolled_minute_ns == r->rolled_minute_ns && file.rolled_hour_ns == r->rolled_hour_ns))
        return rc;
    r->rolled_minute_ns = file.rolled_minute_ns;
    r->rolled_hour_ns = file.rolled_hour_ns;
    r->stale = true;
    return 0;
}

static int write_everything(struct occ_store *s, uint32_t retire, bool *ret_retired, struct occ_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < s->n_runs && rc == 0; i++) {
        struct occ_run_state *r = &s->runs[i];
        if (!r->dirty && retire == 0) /* making room may make any of them dirty */
            continue;
        rc = follow_watermarks(s, r, err);
        if (rc == 0 && r->stale)
            rc = occ_rollup_load(s, r, err);
    }
    if (rc == 0 && retire > 0)
        rc = occ_quota_retire(s, retire, ret_retired, err);
    for (uint32_t i = 0; i < s->n_runs && rc == 0; i++)
        if (s->runs[i].dirty)
            rc = occ_run_write(s, &s->runs[i], err);
    if (rc == 0)
        rc = write_facts(s, err);
    if (rc == 0)
        rc = occ_measured_write(s, err);
    return rc != 0 ? rc : occ_series_write(s, err);
}

/* One transaction. */
static int try_commit(struct occ_store *s, uint32_t retire, bool *ret_retired, struct occ_error *err)
{
    int rc = s->bulk ? 0 : occ_store_do(s, OCC_SQL_BEGIN_IMMEDIATE, err);
    if (rc != 0)
        return rc;
    rc = write_everything(s, retire, ret_retired, err);
    if (rc == 0 && !s->bulk)
        rc = occ_store_do(s, OCC_SQL_COMMIT, err);
    occ_runs_forget_foreign(s);
    if (rc != 0) {
        occ_store_rollback(s);
        s->bulk_failed = s->bulk;
        return rc;
    }
    for (uint32_t i = 0; i < s->n_runs; i++)
        if (s->runs[i].dirty)
            run_written(&s->runs[i]);
    s->n_facts = 0;
    occ_measured_written(s);
    occ_series_written(s);
    return 0;
}

/* Commits, giving back more and more of the oldest history while the file is full. */
static int commit_once(struct occ_store *s, struct occ_error *err)
{
    bool retired = true;
    int rc = try_commit(s, 0, &retired, err);
    if (rc != OCC_E_FULL || s->options.max_bytes == 0 || s->bulk)
        return rc;
    uint32_t share = occ_quota_relieve(s) ? 0 : 1;
    while (rc == OCC_E_FULL && retired && share <= 1024) {
        retired = share == 0;
        rc = try_commit(s, share, &retired, err);
        share = share == 0 ? 1 : share * 2;
    }
    return rc;
}

static bool work_left(const struct occ_store *s)
{
    bool left = s->n_facts > 0 || s->n_measured > 0 || occ_series_waits(s);
    for (uint32_t i = 0; i < s->n_runs; i++)
        left |= s->runs[i].dirty;
    return left;
}

/* Rows that are safe in the file are forgotten, largest lane first, until the rest fits. */
static void bound_memory(struct occ_store *s)
{
    while (occ_store_memory_bytes(s) > KEPT_MOST_BYTES) {
        struct occ_lane *largest = NULL;
        for (uint32_t i = 0; i < s->n_runs; i++)
            for (uint32_t k = 0; k < s->runs[i].n_lanes; k++) {
                struct occ_lane *lane = &s->runs[i].lanes[k];
                if (lane->committed > 0 && (!largest || lane->committed > largest->committed))
                    largest = lane;
            }
        if (!largest)
            return;
        occ_lane_drop_rows(largest);
    }
}

static bool has_ended(const struct occ_run_state *r)
{
    return r->ending;
}

int occ_store_commit(struct occ_store *s, struct occ_error *err)
{
    int rc = 0;
    if (s->options.mode != OCC_STORE_WRITE)
        return occ_fail(err, OCC_E_READ_ONLY, "%s: opened for reading", s->path);
    rc = occ_bulk_check(s, err);
    while (rc == 0 && work_left(s))
        rc = commit_once(s, err);
    if (rc == 0) {
        forget(s, has_ended);
        bound_memory(s);
    }
    return rc;
}

int occ_store_finish(struct occ_store *s, struct occ_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < s->n_runs && rc == 0; i++)
        rc = occ_store_end_run(s, s->runs[i].id, err);
    if (rc == 0)
        rc = occ_store_commit(s, err);
    if (rc == 0)
        (void)sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
                                        NULL); /* readers may hold it up */
    return rc;
}
