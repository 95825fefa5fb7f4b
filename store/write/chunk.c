/* Chunks: launches and their totals as packed columns (store/codec/columns.h). One thread. */
#include <stdlib.h>

#include "store/internal.h"

struct total {
    uint64_t config, launches, total_ns, min_ns, max_ns;
};

/* The bytes belong to the encoder until its next call. */
static int encode(struct occ_columns_encoder *encoder, const struct occ_chunk *c, const uint8_t **ret_data,
                  size_t *ret_bytes)
{
    const struct occ_store_launch *rows = c->rows;
    const struct occ_column_source sources[OCC_COLUMN_none] = {
        [OCC_COLUMN_config] = OCC_COLUMN_FROM(rows, config),
        [OCC_COLUMN_duration_ns] = OCC_COLUMN_FROM(rows, duration_ns),
        [OCC_COLUMN_stream] = OCC_COLUMN_FROM(rows, stream),
        [OCC_COLUMN_start_ns] = OCC_COLUMN_FROM(rows, start_ns),
        [OCC_COLUMN_correlation] = OCC_COLUMN_FROM(rows, correlation),
        [OCC_COLUMN_context] = OCC_COLUMN_FROM(rows, context),
        [OCC_COLUMN_graph_node] = OCC_COLUMN_FROM(rows, graph_node),
    };
    return occ_columns_encode(encoder, sources, c->n, c->compress, ret_data, ret_bytes);
}

static void add(struct total *t, uint64_t duration_ns)
{
    t->launches++;
    t->total_ns += duration_ns;
    if (t->total_ns > INT64_MAX) /* SQL has no larger number */
        t->total_ns = INT64_MAX;
    t->min_ns = duration_ns < t->min_ns ? duration_ns : t->min_ns;
    t->max_ns = duration_ns > t->max_ns ? duration_ns : t->max_ns;
}

/* false: no memory. */
static bool add_up(const struct occ_store_launch *rows, uint32_t n, struct occ_map *index,
                   struct total *totals)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t used = index->used, at = occ_map_put(index, rows[i].config, used);
        if (at == OCC_MAP_NONE)
            return false;
        if (at == used)
            totals[at] = (struct total){.config = rows[i].config, .min_ns = UINT64_MAX};
        add(&totals[at], rows[i].duration_ns);
    }
    return true;
}

static int encode_totals(struct occ_columns_encoder *encoder, const struct occ_chunk *c,
                         const uint8_t **ret_data, size_t *ret_bytes)
{
    struct occ_map index = {0};
    struct total *totals = malloc(c->n * sizeof *totals); /* few are touched */
    if (!totals)
        return OCC_E_NO_MEMORY;
    const struct occ_column_source sources[OCC_COLUMN_none] = {
        [OCC_COLUMN_config] = OCC_COLUMN_FROM(totals, config),
        [OCC_COLUMN_launches] = OCC_COLUMN_FROM(totals, launches),
        [OCC_COLUMN_total_ns] = OCC_COLUMN_FROM(totals, total_ns),
        [OCC_COLUMN_min_ns] = OCC_COLUMN_FROM(totals, min_ns),
        [OCC_COLUMN_max_ns] = OCC_COLUMN_FROM(totals, max_ns),
    };
    int rc = occ_map_reset(&index, 2048 /* more is rare */) && add_up(c->rows, c->n, &index, totals)
                 ? occ_columns_encode(encoder, sources, index.used, true, ret_data, ret_bytes)
                 : OCC_E_NO_MEMORY;
    occ_map_free(&index);
    free(totals);
    return rc;
}

/* ---- writing ---- */

int occ_chunk_drop(struct occ_store *s, int64_t id, struct occ_error *err)
{
    return occ_store_execute(s, OCC_SQL_DROP_CHUNK, OCC_INTS(id), err);
}

static int add_bytes(struct occ_store *s, enum occ_sql which, int64_t id, const void *data, size_t n,
                     struct occ_error *err)
{
    struct occ_binder b = occ_store_statement(s, which);
    occ_bind_int(&b, id);
    occ_bind_blob(&b, data, n);
    return occ_store_run(s, b.stmt, err);
}

static int add_row(struct occ_store *s, const struct occ_chunk *c, struct occ_error *err)
{
    int64_t last_end_ns = 0, low = UINT32_MAX, high = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct occ_store_launch *row = &c->rows[i];
        int64_t end_ns = row->start_ns + (int64_t)row->duration_ns;
        last_end_ns = end_ns > last_end_ns ? end_ns : last_end_ns;
        low = row->correlation < low ? row->correlation : low;
        high = row->correlation > high ? row->correlation : high;
    }
    return occ_store_execute(s, OCC_SQL_ADD_CHUNK,
                             OCC_INTS(c->run, c->device, c->full, c->n, c->rows[0].start_ns,
                                      c->rows[c->n - 1].start_ns, last_end_ns, low, high),
                             err);
}

int occ_chunk_add(struct occ_store *s, const struct occ_chunk *c, int64_t *ret_id, struct occ_error *err)
{
    const uint8_t *data = NULL;
    size_t bytes = 0;
    int rc = add_row(s, c, err);
    int64_t id = sqlite3_last_insert_rowid(s->db);
    if (rc == 0 && encode(s->encoder, c, &data, &bytes) != 0)
        rc = occ_store_no_memory(err);
    if (rc == 0)
        rc = add_bytes(s, OCC_SQL_ADD_CHUNK_DATA, id, data, bytes, err);
    if (rc == 0 && c->full && encode_totals(s->encoder, c, &data, &bytes) != 0)
        rc = occ_store_no_memory(err);
    if (rc == 0 && c->full)
        rc = add_bytes(s, OCC_SQL_ADD_CHUNK_TOTALS, id, data, bytes, err);
    *ret_id = id;
    return rc;
}
