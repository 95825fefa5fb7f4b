/*
 * The block scheduler. See timeline.h.
 *
 * The device's load is a step function: a list of {time, share of the device in use from then on}, ordered by
 * time, with a last share of 0. Placing a launch walks over the steps from the time when the launch is ready;
 * most launches come after the end of everything placed before, at the end of the list. Shares are only
 * added, so that rounding errors do not accumulate.
 */
#include "timeline.h"

#include <stdlib.h>
#include <string.h>

#define NEVER       UINT64_MAX
#define SHARE_SLACK 1e-6  /* of a block: tolerance for rounding */
#define HEAP_BLOCKS 65536 /* launches with more unequal blocks are computed from their mean */
#define HEAP_SLOTS  8192
#define HEAD_BINS   8  /* steps of the first wave's starts over a ramp */
#define TAIL_BINS   32 /* steps of the ends of blocks out of step, in a launch's last stretch */

struct step {
    uint64_t at_ns;
    double share;
};

struct sim_timeline {
    struct step *steps; /* [first, count) by at_ns */
    size_t first, count, room;
    struct sim_stretch *stretches; /* of the last launch */
    size_t stretch_count, stretch_room;
};

struct sim_timeline *sim_timeline_new(void)
{
    return calloc(1, sizeof(struct sim_timeline));
}

void sim_timeline_free(struct sim_timeline *timeline)
{
    if (timeline) {
        free(timeline->steps);
        free(timeline->stretches);
    }
    free(timeline);
}

const struct sim_stretch *sim_timeline_stretches(const struct sim_timeline *timeline, size_t *ret_n)
{
    *ret_n = timeline->stretch_count;
    return timeline->stretches;
}

