/* See places.h. Any thread. */
#include "places.h"

#include <stdlib.h>

#include "support/array.h"

static struct diff_waiting *waiting_on(struct diff_places *places, uint64_t stream)
{
    uint32_t at = occ_map_get(&places->streams, stream);
    if (at != OCC_MAP_NONE)
        return &places->all[at];
    if (!occ_grow((void **)&places->all, &places->allocated, places->n, UINT32_MAX, sizeof *places->all) ||
        occ_map_put(&places->streams, stream, (uint32_t)places->n) == OCC_MAP_NONE)
        return NULL;
    places->all[places->n] = (struct diff_waiting){.before = DIFF_NO_PAIR};
    return &places->all[places->n++];
}

int diff_places_add(struct diff_places *places, uint64_t stream, uint32_t item)
{
    struct diff_waiting *waiting = waiting_on(places, stream);
    uint32_t pair = places->diff->items[item].pair;
    if (!waiting)
        return OCC_E_NO_MEMORY;
    if (pair == DIFF_NO_PAIR) {
        bool is_waiting = false;
        for (uint32_t i = 0; i < waiting->n; i++)
            is_waiting |= waiting->items[i] == item;
        if (!is_waiting && waiting->n < DIFF_WAITING_MAX)
            waiting->items[waiting->n++] = item;
        return 0;
    }
    for (uint32_t i = 0; i < waiting->n; i++)
        diff_add_neighbours(&places->diff->items[waiting->items[i]], waiting->before, pair);
    *waiting = (struct diff_waiting){.before = pair};
    return 0;
}

void diff_places_free(struct diff_places *places)
{
    occ_map_free(&places->streams);
    free(places->all);
}
