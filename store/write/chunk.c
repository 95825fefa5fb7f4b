/* Launches and their totals as packed columns (store/codec/columns.h). */
#include <stdlib.h>

#include "store/internal.h"

struct total {
    uint64_t config, launches, total_ns, min_ns, max_ns;
};

int occ_chunk_encode(struct occ_columns_encoder *encoder, const struct occ_store_launch *rows, uint32_t n,
                     bool compress, const uint8_t **ret_data, size_t *ret_bytes)
{
    const struct occ_column_source sources[OCC_COLUMN_none] = {
        [OCC_COLUMN_config] = OCC_COLUMN_FROM(rows, config),
        [OCC_COLUMN_duration_ns] = OCC_COLUMN_FROM(rows, duration_ns),
        [OCC_COLUMN_stream] = OCC_COLUMN_FROM(rows, stream),
        [OCC_COLUMN_start_ns] = OCC_COLUMN_FROM(rows, start_ns),
        [OCC_COLUMN_correlation] = OCC_COLUMN_FROM(rows, correlation),
        [OCC_COLUMN_context] = OCC_COLUMN_FROM(rows, context),
        [OCC_COLUMN_graph_node] = OCC_COLUMN_FROM(rows, graph_node),
    };
    return occ_columns_encode(encoder, sources, n, compress, ret_data, ret_bytes);
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

int occ_chunk_encode_totals(struct occ_columns_encoder *encoder, const struct occ_store_launch *rows,
                            uint32_t n, const uint8_t **ret_data, size_t *ret_bytes)
{
    struct occ_map index = {0};
    struct total *totals = malloc(n * sizeof *totals); /* few are touched */
    if (!totals)
        return OCC_E_NO_MEMORY;
    const struct occ_column_source sources[OCC_COLUMN_none] = {
        [OCC_COLUMN_config] = OCC_COLUMN_FROM(totals, config),
        [OCC_COLUMN_launches] = OCC_COLUMN_FROM(totals, launches),
        [OCC_COLUMN_total_ns] = OCC_COLUMN_FROM(totals, total_ns),
        [OCC_COLUMN_min_ns] = OCC_COLUMN_FROM(totals, min_ns),
        [OCC_COLUMN_max_ns] = OCC_COLUMN_FROM(totals, max_ns),
    };
    int rc = occ_map_reset(&index, 128) && add_up(rows, n, &index, totals)
                 ? occ_columns_encode(encoder, sources, index.used, true, ret_data, ret_bytes)
                 : OCC_E_NO_MEMORY;
    occ_map_free(&index);
    free(totals);
    return rc;
}
