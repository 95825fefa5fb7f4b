/* See launch_queue.h. */
#include "launch_queue.h"

#include <stdlib.h>
#include <string.h>

#include "support/array.h"

bool occ_launch_queue_add(struct occ_launch_queue *q, const struct occ_attribution_launch *launch, size_t max)
{
    if (!occ_grow((void **)&q->items, &q->allocated, q->n, max, sizeof *q->items))
        return false;
    q->items[q->n++] = *launch;
    return true;
}

static int by_start(const void *a, const void *b)
{
    int64_t x = ((const struct occ_attribution_launch *)a)->start_ns,
            y = ((const struct occ_attribution_launch *)b)->start_ns;
    return (x > y) - (x < y);
}

size_t occ_launch_queue_merge(struct occ_launch_queue *q, struct occ_launch_queue *more, size_t max)
{
    size_t n = more->n, old = q->n;
    if (n == 0)
        return 0;
    while (q->allocated < old + n &&
           occ_grow((void **)&q->items, &q->allocated, q->allocated, max, sizeof *q->items))
        ;
    qsort(more->items, n, sizeof *more->items, by_start);
    size_t left = n < q->allocated - old ? n : q->allocated - old, dropped = n - left;
    q->n = old + left;
    for (size_t at = q->n; left > 0;) {
        bool is_old = old > 0 && q->items[old - 1].start_ns > more->items[left - 1].start_ns;
        q->items[--at] = is_old ? q->items[--old] : more->items[--left];
    }
    more->n = 0;
    return dropped;
}

void occ_launch_queue_remove(struct occ_launch_queue *q, size_t n)
{
    if (n == 0)
        return;
    q->n -= n;
    memmove(q->items, q->items + n, q->n * sizeof *q->items);
}
