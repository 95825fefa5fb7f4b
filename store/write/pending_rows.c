/*
 * From rows to chunks. New rows become a level-0 chunk with every commit (quick to write); when a full chunk's worth is
 * together they are sorted and packed well (sealed), and the level-0 chunks go in the same transaction. Full chunks
 * are cut at hours, so that questions about whole hours need not unpack. One thread.
 */
#include <stdlib.h>
#include <string.h>

#include "store/internal.h"

/* A lane that gets a few launches a second would fill the file with tiny chunks: so many are made one. */
#define SMALL_CHUNKS_MOST 64u
/* Not worth a chunk of its own at an hour's edge. */
#define CUT_LEAST_ROWS 4096u

struct occ_lane *occ_run_lane(struct occ_run_state *r, int64_t device)
{
    for (uint32_t i = 0; i < r->n_lanes; i++)
        if (r->lanes[i].device == device)
            return &r->lanes[i];
    struct occ_lane *lanes = realloc(r->lanes, (r->n_lanes + 1) * sizeof *lanes);
    if (!lanes)
        return NULL;
    r->lanes = lanes;
    r->lanes[r->n_lanes] = (struct occ_lane){.device = device};
    return &r->lanes[r->n_lanes++];
}

static bool reserve_small(struct occ_lane *lane, uint32_t n)
{
    if (lane->small_capacity - lane->n_small >= n)
        return true;
    uint32_t capacity = (lane->n_small + n) * 2;
    int64_t *ids = realloc(lane->small_ids, capacity * sizeof *ids);
    if (!ids)
        return false;
    lane->small_ids = ids;
    lane->small_capacity = capacity;
    return true;
}

bool occ_lane_add_small(struct occ_lane *lane, int64_t id)
{
    if (!reserve_small(lane, 1))
        return false;
    lane->small_ids[lane->n_small++] = id;
    return true;
}

bool occ_lane_reserve(struct occ_lane *lane, uint32_t n, uint32_t most)
{
    if (lane->capacity - lane->n >= n)
        return true;
    uint32_t needed = lane->n + n, capacity = needed + needed / 2;
    if (capacity > most)
        capacity = needed > most ? needed : most;
    struct occ_store_launch *rows = realloc(lane->rows, capacity * sizeof *rows);
    if (!rows)
        return false;
    lane->rows = rows;
    lane->capacity = capacity;
    return true;
}

/* ---- the rows of a lane, from the file and from memory ---- */

static bool reserve_scratch(struct occ_store *s, uint32_t n)
{
    if (n <= s->scratch_capacity)
        return true;
    struct occ_store_launch *rows = realloc(s->scratch, n * sizeof *rows);
    if (!rows)
        return false;
    s->scratch = rows;
    s->scratch_capacity = n;
    return true;
}

static int sort_scratch(struct occ_store *s, uint32_t n, struct occ_error *err)
{
    if (!reserve_scratch(s, 2 * n))
        return occ_store_no_memory(err);
    occ_launches_sort(s->scratch, s->scratch + n, n);
    return 0;
}

/* ---- reading level-0 chunks ---- */

static int append_view(struct occ_store *s, const struct occ_columns *v, uint32_t *n)
{
    if (!reserve_scratch(s, *n + v->n))
        return OCC_E_NO_MEMORY;
    for (uint32_t i = 0; i < v->n; i++)
        s->scratch[*n + i] = (struct occ_store_launch){.start_ns = (int64_t)v->start_ns[i],
                                                       .duration_ns = v->duration_ns[i],
                                                       .graph_node = v->graph_node[i],
                                                       .config = (uint32_t)v->config[i],
                                                       .stream = (uint32_t)v->stream[i],
                                                       .correlation = (uint32_t)v->correlation[i],
                                                       .context = (uint32_t)v->context[i]};
    *n += v->n;
    return 0;
}

/* Unpacks a level-0 chunk. OCC_E_CORRUPT also when it is gone. */
static int read_small(struct occ_store *s, int64_t id, uint32_t *n, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    struct occ_columns columns;
    int rc = occ_store_statement(s, OCC_SQL_CHUNK_DATA, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, id);
    int step = sqlite3_step(stmt);
    if (step == SQLITE_ROW) {
        rc = occ_columns_decode(s->decoder, sqlite3_column_blob(stmt, 0),
                                (size_t)sqlite3_column_bytes(stmt, 0), OCC_COLUMN_BITS(config, graph_node),
                                &columns);
        if (rc == 0)
            rc = append_view(s, &columns, n);
    } else {
        rc = step == SQLITE_DONE ? OCC_E_CORRUPT
                                 : occ_sql_fail(s->db, s->path, step, err, "cannot read a chunk");
    }
    (void)sqlite3_reset(stmt);
    return rc;
}

/* All rows of the lane, unsorted, into s->scratch. A level-0 chunk that is damaged is left to itself: the file keeps
 * it, the lane forgets it. */
