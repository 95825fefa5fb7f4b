/*
 * Makes chunks from launches. A commit writes new launches as a level-0 chunk of their run and device, which
 * is fast. Once there are enough rows for a full chunk, the same transaction sorts and packs all of them and
 * deletes the level-0 chunks. Full chunks are cut at hours, so that queries for whole hours need not unpack
 * them. One thread.
 */
#include <stdlib.h>
#include <string.h>

#include "store/internal.h"
#include "support/array.h"

/* Number of level-0 chunks that are merged: runs with a few launches a second would otherwise fill the file
 * with tiny chunks. */
#define LEVEL0_MAX 64u
/* Maximum scratch memory kept from one commit to the next: 10 MB. */
#define SCRATCH_MAX_ROWS (1u << 18)
/* Maximum memory for pending rows kept from one commit to the next: 160 KB. */
#define PENDING_MAX_ROWS 4096u
/* Fewer rows on one side of an hour's edge are not worth a chunk of their own. */
#define CUT_MIN_ROWS 4096u

struct occ_pending_rows *occ_run_pending_rows(struct occ_run_state *r, int64_t device)
{
    for (uint32_t i = 0; i < r->n_pending; i++)
        if (r->pending[i].device == device)
            return &r->pending[i];
    struct occ_pending_rows *pending = realloc(r->pending, (r->n_pending + 1) * sizeof *pending);
    if (!pending)
        return NULL;
    r->pending = pending;
    r->pending[r->n_pending] = (struct occ_pending_rows){.device = device};
    return &r->pending[r->n_pending++];
}

bool occ_pending_rows_add(struct occ_pending_rows *p, const struct occ_store_launch *rows, size_t n)
{
    if (!occ_grow((void **)&p->rows, &p->allocated, p->n + n - 1, UINT32_MAX / 2, sizeof *p->rows))
        return false;
    memcpy(p->rows + p->n, rows, n * sizeof *rows);
    p->n += n;
    return true;
}

/* ---- reading level-0 chunks, into s->work->rows ---- */

static bool reserve_scratch(struct occ_store *s, size_t n)
{
    return n == 0 ||
           occ_grow((void **)&s->work->rows, &s->work->allocated, n - 1, UINT32_MAX, sizeof *s->work->rows);
}

/* Call after a commit with very many rows. */
void occ_scratch_trim(struct occ_store *s)
{
    if (s->work->allocated <= SCRATCH_MAX_ROWS)
        return;
    free(s->work->rows);
    s->work->rows = NULL;
    s->work->allocated = 0;
}

static int append_columns(struct occ_store *s, const struct occ_columns *c, size_t *n)
{
    if (!reserve_scratch(s, *n + c->n))
        return OCC_E_NO_MEMORY;
    for (uint32_t i = 0; i < c->n; i++)
        s->work->rows[(*n)++] = (struct occ_store_launch){.start_ns = (int64_t)c->start_ns[i],
                                                          .duration_ns = c->duration_ns[i],
                                                          .graph_node = c->graph_node[i],
                                                          .config = (uint32_t)c->config[i],
                                                          .stream = (uint32_t)c->stream[i],
                                                          .correlation = (uint32_t)c->correlation[i],
                                                          .context = (uint32_t)c->context[i],
                                                          .range = (uint32_t)c->range[i]};
    return 0;
}

/* Moves the rows of all level-0 chunks from the file into the scratch memory. A damaged chunk stays
 * unchanged, like a full chunk. */
static int take_level0(struct occ_store *s, int64_t run, int64_t device, size_t *n, struct occ_error *err)
{
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_LEVEL0_CHUNKS, OCC_INTS(run, device));
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err)) {
        struct occ_columns columns;
        int unpacked = occ_columns_decode(
            s->work->decoder, sqlite3_column_blob(stmt, 1), (size_t)sqlite3_column_bytes(stmt, 1),
            OCC_COLUMN_BITS(config, graph_node) | OCC_COLUMN_BIT(range), &columns);
        if (unpacked == 0)
            unpacked = append_columns(s, &columns, n);
        rc = unpacked == OCC_E_NO_MEMORY
                 ? occ_no_memory(err)
                 : occ_store_execute(s, unpacked == 0 ? OCC_SQL_DROP_CHUNK : OCC_SQL_END_CHUNK_MERGES,
                                     OCC_INTS(sqlite3_column_int64(stmt, 0)), err);
    }
    return rc;
}

