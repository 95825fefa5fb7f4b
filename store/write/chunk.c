/* Chunks: launches as packed columns (store/codec/columns.h). One thread. */
#include "store/internal.h"

/* Encodes a chunk. The bytes belong to the encoder until its next call. */
static int encode(struct occ_columns_encoder *encoder, const struct occ_chunk *c, const uint8_t **ret_data,
                  size_t *ret_bytes)
{
    const struct occ_store_launch *rows = c->rows;
    uint32_t ranges = 0;
    for (uint32_t i = 0; i < c->n; i++)
        ranges |= rows[i].range;
    const struct occ_column_source sources[OCC_COLUMN_none] = {
        [OCC_COLUMN_config] = OCC_COLUMN_FROM(rows, config),
        [OCC_COLUMN_duration_ns] = OCC_COLUMN_FROM(rows, duration_ns),
        [OCC_COLUMN_stream] = OCC_COLUMN_FROM(rows, stream),
        [OCC_COLUMN_start_ns] = OCC_COLUMN_FROM(rows, start_ns),
        [OCC_COLUMN_correlation] = OCC_COLUMN_FROM(rows, correlation),
        [OCC_COLUMN_context] = OCC_COLUMN_FROM(rows, context),
        [OCC_COLUMN_graph_node] = OCC_COLUMN_FROM(rows, graph_node),
        [OCC_COLUMN_range] = {ranges ? &rows->range : NULL, sizeof *rows, sizeof rows->range},
    };
    return occ_columns_encode(encoder, sources, c->n, c->compress, ret_data, ret_bytes);
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

int occ_chunk_add(struct occ_store *s, const struct occ_chunk *c, struct occ_error *err)
{
    const uint8_t *data = NULL;
    size_t bytes = 0;
    int rc = add_row(s, c, err);
    if (rc == 0 && encode(s->work->encoder, c, &data, &bytes) != 0)
        rc = occ_no_memory(err);
    if (rc != 0)
        return rc;
    int64_t id = sqlite3_last_insert_rowid(s->db);
    struct occ_binder b = occ_store_statement(s, OCC_SQL_ADD_CHUNK_DATA);
    occ_bind_int(&b, id);
    occ_bind_blob(&b, data, bytes);
    return occ_store_run(s, b.stmt, err);
}