static int collect(struct occ_store *s, struct occ_lane *lane, uint32_t *ret_n, struct occ_error *err)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < lane->n_small_dropped;) {
        int rc = read_small(s, lane->small_ids[i], &n, err);
        if (rc == OCC_E_CORRUPT || rc == OCC_E_VERSION) {
            lane->n_small--;
            lane->n_small_dropped--;
            memmove(&lane->small_ids[i], &lane->small_ids[i + 1],
                    (lane->n_small - i) * sizeof *lane->small_ids);
        } else if (rc != 0) {
            return rc;
        } else {
            i++;
        }
    }
    lane->dropped = n;
    if (!reserve_scratch(s, n + lane->n + 1))
        return occ_store_no_memory(err);
    if (lane->n > 0)
        memcpy(s->scratch + n, lane->rows, lane->n * sizeof *lane->rows);
    *ret_n = n + lane->n;
    return 0;
}

/* ---- sealing ---- */

static void describe(const struct occ_store_launch *rows, uint32_t n, struct occ_sealed *c)
{
    c->n = n;
    c->first_ns = rows[0].start_ns;
    c->last_ns = rows[n - 1].start_ns;
    c->min_correlation = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        int64_t end = rows[i].start_ns + (int64_t)rows[i].duration_ns;
        c->end_ns = end > c->end_ns ? end : c->end_ns;
        c->min_correlation =
            rows[i].correlation < c->min_correlation ? rows[i].correlation : c->min_correlation;
        c->max_correlation =
            rows[i].correlation > c->max_correlation ? rows[i].correlation : c->max_correlation;
    }
}

static uint8_t *copy_bytes(const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n);
    if (copy)
        memcpy(copy, data, n);
    return copy;
}

static int seal_piece(struct occ_store *s, struct occ_run_state *r, int64_t device,
                      const struct occ_store_launch *rows, uint32_t n)
{
    struct occ_sealed *sealed = realloc(r->sealed, (r->n_sealed + 1) * sizeof *sealed);
    if (!sealed)
        return OCC_E_NO_MEMORY;
    r->sealed = sealed;
    struct occ_sealed *c = &sealed[r->n_sealed];
    const uint8_t *data = NULL, *totals = NULL;
    *c = (struct occ_sealed){.device = device};
    int rc = occ_chunk_encode(s->encoder, rows, n, true, &data, &c->data_bytes);
    if (rc != 0)
        return rc;
    c->data = copy_bytes(data, c->data_bytes);
    rc = occ_chunk_encode_totals(s->encoder, rows, n, &totals, &c->totals_bytes);
    if (rc == 0)
        c->totals = copy_bytes(totals, c->totals_bytes);
    describe(rows, n, c);
    r->n_sealed++;
    return rc == 0 && c->data && c->totals ? 0 : OCC_E_NO_MEMORY;
}

/* How many of the sorted rows go into the next chunk. */
static uint32_t next_piece(const struct occ_store_launch *rows, uint32_t n, uint32_t most)
{
    uint32_t piece = n < most ? n : most, low = 0, high = piece;
    int64_t hour_end = (rows[0].start_ns / HOUR_NS + 1) * HOUR_NS;
    if (rows[piece - 1].start_ns < hour_end)
        return piece;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (rows[middle].start_ns < hour_end)
            low = middle + 1;
        else
            high = middle;
    }
    return low >= CUT_LEAST_ROWS && piece - low >= CUT_LEAST_ROWS ? low : piece;
}

int occ_lane_seal(struct occ_store *s, struct occ_run_state *r, struct occ_lane *lane, struct occ_error *err)
{
    uint32_t n = 0, sealed_before = r->n_sealed;
    int rc = collect(s, lane, &n, err);
    if (rc == 0 && n > 0)
        rc = sort_scratch(s, n, err);
    for (uint32_t at = 0; rc == 0 && at < n;) {
        uint32_t piece = next_piece(s->scratch + at, n - at, s->options.chunk_rows);
        rc = seal_piece(s, r, lane->device, s->scratch + at, piece);
        at += piece;
    }
    if (rc != 0) {
        occ_sealed_free(r, sealed_before);
        return occ_store_no_memory(err);
    }
    lane->obsolete = lane->n_small;
    lane->n = lane->committed = lane->dropped = lane->n_small_dropped = 0;
    r->dirty = true;
    return 0;
}

void occ_sealed_free(struct occ_run_state *r, uint32_t from)
{
    for (uint32_t i = from; i < r->n_sealed; i++) {
        free(r->sealed[i].data);
        free(r->sealed[i].totals);
    }
    r->n_sealed = from;
}

/* ---- writing ---- */

static int add_blob(struct occ_store *s, enum occ_sql which, int64_t id, const void *data, size_t n,
                    struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, which, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, id);
    occ_bind_blob(&b, data, n);
    return occ_store_run(s, stmt, err, "cannot add a chunk");
}

