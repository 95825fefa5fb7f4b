/* See attribution_physics.h. Large grids are simulated on a subset of the SMs, with the same number of blocks
 * per SM. */
#include "attribution_physics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribution_random.h"

#define BLOCKS_MAX 600
#define SMS_MIN    6
#define SLOTS_MAX  (SMS_MAX * 32)
#define SMS_MAX    256

struct slot {
    double free_at;
    uint32_t sm;
};

struct block {
    double from, full_until, to;
};

struct simulation {
    struct slot heap[SLOTS_MAX];
    uint32_t n_slots, n_blocks, n_sms, resident[SMS_MAX];
    double first[SMS_MAX], last[SMS_MAX], end;
    struct block blocks[SLOTS_MAX];
};

static void sift_down(struct slot *heap, uint32_t n)
{
    struct slot item = heap[0];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1].free_at < heap[child].free_at)
            child++;
        if (heap[child].free_at >= item.free_at)
            break;
        heap[at] = heap[child];
    }
    heap[at] = item;
}

/* Chooses the number of simulated SMs and blocks. */
static void choose_size(const struct physics_kernel *k, uint64_t *random, struct simulation *s)
{
    double part = fmin(1, (double)BLOCKS_MAX / k->grid_blocks);
    s->n_sms = (uint32_t)fmin(fmax(ceil(k->sms * part), fmin(SMS_MIN, k->sms)), SMS_MAX);
    double blocks = (double)k->grid_blocks * s->n_sms / k->sms;
    uint32_t waves_max = BLOCKS_MAX / (s->n_sms * k->blocks_per_sm) + 4;
    double blocks_max = fmin((double)s->n_sms * k->blocks_per_sm * waves_max, SLOTS_MAX);
    if (blocks > blocks_max) /* too many waves: keep the fill of the last wave */
        blocks = blocks_max - s->n_sms + fmod(blocks, s->n_sms);
    s->n_blocks = (uint32_t)fmax(floor(blocks + random_uniform(random)), 1);
    s->n_slots = (uint32_t)fmin((double)s->n_sms * k->blocks_per_sm, SLOTS_MAX);
}

static void place_blocks(const struct physics_kernel *k, uint64_t *random, struct simulation *s)
{
    uint32_t n_first = s->n_blocks < s->n_slots ? s->n_blocks : s->n_slots;
    uint32_t n_last = (s->n_blocks - n_first) % s->n_slots; /* blocks of a partial last wave */
    for (uint32_t i = 0; i < s->n_slots; i++)               /* first one block on each SM, then the second */
        s->heap[i] = (struct slot){fmax(k->ramp, 1e-12) * i / s->n_slots, i % s->n_sms};
    for (uint32_t i = 0; i < s->n_sms; i++) {
        s->first[i] = INFINITY;
        s->last[i] = 0;
        s->resident[i] = n_first / s->n_sms + (i < n_first % s->n_sms);
    }
    s->end = 0;
    for (uint32_t i = 0; i < s->n_blocks; i++) {
        struct slot *slot = &s->heap[0];
        uint32_t beside = s->resident[slot->sm];
        if (i >= s->n_blocks - n_last)
            beside = (n_last + s->n_sms - 1) / s->n_sms;
        double share = fmin((double)beside / k->blocks_per_sm, 1);
        double length = random_lognormal(random, k->block_spread) * pow(share, k->contention);
        double from = slot->free_at;
        s->blocks[i] =
            (struct block){from, from + length * (1 - k->early * random_uniform(random)), from + length};
        s->first[slot->sm] = fmin(s->first[slot->sm], from);
        s->last[slot->sm] = fmax(s->last[slot->sm], from + length);
        s->end = fmax(s->end, from + length);
        slot->free_at = from + length;
        sift_down(s->heap, s->n_slots);
    }
}

/* Adds `level` over [from, to), in units of bins: partial bins to `bins`, whole bins as steps to `steps`. */
static void add_interval(double *bins, double *steps, double from, double to, double level)
{
    uint32_t first = (uint32_t)fmin(from, PHYSICS_BINS - 1), last = (uint32_t)fmin(to, PHYSICS_BINS - 1);
    if (first == last) {
        bins[first] += (to - from) * level;
        return;
    }
    bins[first] += (first + 1 - from) * level;
    bins[last] += (to - last) * level;
    steps[first + 1] += level;
    steps[last] -= level;
}

static void integrate(const double *bins, const double *steps, double scale, double *until)
{
    double level = 0;
    until[0] = 0;
    for (uint32_t i = 0; i < PHYSICS_BINS; i++) {
        level += steps[i];
        until[i + 1] = until[i] + (bins[i] + level) * scale / PHYSICS_BINS;
    }
}

