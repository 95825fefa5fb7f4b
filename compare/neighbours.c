/* See neighbours.h. Any thread. */
#include "neighbours.h"

#include <stdlib.h>

#include "support/array.h"

static struct diff_waiting *waiting_on(struct diff_neighbours *neighbours, uint64_t stream)
{
    uint32_t at = occ_map_get(&neighbours->streams, stream);
    if (at != OCC_MAP_NONE)
        return &neighbours->all[at];
    if (!occ_grow((void **)&neighbours->all, &neighbours->allocated, neighbours->n, UINT32_MAX,
                  sizeof *neighbours->all) ||
        occ_map_put(&neighbours->streams, stream, (uint32_t)neighbours->n) == OCC_MAP_NONE)
        return NULL;
    neighbours->all[neighbours->n] = (struct diff_waiting){.before = DIFF_NO_PAIR};
    return &neighbours->all[neighbours->n++];
}

int diff_neighbours_add(struct diff_neighbours *neighbours, uint64_t stream, uint32_t item)
{
    struct diff_waiting *waiting = waiting_on(neighbours, stream);
    uint32_t pair = neighbours->diff->items[item].pair;
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
        diff_add_neighbours(&neighbours->diff->items[waiting->items[i]], waiting->before, pair);
    *waiting = (struct diff_waiting){.before = pair};
    return 0;
}

void diff_neighbours_free(struct diff_neighbours *neighbours)
{
    occ_map_free(&neighbours->streams);
    free(neighbours->all);
}