static int add_chunk(struct occ_store *s, int64_t run, int level, const struct occ_sealed *c,
                     const uint8_t *data, int64_t *ret_id, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_ADD_CHUNK, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    const int64_t values[] = {run,       c->device,          level,
                              c->n,      c->first_ns,        c->last_ns,
                              c->end_ns, c->min_correlation, c->max_correlation};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        occ_bind_int(&b, values[i]);
    rc = occ_store_run(s, stmt, err, "cannot add a chunk");
    int64_t id = sqlite3_last_insert_rowid(s->db);
    if (rc == 0)
        rc = add_blob(s, OCC_SQL_ADD_CHUNK_DATA, id, data, c->data_bytes, err);
    if (rc == 0 && c->totals)
        rc = add_blob(s, OCC_SQL_ADD_CHUNK_TOTALS, id, c->totals, c->totals_bytes, err);
    if (rc == 0)
        *ret_id = id;
    return rc;
}

int occ_sealed_write(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    int64_t ignored = 0;
    int rc = 0;
    for (uint32_t i = 0; i < r->n_sealed && rc == 0; i++)
        rc = add_chunk(s, r->id, 1, &r->sealed[i], r->sealed[i].data, &ignored, err);
    return rc;
}

int occ_chunk_drop(struct occ_store *s, int64_t id, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_DROP_CHUNK, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, id);
    return occ_store_run(s, stmt, err, "cannot delete a chunk");
}

static int drop_small(struct occ_store *s, struct occ_lane *lane, uint32_t n, struct occ_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = occ_chunk_drop(s, lane->small_ids[i], err);
    return rc;
}

/* Writes the first `n` rows of s->scratch as level-0 chunks; more than one only after failures to seal. */
static int write_scratch(struct occ_store *s, struct occ_run_state *r, struct occ_lane *lane, uint32_t n,
                         struct occ_error *err)
{
    int rc = sort_scratch(s, n, err);
    for (uint32_t at = 0; at < n && rc == 0; at += OCC_COLUMNS_MAX_ROWS) {
        uint32_t piece = n - at < OCC_COLUMNS_MAX_ROWS ? n - at : OCC_COLUMNS_MAX_ROWS;
        struct occ_sealed c = {.device = lane->device};
        const uint8_t *data = NULL;
        describe(s->scratch + at, piece, &c);
        if (occ_chunk_encode(s->encoder, s->scratch + at, piece, lane->merged, &data, &c.data_bytes) != 0 ||
            !reserve_small(lane, ++lane->n_written))
            return occ_store_no_memory(err);
        rc = add_chunk(s, r->id, 0, &c, data, &lane->written, err);
    }
    return rc;
}

int occ_lane_write(struct occ_store *s, struct occ_run_state *r, struct occ_lane *lane, struct occ_error *err)
{
    uint32_t n = lane->n - lane->committed;
    lane->n_written = 0;
    lane->merged = false;
    int rc = drop_small(s, lane, lane->obsolete, err);
    if (rc != 0 || n == 0)
        return rc;
    if (lane->n_small >= SMALL_CHUNKS_MOST && lane->obsolete == 0) {
        lane->merged = true;
        rc = collect(s, lane, &n, err);
        if (rc == 0)
            rc = drop_small(s, lane, lane->n_small, err);
    } else if (reserve_scratch(s, n)) {
        memcpy(s->scratch, lane->rows + lane->committed, n * sizeof *lane->rows);
    } else {
        rc = occ_store_no_memory(err);
    }
    return rc != 0 ? rc : write_scratch(s, r, lane, n, err);
}

void occ_lane_written(struct occ_lane *lane)
{
    uint32_t gone = lane->merged ? lane->n_small : lane->obsolete;
    lane->n_small -= gone;
    if (gone > 0)
        memmove(lane->small_ids, lane->small_ids + gone, lane->n_small * sizeof *lane->small_ids);
    lane->obsolete = 0;
    for (uint32_t i = 0; i < lane->n_written; i++) /* one transaction: the ids follow each other */
        lane->small_ids[lane->n_small++] = lane->written - lane->n_written + 1 + i;
    if (lane->merged) {
        lane->dropped += lane->n;
        lane->n = 0;
        lane->n_small_dropped = lane->n_small;
    }
    lane->committed = lane->n;
    lane->n_written = 0;
    lane->merged = false;
}

void occ_lane_drop_rows(struct occ_lane *lane)
{
    if (lane->committed == 0 || lane->obsolete > 0)
        return;
    memmove(lane->rows, lane->rows + lane->committed, (lane->n - lane->committed) * sizeof *lane->rows);
    lane->n -= lane->committed;
    lane->dropped += lane->committed;
    lane->n_small_dropped = lane->n_small;
    lane->committed = 0;
    if (lane->n == 0) {
        free(lane->rows);
        lane->rows = NULL;
        lane->capacity = 0;
    }
}
