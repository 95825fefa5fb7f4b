/* Tables of totals: memory and removal. Addition is inline in totals.h. No globals. */
#include "totals.h"

#include <stdlib.h>

#include "support/array.h"

void occ_totals_table_free(struct occ_totals_table *table)
{
    for (uint32_t i = 0; i < table->n; i++)
        occ_histogram_free(&table->entries[i].histogram);
    free(table->entries);
    occ_map_free(&table->map);
    *table = (struct occ_totals_table){0};
}

struct occ_totals *occ_totals_at(struct occ_totals_table *table, uint64_t key)
{
    if (!occ_grow((void **)&table->entries, &table->allocated, table->n, UINT32_MAX, sizeof *table->entries))
        return NULL;
    uint32_t at = occ_map_put(&table->map, key, table->n);
    if (at == OCC_MAP_NONE)
        return NULL;
    if (at == table->n)
        table->entries[table->n++] = (struct occ_totals){
            .key = key, .min_ns = UINT64_MAX, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
    return &table->entries[at];
}

void occ_totals_remove(struct occ_totals_table *table, uint64_t first_key)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < table->n; i++) {
        if (table->entries[i].key < first_key)
            occ_histogram_free(&table->entries[i].histogram);
        else
            table->entries[kept++] = table->entries[i];
    }
    if (kept == table->n)
        return;
    table->n = kept;
    occ_map_clear(&table->map);
    for (uint32_t i = 0; i < kept; i++)
        (void)occ_map_put(&table->map, table->entries[i].key, i); /* fits: the map had more keys before */
}
