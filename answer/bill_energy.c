/* The energy of held time: each moment's power is divided among the runs that hold the GPU, as the moment is
 * (support/held.h); see bill_state.h. One thread. */
#include <math.h>
#include <stdlib.h>

#include "bill_state.h"
#include "support/cleanup.h"

/* Start or end of a run on a GPU. */
struct edge {
    int64_t gpu, time_ns;
    size_t holder;
    bool is_start;
};

/* A GPU whose energies come in order of time. */
struct meter {
    int64_t gpu, time_ns;        /* all before time_ns is divided */
    size_t at, end;              /* its edges from time_ns on */
    size_t active;               /* runs that hold the GPU at time_ns */
    struct occ_bill_energy each; /* of a run that has held the GPU since the first edge */
};

struct division {
    struct occ_bill_energy *energies; /* of each holder */
    struct edge *edges;               /* ordered by GPU and time */
    size_t n_edges;
    struct meter *meters; /* ordered by GPU */
    size_t n_meters;
};

static int by_gpu_and_time(const void *left, const void *right)
{
    const struct edge *a = left, *b = right;
    return a->gpu != b->gpu ? (a->gpu > b->gpu) - (a->gpu < b->gpu)
                            : (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static void list_edges(const struct occ_bill_work *w, struct division *d)
{
    for (size_t i = 0; i < w->estimates.n; i++) {
        const struct occ_holder *h = &w->holders[i];
        if (h->is_alone || !(h->held_s > 0))
            continue;
        d->edges[d->n_edges++] = (struct edge){h->gpu, h->first_ns, i, true};
        d->edges[d->n_edges++] = (struct edge){h->gpu, h->last_ns, i, false};
    }
    if (d->n_edges > 1)
        qsort(d->edges, d->n_edges, sizeof *d->edges, by_gpu_and_time);
    for (size_t i = 0; i < d->n_edges; i++) {
        if (i == 0 || d->edges[i].gpu != d->edges[i - 1].gpu)
            d->meters[d->n_meters++] = (struct meter){.gpu = d->edges[i].gpu, .at = i};
        d->meters[d->n_meters - 1].end = i + 1;
    }
}

/* Goes on to `until_ns` at this power; NaN: unknown. */
static void pass(struct meter *m, int64_t until_ns, double watts)
{
    double seconds = (double)(until_ns - m->time_ns) * 1e-9;
    if (m->active > 0 && seconds > 0 && isfinite(watts)) {
        m->each.joules += watts * seconds / (double)m->active;
        m->each.seconds += seconds / (double)m->active;
    }
    if (until_ns > m->time_ns)
        m->time_ns = until_ns;
}

static void advance(struct division *d, struct meter *m, int64_t until_ns, double watts)
{
    for (; m->at < m->end && d->edges[m->at].time_ns <= until_ns; m->at++) {
        const struct edge *edge = &d->edges[m->at];
        struct occ_bill_energy *energy = &d->energies[edge->holder];
        double sign = edge->is_start ? -1 : 1;
        pass(m, edge->time_ns, watts);
        energy->joules += sign * m->each.joules;
        energy->seconds += sign * m->each.seconds;
        m->active = edge->is_start ? m->active + 1 : m->active - 1;
    }
    pass(m, until_ns, watts);
}

static int by_gpu(const void *left, const void *right)
{
    const struct meter *a = left, *b = right;
    return (a->gpu > b->gpu) - (a->gpu < b->gpu);
}

static int take(void *context, const struct occ_device_energy *energy)
{
    struct division *d = context;
    const struct meter key = {.gpu = energy->device};
    struct meter *m = bsearch(&key, d->meters, d->n_meters, sizeof *m, by_gpu);
    int64_t end_ns = (energy->second + 1) * INT64_C(1000000000), from_ns = end_ns - energy->length_ns;
    if (!m)
        return 0;
    advance(d, m, from_ns > 0 ? from_ns : 0, (double)NAN);
    advance(d, m, end_ns, (double)energy->mj * 1e6 / (double)energy->length_ns);
    return 0;
}

int occ_bill_divide_energy(struct occ_bill_work *w)
{
    _cleanup_(occ_freep) struct edge *edges = calloc(2 * w->estimates.n + 1, sizeof *edges);
    _cleanup_(occ_freep) struct meter *meters = calloc(w->estimates.n + 1, sizeof *meters);
    w->energies = calloc(w->estimates.n + 1, sizeof *w->energies);
    struct division d = {.energies = w->energies, .edges = edges, .meters = meters};
    int64_t first_ns = INT64_MAX, last_ns = 0;
    if (!edges || !meters || !w->energies)
        return occ_no_memory(w->err);
    list_edges(w, &d);
    for (size_t i = 0; i < d.n_edges; i++) {
        first_ns = edges[i].time_ns < first_ns ? edges[i].time_ns : first_ns;
        last_ns = edges[i].time_ns > last_ns ? edges[i].time_ns : last_ns;
    }
    int rc = d.n_edges > 0 ? occ_store_each_energy(w->store, first_ns, last_ns, take, &d, w->err) : 0;
    for (size_t i = 0; i < d.n_meters; i++)
        advance(&d, &meters[i], INT64_MAX, (double)NAN);
    return rc;
}