void physics_make_profile(const struct physics_kernel *k, uint64_t *random,
                          struct physics_profile *ret_profile)
{
    struct simulation *s = malloc(sizeof *s);
    double bins[2][PHYSICS_BINS] = {{0}}, steps[2][PHYSICS_BINS + 1] = {{0}};
    if (!s)
        abort();
    memset(ret_profile->started, 0, sizeof ret_profile->started);
    choose_size(k, random, s);
    place_blocks(k, random, s);
    double to_bins = PHYSICS_BINS / s->end;
    for (uint32_t i = 0; i < s->n_blocks; i++) {
        const struct block *b = &s->blocks[i];
        add_interval(bins[0], steps[0], b->from * to_bins, b->full_until * to_bins, 0.5);
        add_interval(bins[0], steps[0], b->from * to_bins, b->to * to_bins, 0.5);
    }
    for (uint32_t i = 0; i < s->n_blocks; i++)
        ret_profile->started[1 + (uint32_t)fmin(s->blocks[i].from * to_bins, PHYSICS_BINS - 1)] +=
            1.0 / s->n_blocks;
    for (uint32_t i = 0; i < PHYSICS_BINS; i++)
        ret_profile->started[i + 1] += ret_profile->started[i];
    double active_min = 1, active_max = 0;
    for (uint32_t i = 0; i < s->n_sms; i++) {
        double active = s->last[i] > 0 ? (s->last[i] - s->first[i]) / s->end : 0;
        active_min = fmin(active_min, active);
        active_max = fmax(active_max, active);
        if (active > 0)
            add_interval(bins[1], steps[1], s->first[i] * to_bins, s->last[i] * to_bins, 1);
    }
    integrate(bins[0], steps[0], (double)k->warps_per_block / (s->n_sms * (double)k->warps_per_sm),
              ret_profile->warps);
    integrate(bins[1], steps[1], 1.0 / s->n_sms, ret_profile->active);
    ret_profile->active_min = active_min;
    ret_profile->active_max = active_max;
    free(s);
}

double physics_until(const double *until, double u)
{
    double at = u * PHYSICS_BINS;
    if (at <= 0)
        return 0;
    if (at >= PHYSICS_BINS)
        return until[PHYSICS_BINS];
    uint32_t bin = (uint32_t)at;
    return until[bin] + (at - bin) * (until[bin + 1] - until[bin]);
}

/* ---- busy units ---- */

/* Computes the units' use in one bin. A scheduler issues if at least one of its warps is ready: more warps or
 * a shorter latency make an idle scheduler less likely. If a unit's demand exceeds 93 % of its peak, all
 * rates drop in proportion. */
static void fill_bin(const double demand[PHYSICS_UNITS], double warps, double active, double latency,
                     double ret_busy[PHYSICS_UNITS])
{
    double issued = active > 0 ? (1 - exp(-warps / (active * latency))) * active : 0, most = 0;
    for (int i = 0; i < PHYSICS_UNITS; i++)
        most = fmax(most, issued * demand[i]);
    for (int i = 0; i < PHYSICS_UNITS; i++)
        ret_busy[i] = issued * demand[i] * fmin(1, 0.93 / fmax(most, 1e-9));
}

void physics_make_busy(const struct physics_kernel *k, const struct physics_profile *p, double level,
                       uint64_t *random, struct physics_busy *ret)
{
    double demand[PHYSICS_UNITS] = {1}, latency = random_between(random, 2, 30), busy[PHYSICS_UNITS];
    double slope = random_between(random, -0.6, 0.6);
    for (int i = 1; i < PHYSICS_UNITS; i++)
        demand[i] = random_uniform(random) < 0.3 ? 0.02 : random_between(random, 0, 2);
    for (int i = 0; i < PHYSICS_UNITS; i++)
        ret->until[i][0] = 0;
    for (uint32_t bin = 0; bin < PHYSICS_BINS; bin++) {
        double now[PHYSICS_UNITS], u = (bin + 0.5) / PHYSICS_BINS;
        double warps = (p->warps[bin + 1] - p->warps[bin]) * PHYSICS_BINS * level * k->warps_per_sm / 4;
        for (int i = 0; i < PHYSICS_UNITS; i++)
            now[i] = demand[i] * (i == 1 || i == 2 ? 1 + slope * (1 - 2 * u) : 1);
        fill_bin(now, warps, (p->active[bin + 1] - p->active[bin]) * PHYSICS_BINS, latency, busy);
        for (int i = 0; i < PHYSICS_UNITS; i++)
            ret->until[i][bin + 1] = ret->until[i][bin] + busy[i] / PHYSICS_BINS;
    }
}
