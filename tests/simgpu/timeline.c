/*
 * The block scheduler. See timeline.h.
 *
 * The device's load is a list of segments {start, end, share}, ordered by end. A launch adds a segment for its full
 * waves, one for the partial last wave, and more only where it met others. Every look-up starts at the list's end
 * and stops at the first segment that ended in time, so that a stream of launches costs a few steps each.
 */
#include "timeline.h"

#include <stdlib.h>
#include <string.h>

#define NEVER       UINT64_MAX
#define SHARE_SLACK 1e-6  /* of a block: what rounding may take away */
#define HEAP_BLOCKS 65536 /* launches with more unequal blocks are computed from their mean */
#define HEAP_SLOTS  8192

struct segment {
    uint64_t start_ns, end_ns;
    double share;
};

struct sim_timeline {
    struct segment *segments; /* by end_ns */
    size_t first, count, room;
};

struct sim_timeline *sim_timeline_new(void)
{
    return calloc(1, sizeof(struct sim_timeline));
}

void sim_timeline_free(struct sim_timeline *timeline)
{
    if (timeline)
        free(timeline->segments);
    free(timeline);
}

static void forget_before(struct sim_timeline *timeline, uint64_t now_ns)
{
    while (timeline->first < timeline->count && timeline->segments[timeline->first].end_ns <= now_ns)
        timeline->first++;
    if (!timeline->first || timeline->first < timeline->count / 2)
        return;
    timeline->count -= timeline->first;
    memmove(timeline->segments, timeline->segments + timeline->first,
            timeline->count * sizeof *timeline->segments);
    timeline->first = 0;
}

static bool make_room(struct sim_timeline *timeline)
{
    if (timeline->count < timeline->room)
        return true;
    size_t room = timeline->room ? timeline->room * 2 : 64;
    struct segment *segments = realloc(timeline->segments, room * sizeof *segments);
    if (!segments)
        return false;
    timeline->segments = segments;
    timeline->room = room;
    return true;
}

static bool add_segment(struct sim_timeline *timeline, uint64_t start_ns, uint64_t end_ns, double share)
{
    if (!make_room(timeline))
        return false;
    size_t at = timeline->count++;
    for (; at > timeline->first && timeline->segments[at - 1].end_ns > end_ns; at--)
        timeline->segments[at] = timeline->segments[at - 1];
    timeline->segments[at] = (struct segment){start_ns, end_ns, share};
    return true;
}

double sim_timeline_share(const struct sim_timeline *timeline, uint64_t at_ns)
{
    double share = 0;
    for (size_t i = timeline->count; i > timeline->first; i--) {
        const struct segment *s = &timeline->segments[i - 1];
        if (s->end_ns <= at_ns)
            break;
        if (s->start_ns <= at_ns)
            share += s->share;
    }
    return share;
}

/* The largest share in use at any time of [from, to): it can only rise where a segment starts. */
static double peak_share(const struct sim_timeline *timeline, uint64_t from_ns, uint64_t to_ns)
{
    double peak = sim_timeline_share(timeline, from_ns);
    for (size_t i = timeline->count; i > timeline->first; i--) {
        const struct segment *s = &timeline->segments[i - 1];
        if (s->end_ns <= from_ns)
            break;
        if (s->start_ns > from_ns && s->start_ns < to_ns) {
            double share = sim_timeline_share(timeline, s->start_ns);
            peak = share > peak ? share : peak;
        }
    }
    return peak;
}

/* When the load changes next after `at_ns`. */
static uint64_t next_change(const struct sim_timeline *timeline, uint64_t at_ns)
{
    uint64_t next = NEVER;
    for (size_t i = timeline->count; i > timeline->first; i--) {
        const struct segment *s = &timeline->segments[i - 1];
        if (s->end_ns <= at_ns)
            break;
        uint64_t change = s->start_ns > at_ns ? s->start_ns : s->end_ns;
        next = change < next ? change : next;
    }
    return next;
}

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* Waves of `slots` blocks that run from `at_ns` before the load changes; at least one. */
static uint64_t waves_until(uint64_t at_ns, uint64_t change_ns, uint64_t wave_ns, uint64_t wanted)
{
    if (change_ns == NEVER)
        return wanted;
    uint64_t fit = (change_ns - at_ns) / wave_ns;
    fit = fit ? fit : 1;
    return fit < wanted ? fit : wanted;
}

