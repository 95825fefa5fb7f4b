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
    struct occ_bill_energy each; /* energy of a run that has held the GPU since the first edge */
};

struct division {
    struct occ_bill_energy *energies; /* energies of the holders */
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
    for (size_t i = 0; i < w->n_holders; i++) {
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

static void take(struct division *d, int64_t gpu, const struct occ_device_energy *energy)
{
    const struct meter key = {.gpu = gpu};
    struct meter *m = d->n_meters ? bsearch(&key, d->meters, d->n_meters, sizeof *m, by_gpu) : NULL;
    int64_t end_ns = (energy->second + 1) * INT64_C(1000000000), from_ns = end_ns - energy->length_ns;
    if (!m)
        return;
    advance(d, m, from_ns > 0 ? from_ns : 0, (double)NAN);
    advance(d, m, end_ns, (double)energy->mj * 1e6 / (double)energy->length_ns);
}

/* The next energy of a history. */
struct feed {
    const struct occ_bill_side *side;
    struct occ_device_energy next;
    bool has_next;
};

static int pull(struct feed *feed, struct occ_error *err)
{
    int rc = occ_store_next_energy(feed->side->history->store, &feed->next, err);
    feed->has_next = rc > 0;
    return rc < 0 ? rc : 0;
}

/* Takes the energies of all histories in order of seconds. The copy of an energy in another history follows
 * at once, ends at the time until which the GPU's energy is divided, and so adds nothing. */
static int merge(struct division *d, struct feed *feeds, size_t n, struct occ_error *err)
{
    int rc = 0;
    while (rc == 0) {
        struct feed *first = NULL;
        for (size_t i = 0; i < n; i++)
            if (feeds[i].has_next && (!first || feeds[i].next.second < first->next.second))
                first = &feeds[i];
        if (!first)
            break;
        uint32_t gpu = occ_map_get(&first->side->gpus, (uint64_t)first->next.device);
        if (gpu != OCC_MAP_NONE)
            take(d, gpu, &first->next);
        rc = pull(first, err);
    }
    return rc;
}

/* Reads the energies from the first to the last edge. */
static int read_energies(const struct occ_bill_work *w, struct division *d)
{
    size_t n = w->question->n_histories;
    _cleanup_(occ_freep) struct feed *feeds = calloc(n + 1, sizeof *feeds);
    int64_t first_ns = INT64_MAX, last_ns = 0;
    int rc = 0;
    if (!feeds)
        return occ_no_memory(w->err);
    for (size_t i = 0; i < d->n_edges; i++) {
        first_ns = d->edges[i].time_ns < first_ns ? d->edges[i].time_ns : first_ns;
        last_ns = d->edges[i].time_ns > last_ns ? d->edges[i].time_ns : last_ns;
    }
    for (size_t i = 0; i < n && rc == 0; i++) {
        feeds[i].side = &w->sides[i];
        occ_store_begin_energies(w->sides[i].history->store, first_ns, last_ns);
        rc = pull(&feeds[i], w->err);
    }
    return rc == 0 ? merge(d, feeds, n, w->err) : rc;
}

int occ_bill_divide_energy(struct occ_bill_work *w)
{
    _cleanup_(occ_freep) struct edge *edges = calloc(2 * w->n_holders + 1, sizeof *edges);
    _cleanup_(occ_freep) struct meter *meters = calloc(w->n_holders + 1, sizeof *meters);
    struct division d = {.energies = w->energies, .edges = edges, .meters = meters};
    if (!edges || !meters)
        return occ_no_memory(w->err);
    list_edges(w, &d);
    int rc = d.n_edges > 0 ? read_energies(w, &d) : 0;
    for (size_t i = 0; i < d.n_meters; i++)
        advance(&d, &meters[i], INT64_MAX, (double)NAN);
    return rc;
}
