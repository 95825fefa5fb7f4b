/* See held.h. */
#include "held.h"

#include <stdlib.h>

#include "cleanup.h"
#include "error.h"

struct edge {
    int64_t gpu, time;
    size_t holder;
    bool is_start;
};

static int by_gpu_and_time(const void *left, const void *right)
{
    const struct edge *a = left, *b = right;
    return a->gpu != b->gpu ? (a->gpu > b->gpu) - (a->gpu < b->gpu)
                            : (a->time > b->time) - (a->time < b->time);
}

/* Lists both edges of all holders that share their GPU; sets the time of the others. */
static size_t list_edges(struct occ_holder *holders, size_t n, struct edge *edges)
{
    size_t n_edges = 0;
    for (size_t i = 0; i < n; i++) {
        struct occ_holder *h = &holders[i];
        h->held_s = h->last_ns > h->first_ns ? (double)(h->last_ns - h->first_ns) * 1e-9 : 0;
        if (h->is_alone || !(h->held_s > 0))
            continue;
        h->held_s = 0;
        edges[n_edges++] = (struct edge){h->gpu, h->first_ns, i, true};
        edges[n_edges++] = (struct edge){h->gpu, h->last_ns, i, false};
    }
    return n_edges;
}

int occ_held_divide(struct occ_holder *holders, size_t n)
{
    _cleanup_(occ_freep) struct edge *edges = calloc(2 * n + 1, sizeof *edges);
    double each_s = 0; /* the time of a run that holds the GPU since its first edge */
    size_t active = 0;
    if (!edges)
        return OCC_E_NO_MEMORY;
    size_t n_edges = list_edges(holders, n, edges);
    if (n_edges > 1)
        qsort(edges, n_edges, sizeof *edges, by_gpu_and_time);
    for (size_t i = 0; i < n_edges; i++) {
        const struct edge *e = &edges[i];
        if (active == 0)
            each_s = 0;
        else
            each_s += (double)(e->time - edges[i - 1].time) * 1e-9 / (double)active;
        holders[e->holder].held_s += e->is_start ? -each_s : each_s;
        active = e->is_start ? active + 1 : active - 1;
    }
    return 0;
}