/* Adds a stretch; joins it with the previous one if they are equal. */
static bool add_stretch(struct sim_timeline *timeline, const struct sim_stretch *stretch)
{
    struct sim_stretch *last =
        timeline->stretch_count ? &timeline->stretches[timeline->stretch_count - 1] : NULL;
    if (stretch->start_ns >= stretch->end_ns)
        return true;
    if (last && last->end_ns == stretch->start_ns && last->blocks == stretch->blocks &&
        last->waiting == stretch->waiting && last->wave_ns == stretch->wave_ns) {
        last->end_ns = stretch->end_ns;
        return true;
    }
    if (timeline->stretch_count == timeline->stretch_room) {
        size_t room = timeline->stretch_room ? timeline->stretch_room * 2 : 64;
        struct sim_stretch *stretches = realloc(timeline->stretches, room * sizeof *stretches);
        if (!stretches)
            return false;
        timeline->stretches = stretches;
        timeline->stretch_room = room;
    }
    timeline->stretches[timeline->stretch_count++] = *stretch;
    return true;
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

/* Returns the first step after `at_ns`. */
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

/* Returns the largest share in use within [from, to). */
static double peak_share(const struct sim_timeline *timeline, uint64_t from_ns, uint64_t to_ns)
{
    size_t i = step_after(timeline, from_ns);
    double peak = share_before(timeline, i);
    for (; i < timeline->count && timeline->steps[i].at_ns < to_ns; i++)
        peak = timeline->steps[i].share > peak ? timeline->steps[i].share : peak;
    return peak;
}

/* Returns the time of the next change of the load after `at_ns`. */
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

/* Returns the index of the step at exactly `at_ns`; adds one if it is missing. There is room. */
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

/* Returns the number of waves that run from `at_ns` before the load changes; at least one. */
static uint64_t waves_until(uint64_t at_ns, uint64_t change_ns, uint64_t wave_ns, uint64_t wanted)
{
    if (change_ns == NEVER)
        return wanted;
    uint64_t fit = (change_ns - at_ns) / wave_ns;
    fit = fit ? fit : 1;
    return fit < wanted ? fit : wanted;
}

/* ---- blocks out of step: unequal ones, or started one after the other ---- */

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

/* The slots of a launch in use over its span, with times as parts of the span: rising until `head`, all until
 * `full`, then the slots of blocks that have not ended. */
struct shape {
    double head, full;
    double tail[TAIL_BINS];
    bool waits; /* blocks wait for slots until `full` */
};

/* Fills the tail: a slot is in use until its last block ends. Slots that end before the tail begins are not
 * in it. */
static void shape_tail(struct shape *shape, const uint64_t *free_at, size_t slots, uint64_t full_ns,
                       uint64_t span_ns)
{
    double bin_ns = (double)(span_ns - full_ns) / TAIL_BINS;
    shape->full = (double)full_ns / (double)span_ns;
    memset(shape->tail, 0, sizeof shape->tail);
    for (size_t i = 0; i < slots && bin_ns > 0; i++) {
        double bins = free_at[i] > full_ns ? (double)(free_at[i] - full_ns) / bin_ns : 0;
        for (size_t bin = 0; bin < TAIL_BINS && bins > (double)bin; bin++)
            shape->tail[bin] += (bins - (double)bin < 1 ? bins - (double)bin : 1) / (double)slots;
    }
}

static bool is_out_of_step(const struct sim_work *work)
{
    return work->imbalance > 0 || work->ramp_ns > 0;
}

/* Returns the span of the blocks if each starts on the first free slot; *ret_total: sum of their durations.
 */
static uint64_t span_out_of_step(const struct sim_work *work, double *ret_total, struct shape *shape)
{
    uint64_t waves = divide_up(work->blocks, work->wave_blocks), last = 0, last_start = 0;
    shape->waits = waves > 1;
    *ret_total = (double)work->block_ns * (double)work->blocks;
    if (work->blocks > HEAP_BLOCKS || work->wave_blocks > HEAP_SLOTS) {
        uint64_t span =
            waves * work->block_ns + (uint64_t)((double)work->block_ns * work->imbalance) + work->ramp_ns;
        shape->head = (double)work->ramp_ns / (double)span;
        shape->full = shape->head + (1 - shape->head) * (double)(waves - 1) / (double)waves;
        for (size_t bin = 0; bin < TAIL_BINS; bin++)
            shape->tail[bin] = 1;
        return span;
    }
    uint64_t free_at[HEAP_SLOTS];
    size_t slots = (size_t)(work->blocks < work->wave_blocks ? work->blocks : work->wave_blocks);
    for (size_t i = 0; i < slots; i++) /* ascending values are a heap */
        free_at[i] = work->ramp_ns * i / slots;
    *ret_total = 0;
    for (uint64_t block = 0; block < work->blocks; block++) {
        uint64_t ns = block_duration(work, block);
        last_start = free_at[0];
        free_at[0] += ns;
        last = free_at[0] > last ? free_at[0] : last;
        *ret_total += (double)ns;
        sift_down(free_at, slots, 0);
    }
    uint64_t full = last_start > work->ramp_ns ? last_start : work->ramp_ns;
    full = full < last ? full : last;
    shape_tail(shape, free_at, slots, full, last);
    shape->head = (double)(work->ramp_ns < full ? work->ramp_ns : full) / (double)last;
    return last;
}

/* ---- stretches of a launch ---- */

/* Returns the time of the `at`th change of the shape, as a part of the span; 0 is the start, EDGES the end.
 */
#define EDGES (HEAD_BINS + 1 + TAIL_BINS)
static double shape_edge(const struct shape *shape, size_t at)
{
    if (at <= HEAD_BINS)
        return shape->head * (double)at / HEAD_BINS;
    return shape->full + (1 - shape->full) * (double)(at - HEAD_BINS - 1) / TAIL_BINS;
}

/* Returns the part of the slots in use from edge `at` to the next one. */
static double shape_level(const struct shape *shape, size_t at)
{
    if (at < HEAD_BINS)
        return ((double)at + 0.5) / HEAD_BINS;
    return at == HEAD_BINS ? 1 : shape->tail[at - HEAD_BINS - 1];
}

/* Cuts a stretch of full slots, [from, to) of the launch's span, at the shape's changes. */
static bool add_shaped(struct sim_timeline *timeline, const struct sim_stretch *full,
                       const struct shape *shape, double from, double to)
{
    double ns = (double)(full->end_ns - full->start_ns);
    for (size_t at = 0; at < EDGES; at++) {
        double begin = shape_edge(shape, at), end = at + 1 < EDGES ? shape_edge(shape, at + 1) : 1;
        begin = begin > from ? begin : from;
        end = end < to ? end : to;
        if (begin >= end)
            continue;
        struct sim_stretch piece = *full;
        piece.wave_ns = 0;
        piece.start_ns = full->start_ns + (uint64_t)((begin - from) / (to - from) * ns + 0.5);
        piece.end_ns = full->start_ns + (uint64_t)((end - from) / (to - from) * ns + 0.5);
        piece.blocks = full->blocks * shape_level(shape, at);
        piece.waiting = shape->waits && at <= HEAD_BINS;
        if (!add_stretch(timeline, &piece))
            return false;
    }
    return true;
}

static double block_time(const struct sim_stretch *stretches, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += stretches[i].blocks * (double)(stretches[i].end_ns - stretches[i].start_ns);
    return sum;
}

/* Gives stretches of full waves the shape of the blocks out of step, scaled to exactly the blocks' sum. */
static bool shape_stretches(struct sim_timeline *timeline, const struct shape *shape, double total)
{
    size_t n = timeline->stretch_count;
    struct sim_stretch *full = timeline->stretches;
    double capacity = block_time(full, n), done = 0;
    timeline->stretches = NULL;
    timeline->stretch_count = timeline->stretch_room = 0;
    bool good = true;
    for (size_t i = 0; i < n && good; i++) {
        double next = done + block_time(&full[i], 1);
        good = full[i].blocks > 0
                   ? add_shaped(timeline, &full[i], shape, done / capacity, i + 1 < n ? next / capacity : 1)
                   : add_stretch(timeline, &full[i]);
        done = next;
    }
    free(full);
    double got = block_time(timeline->stretches, timeline->stretch_count);
    for (size_t i = 0; i < timeline->stretch_count && got > 0; i++)
        timeline->stretches[i].blocks *= total / got;
    return good;
}

/* ---- placing ---- */

/* Consecutive waves: `waves` of `slots` blocks from `at_ns`; the last one may have fewer blocks. */
struct run {
    uint64_t at_ns, wave_ns, waves, slots, remaining;
};

static bool add_waves(struct sim_timeline *timeline, const struct sim_work *work, const struct run *run)
{
    uint64_t full = run->remaining / run->slots < run->waves ? run->remaining / run->slots : run->waves;
    uint64_t full_end_ns = run->at_ns + full * run->wave_ns;
    double capacity = (double)work->wave_blocks;
    if (full && !add_load(timeline, run->at_ns, full_end_ns, (double)run->slots / capacity))
        return false;
    return full == run->waves || add_load(timeline, full_end_ns, run->at_ns + run->waves * run->wave_ns,
                                          (double)(run->remaining - full * run->slots) / capacity);
}

/* Adds the stretches of waves. Blocks wait until the last one starts. Stretches of unequal blocks are all
 * full here; shape_stretches() shapes them later. */
static bool note_waves(struct sim_timeline *timeline, const struct sim_work *work, const struct run *run)
{
    uint64_t end_ns = run->at_ns + run->waves * run->wave_ns, last_ns = end_ns - run->wave_ns;
    bool ends = run->waves * run->slots >= run->remaining;
    struct sim_stretch waves = {.start_ns = run->at_ns,
                                .end_ns = ends && work->imbalance <= 0 ? last_ns : end_ns,
                                .wave_ns = run->wave_ns,
                                .blocks = (double)run->slots,
                                .waiting = true};
    struct sim_stretch last = {.start_ns = waves.end_ns,
                               .end_ns = end_ns,
                               .wave_ns = run->wave_ns,
                               .blocks = (double)(run->remaining - (run->waves - 1) * run->slots)};
    return add_stretch(timeline, &waves) && add_stretch(timeline, &last);
}

static bool add_run(struct sim_timeline *timeline, const struct sim_work *work, const struct run *run)
{
    return add_waves(timeline, work, run) && note_waves(timeline, work, run);
}

bool sim_timeline_place(struct sim_timeline *timeline, uint64_t now_ns, const struct sim_work *work,
                        struct sim_placement *ret)
{
    forget_before(timeline, now_ns);
    timeline->stretch_count = 0;
    uint64_t remaining = work->blocks, at = work->ready_ns, wave_ns = work->block_ns;
    struct sim_placement placed = {.block_ns_total = (double)work->block_ns * (double)work->blocks};
    struct shape shape;
    if (is_out_of_step(work))
        wave_ns = divide_up(span_out_of_step(work, &placed.block_ns_total, &shape),
                            divide_up(work->blocks, work->wave_blocks));
    while (remaining) {
        double free = 1 - peak_share(timeline, at, at + wave_ns);
        uint64_t slots = free <= 0 ? 0 : (uint64_t)(free * (double)work->wave_blocks + SHARE_SLACK);
        uint64_t change = next_change(timeline, at);
        if (!slots) {
            if (!add_stretch(timeline, &(struct sim_stretch){at, change, 0, 0, true}))
                return false;
            at = change;
            continue;
        }
        slots = slots < remaining ? slots : remaining;
        struct run run = {at, wave_ns, waves_until(at, change, wave_ns, divide_up(remaining, slots)), slots,
                          remaining};
        if (!add_run(timeline, work, &run))
            return false;
        if (!placed.start_ns)
            placed.start_ns = at;
        remaining -= run.waves * slots < remaining ? run.waves * slots : remaining;
        at += run.waves * wave_ns;
    }
    if (is_out_of_step(work) && !shape_stretches(timeline, &shape, placed.block_ns_total))
        return false;
    placed.end_ns = at;
    *ret = placed;
    return true;
}