/* ---- sorting by start, stable ---- */

/* Launches come as a few sequences (CUPTI's buffers), nearly ordered by start: merges of halves that are
 * already in order are skipped. */
#define SORT_BLOCK 16u

static void insertion_sort(struct occ_store_launch *rows, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const struct occ_store_launch row = rows[i];
        uint32_t at = i;
        for (; at > 0 && rows[at - 1].start_ns > row.start_ns; at--)
            rows[at] = rows[at - 1];
        rows[at] = row;
    }
}

/* Merges rows[0, middle) and rows[middle, n), both in order. */
static void merge_halves(struct occ_store_launch *rows, struct occ_store_launch *scratch, uint32_t middle,
                         uint32_t n)
{
    uint32_t left = 0, right = middle, out = 0;
    if (rows[middle - 1].start_ns <= rows[middle].start_ns)
        return;
    memcpy(scratch, rows, middle * sizeof *rows);
    while (left < middle && right < n)
        rows[out++] = rows[right].start_ns < scratch[left].start_ns ? rows[right++] : scratch[left++];
    memcpy(rows + out, scratch + left, (middle - left) * sizeof *rows);
}

static void sort(struct occ_store_launch *rows, struct occ_store_launch *scratch, uint32_t n)
{
    for (uint32_t at = 0; at < n; at += SORT_BLOCK)
        insertion_sort(rows + at, n - at < SORT_BLOCK ? n - at : SORT_BLOCK);
    for (uint32_t width = SORT_BLOCK; width < n; width *= 2)
        for (uint32_t at = 0; at < n && n - at > width; at += 2 * width)
            merge_halves(rows + at, scratch, width, n - at < 2 * width ? n - at : 2 * width);
}

/* ---- writing ---- */

/* The number of sorted rows for the next chunk. */
static uint32_t next_piece(const struct occ_store_launch *rows, size_t n, uint32_t max)
{
    uint32_t piece = n < max ? (uint32_t)n : max, low = 0, high = piece;
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
    return low >= CUT_MIN_ROWS && piece - low >= CUT_MIN_ROWS ? low : piece;
}

/* Writes the `n` sorted rows of the scratch memory: full chunks, and the rest as a level-0 chunk or, if
 * `all`, as a full chunk. */
static int write_chunks(struct occ_store *s, const struct occ_chunk *like, size_t n, bool all,
                        struct occ_level0 *level0, struct occ_error *err)
{
    int rc = 0;
    for (size_t at = 0; at < n && rc == 0;) {
        struct occ_chunk c = *like;
        c.full = all || n - at >= s->options.chunk_rows;
        c.compress |= c.full;
        c.rows = s->work->rows + at;
        c.n = c.full ? next_piece(c.rows, n - at, s->options.chunk_rows) : (uint32_t)(n - at);
        rc = occ_chunk_add(s, &c, err);
        at += c.n;
        level0->chunks += !c.full;
        level0->rows += c.full ? 0 : c.n;
    }
    return rc;
}

int occ_pending_rows_write(struct occ_store *s, const struct occ_run_state *r, struct occ_pending_rows *p,
                           struct occ_error *err)
{
    bool pack = r->ending || p->level0.rows + p->n >= s->options.chunk_rows;
    bool merge = pack || (p->n > 0 && p->level0.chunks >= LEVEL0_MAX);
    size_t n = 0;
    int rc = merge ? take_level0(s, r->id, p->device, &n, err) : 0;
    p->planned = merge ? (struct occ_level0){0} : p->level0;
    if (rc == 0 && !reserve_scratch(s, 2 * (n + p->n)))
        rc = occ_no_memory(err);
    if (rc != 0 || n + p->n == 0)
        return rc;
    if (p->n > 0)
        memcpy(s->work->rows + n, p->rows, p->n * sizeof *p->rows);
    sort(s->work->rows, s->work->rows + n + p->n, (uint32_t)(n + p->n));
    const struct occ_chunk like = {.run = r->id, .device = p->device, .compress = merge && !pack};
    return write_chunks(s, &like, n + p->n, r->ending, &p->planned, err);
}

void occ_pending_rows_written(struct occ_pending_rows *p)
{
    p->level0 = p->planned;
    p->n = 0;
    if (p->allocated <= PENDING_MAX_ROWS)
        return;
    free(p->rows);
    p->rows = NULL;
    p->allocated = 0;
}