/* ---- unequal blocks ---- */

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

static uint64_t block_duration(const struct sim_work *work, uint64_t block)
{
    double unit = (double)(mix(work->seed + block) >> 11) / 9007199254740992.0; /* 2^53 */
    double ns = (double)work->block_ns * (1 + work->imbalance * (2 * unit - 1));
    return ns < 1 ? 1 : (uint64_t)ns;
}

static void sift_down(uint64_t *heap, size_t count, size_t at)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child + 1] < heap[child])
            child++;
        if (heap[at] <= heap[child])
            return;
        uint64_t swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
    }
}

/* How long the unequal blocks take when each goes to the slot that is free first, and their sum. */
static uint64_t unequal_span(const struct sim_work *work, double *ret_total)
{
    uint64_t waves = divide_up(work->blocks, work->wave_blocks), last = 0;
    *ret_total = (double)work->block_ns * (double)work->blocks;
    if (work->blocks > HEAP_BLOCKS || work->wave_blocks > HEAP_SLOTS)
        return waves * work->block_ns + (uint64_t)((double)work->block_ns * work->imbalance);
    uint64_t free_at[HEAP_SLOTS] = {0};
    size_t slots = (size_t)(work->blocks < work->wave_blocks ? work->blocks : work->wave_blocks);
    *ret_total = 0;
    for (uint64_t block = 0; block < work->blocks; block++) {
        uint64_t ns = block_duration(work, block);
        free_at[0] += ns;
        last = free_at[0] > last ? free_at[0] : last;
        *ret_total += (double)ns;
        sift_down(free_at, slots, 0);
    }
    return last;
}

/* ---- placing ---- */

/* Adds `waves` waves of `slots` blocks from `at_ns`; the last one may hold fewer. */
static bool add_waves(struct sim_timeline *timeline, const struct sim_work *work, uint64_t at_ns,
                      uint64_t wave_ns, uint64_t waves, uint64_t slots, uint64_t remaining)
{
    uint64_t full = remaining / slots < waves ? remaining / slots : waves;
    double capacity = (double)work->wave_blocks;
    if (full && !add_segment(timeline, at_ns, at_ns + full * wave_ns, (double)slots / capacity))
        return false;
    if (full == waves)
        return true;
    return add_segment(timeline, at_ns + full * wave_ns, at_ns + waves * wave_ns,
                       (double)(remaining - full * slots) / capacity);
}

bool sim_timeline_place(struct sim_timeline *timeline, uint64_t now_ns, const struct sim_work *work,
                        struct sim_placement *ret)
{
    forget_before(timeline, now_ns);
    uint64_t remaining = work->blocks, at = work->ready_ns, wave_ns = work->block_ns;
    struct sim_placement placed = {.block_ns_total = (double)work->block_ns * (double)work->blocks};
    if (work->imbalance > 0)
        wave_ns =
            divide_up(unequal_span(work, &placed.block_ns_total), divide_up(work->blocks, work->wave_blocks));
    while (remaining) {
        double free = 1 - peak_share(timeline, at, at + wave_ns);
        uint64_t slots = free <= 0 ? 0 : (uint64_t)(free * (double)work->wave_blocks + SHARE_SLACK);
        uint64_t change = next_change(timeline, at);
        if (!slots) {
            at = change;
            continue;
        }
        uint64_t waves = waves_until(at, change, wave_ns, divide_up(remaining, slots));
        if (!add_waves(timeline, work, at, wave_ns, waves, slots, remaining))
            return false;
        if (!placed.start_ns)
            placed.start_ns = at;
        remaining -= waves * slots < remaining ? waves * slots : remaining;
        at += waves * wave_ns;
    }
    placed.end_ns = at;
    *ret = placed;
    return true;
}
