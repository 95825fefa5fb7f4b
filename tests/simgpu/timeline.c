/*
 * The block scheduler. See timeline.h.
 *
 * The device's load is a step function: a list of {time, share of the device in use from then on}, ordered by time,
 * the last share 0. Placing a launch is one walk over the steps from the time when it is ready; most launches come
 * when everything before them ends, at the end of the list. Shares are only ever added to, so that none drifts.
 */
#include "timeline.h"

#include <stdlib.h>
#include <string.h>

#define NEVER       UINT64_MAX
#define SHARE_SLACK 1e-6  /* of a block: what rounding may take away */
#define HEAP_BLOCKS 65536 /* launches with more unequal blocks are computed from their mean */
#define HEAP_SLOTS  8192

struct step {
    uint64_t at_ns;
    double share;
};

struct sim_timeline {
    struct step *steps; /* [first, count) by at_ns */
    size_t first, count, room;
};

struct sim_timeline *sim_timeline_new(void)
{
    return calloc(1, sizeof(struct sim_timeline));
}

void sim_timeline_free(struct sim_timeline *timeline)
{
    if (timeline)
        free(timeline->steps);
    free(timeline);
}

static void forget_before(struct sim_timeline *timeline, uint64_t now_ns)
{
    while (timeline->first + 1 < timeline->count && timeline->steps[timeline->first + 1].at_ns <= now_ns)
        timeline->first++;
    if (!timeline->first || timeline->first < timeline->count / 2)
        return;
    timeline->count -= timeline->first;
    memmove(timeline->steps, timeline->steps + timeline->first, timeline->count * sizeof *timeline->steps);
    timeline->first = 0;
}

/* The first step after `at_ns`. */
static size_t step_after(const struct sim_timeline *timeline, uint64_t at_ns)
{
    size_t low = timeline->first, high = timeline->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (timeline->steps[middle].at_ns <= at_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static double share_before(const struct sim_timeline *timeline, size_t step)
{
    return step > timeline->first ? timeline->steps[step - 1].share : 0;
}

double sim_timeline_share(const struct sim_timeline *timeline, uint64_t at_ns)
{
    return share_before(timeline, step_after(timeline, at_ns));
}

/* The largest share in use at any time of [from, to). */
static double peak_share(const struct sim_timeline *timeline, uint64_t from_ns, uint64_t to_ns)
{
    size_t i = step_after(timeline, from_ns);
    double peak = share_before(timeline, i);
    for (; i < timeline->count && timeline->steps[i].at_ns < to_ns; i++)
        peak = timeline->steps[i].share > peak ? timeline->steps[i].share : peak;
    return peak;
}

/* When the load changes next after `at_ns`. */
static uint64_t next_change(const struct sim_timeline *timeline, uint64_t at_ns)
{
    size_t i = step_after(timeline, at_ns);
    return i < timeline->count ? timeline->steps[i].at_ns : NEVER;
}

static bool make_room(struct sim_timeline *timeline)
{
    if (timeline->count + 2 <= timeline->room)
        return true;
    size_t room = timeline->room ? timeline->room * 2 : 64;
    struct step *steps = realloc(timeline->steps, room * sizeof *steps);
    if (!steps)
        return false;
    timeline->steps = steps;
    timeline->room = room;
    return true;
}

/* The index of a step at exactly `at_ns`; made if there is none. There is room. */
static size_t split_at(struct sim_timeline *timeline, uint64_t at_ns)
{
    size_t i = step_after(timeline, at_ns);
    if (i > timeline->first && timeline->steps[i - 1].at_ns == at_ns)
        return i - 1;
    double share = share_before(timeline, i);
    memmove(timeline->steps + i + 1, timeline->steps + i, (timeline->count - i) * sizeof *timeline->steps);
    timeline->steps[i] = (struct step){at_ns, share};
    timeline->count++;
    return i;
}

static bool add_load(struct sim_timeline *timeline, uint64_t start_ns, uint64_t end_ns, double share)
{
    if (!make_room(timeline))
        return false;
    size_t from = split_at(timeline, start_ns), to = split_at(timeline, end_ns);
    for (size_t i = from; i < to; i++)
        timeline->steps[i].share += share;
    return true;
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
    if (full && !add_load(timeline, at_ns, at_ns + full * wave_ns, (double)slots / capacity))
        return false;
    if (full == waves)
        return true;
    return add_load(timeline, at_ns + full * wave_ns, at_ns + waves * wave_ns,
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
