/* Launches in the order of their starts. */
#include "launch_merge.h"

#include <stdlib.h>

/* Maximum number of decoded chunks, some MB each; beyond it, chunks far down the heap are decoded again
 * later. */
#define DECODERS_MAX OCC_LAUNCH_MERGE_MAX
/* Maximum number of open chunks of one run (see occ_launch_merge_is_wide()); bounds the memory for a hostile
 * file. */
#define OPEN_MAX 1024u

/* Replaces the ends before `start_ns` by the end of another chunk. Returns the number of ends. */
static uint32_t keep_open(int64_t *ends, uint32_t n, int64_t start_ns, int64_t end_ns)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (ends[i] >= start_ns)
            ends[kept++] = ends[i];
    ends[kept++] = end_ns;
    return kept;
}

int occ_launch_merge_is_wide(sqlite3_vtab *vtab, bool *ret_wide)
{
    int64_t ends[OCC_LAUNCH_MERGE_MAX + 1];
    sqlite3_stmt *chunks = NULL;
    uint32_t n = 0;
    int rc = occ_vtab_prepare(vtab, &chunks,
                              "SELECT first_start_ns, last_start_ns FROM \"%w\".stored_chunk ORDER BY 1");
    while (rc == SQLITE_OK && n <= OCC_LAUNCH_MERGE_MAX && (rc = occ_vtab_step(vtab, chunks)) == SQLITE_ROW) {
        n = keep_open(ends, n, sqlite3_column_int64(chunks, 0), sqlite3_column_int64(chunks, 1));
        rc = SQLITE_OK;
    }
    (void)sqlite3_finalize(chunks);
    *ret_wide = n > OCC_LAUNCH_MERGE_MAX;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static uint32_t row_of(const struct occ_launch_merge *m, const struct occ_launch_chunk *c)
{
    return occ_launch_chunk_row(c, m->descending ? c->n - 1 - c->at : c->at);
}

/* The key of the heap; ~ reverses the order of any numbers. */
static int64_t key_of(const struct occ_launch_merge *m, int64_t start_ns)
{
    return m->descending ? ~start_ns : start_ns;
}

/* The first start, in the scan's order, of the current chunk of the list. */
static int64_t edge_of(const struct occ_launch_merge *m)
{
    return sqlite3_column_int64(m->list, m->descending ? OCC_LAUNCH_LIST_LAST : OCC_LAUNCH_LIST_FIRST);
}

static void swap(struct occ_launch_merge *m, uint32_t a, uint32_t b)
{
    struct occ_launch_chunk *chunk = m->chunks[a];
    m->chunks[a] = m->chunks[b];
    m->chunks[b] = chunk;
}

static void sift_up(struct occ_launch_merge *m, uint32_t at)
{
    for (; at > 0 && m->chunks[at]->key < m->chunks[(at - 1) / 2]->key; at = (at - 1) / 2)
        swap(m, at, (at - 1) / 2);
}

static void sift_down(struct occ_launch_merge *m)
{
    for (uint32_t at = 0, child; (child = 2 * at + 1) < m->n; at = child) {
        child += child + 1 < m->n && m->chunks[child + 1]->key < m->chunks[child]->key;
        if (m->chunks[at]->key <= m->chunks[child]->key)
            break;
        swap(m, at, child);
    }
}

/* Gives the chunk a decoder: its own, a new one, or the decoder of a spare chunk or of a chunk far down the
 * heap. */
static bool assign_decoder(struct occ_launch_merge *m, struct occ_launch_chunk *c)
{
    if (c->decoder)
        return true;
    for (uint32_t i = m->allocated; m->decoders >= DECODERS_MAX && i-- > 0 && !c->decoder;) {
        c->decoder = m->chunks[i]->decoder;
        m->chunks[i]->decoder = NULL;
        m->chunks[i]->decoded = 0;
    }
    if (!c->decoder) {
        c->decoder = occ_columns_decoder_new();
        m->decoders += c->decoder != NULL;
    }
    return c->decoder != NULL;
}

static int step(struct occ_launch_merge *m, struct occ_launch_scan *scan)
{
    int rc = occ_vtab_step(scan->vtab, m->list);
    m->listed = rc == SQLITE_ROW;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static bool reserve(struct occ_launch_merge *m)
{
    if (m->n < m->allocated)
        return true;
    struct occ_launch_chunk **chunks = realloc(m->chunks, (m->allocated + 1) * sizeof(*chunks));
    if (chunks)
        m->chunks = chunks;
    if (!chunks || !(chunks[m->allocated] = calloc(1, sizeof **chunks)))
        return false;
    m->allocated++;
    return true;
}

/* Opens the current chunk of the list. */
static int open_chunk(struct occ_launch_merge *m, struct occ_launch_scan *scan)
{
    if (m->n == OPEN_MAX)
        return occ_vtab_fail(scan->vtab, SQLITE_ERROR,
                             "launch: too many chunks at a time to merge; ORDER BY +start_ns sorts instead");
    if (!reserve(m) || !assign_decoder(m, m->chunks[m->n]))
        return SQLITE_NOMEM;
    struct occ_launch_chunk *c = m->chunks[m->n];
    int rc = occ_launch_chunk_open(scan, c, m->list);
    if (rc == SQLITE_OK && c->n > 0) {
        c->key = key_of(m, (int64_t)c->columns.start_ns[row_of(m, c)]);
        sift_up(m, m->n++);
    }
    return rc == SQLITE_OK ? step(m, scan) : rc;
}

/* Moves past the row that was returned. */
static void advance(struct occ_launch_merge *m)
{
    struct occ_launch_chunk *c = m->chunks[0];
    if (++c->at < c->n)
        c->key = key_of(m, (int64_t)c->columns.start_ns[row_of(m, c)]);
    else
        swap(m, 0, --m->n);
    sift_down(m);
}

int occ_launch_merge_start(struct occ_launch_merge *m, struct occ_launch_scan *scan, sqlite3_stmt *list,
                           bool descending)
{
    m->list = list;
    m->descending = descending;
    m->started = false;
    m->n = 0;
    scan->columns |= OCC_COLUMN_BIT(start_ns);
    return step(m, scan);
}

int occ_launch_merge_next(struct occ_launch_merge *m, struct occ_launch_scan *scan,
                          struct occ_launch_chunk **ret_chunk, uint32_t *ret_row)
{
    int rc = SQLITE_OK;
    if (m->started && m->n > 0)
        advance(m);
    m->started = true;
    while (rc == SQLITE_OK && m->listed && (m->n == 0 || key_of(m, edge_of(m)) <= m->chunks[0]->key))
        rc = open_chunk(m, scan);
    *ret_chunk = m->n > 0 ? m->chunks[0] : NULL;
    if (rc != SQLITE_OK || m->n == 0)
        return rc;
    *ret_row = row_of(m, m->chunks[0]);
    if (!assign_decoder(m, m->chunks[0]))
        return SQLITE_NOMEM;
    return occ_launch_chunk_decode(scan, m->chunks[0], OCC_COLUMN_BIT(start_ns));
}

void occ_launch_merge_close(struct occ_launch_merge *m)
{
    for (uint32_t i = 0; i < m->allocated; i++) {
        occ_launch_chunk_close(m->chunks[i]);
        free(m->chunks[i]);
    }
    free(m->chunks);
}
