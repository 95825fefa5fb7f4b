/*
 * The counters of a simulated device, from the work that all processes report (segments.h). See cupti_pm.h.
 *
 * Launches of several processes add up: this device runs them side by side where a real one alternates. SMs
 * are counted together: the sum of the launches' active SMs, at most all. The SM clock is the
 * model's CLOCK_RATE.
 *
 * Threads: one per tail.
 */
#include "cupti_pm.h"

#include "env.h"
#include "segments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define READ_SEGMENTS 1024
#define ALL_SMS_SLACK 1e-6

struct change {
    uint64_t at_ns;
    double sms;
};

struct sim_tail {
    int fd; /* -1: no reports */
    off_t offset;
    double sms, ghz;
    uint64_t done_ns;             /* end of the summed time */
    struct sim_segment *segments; /* [first, count) by start_ns: segments that end after done_ns */
    size_t first, count, room;
    struct change *changes;
    size_t change_room;
};

struct sim_tail *sim_tail_open(const struct sim_gpu *gpu, const uint8_t *uuid)
{
    struct sim_tail *tail = calloc(1, sizeof *tail);
    if (!tail)
        return NULL;
    tail->sms = sim_gpu_limit(gpu, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    tail->ghz = sim_gpu_limit(gpu, CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1e6;
    tail->fd = -1;
    tail->fd = sim_segments_open(sim_env()->counters, uuid, SIM_SEGMENT_SUFFIX, SIM_READ);
    if (tail->fd < 0)
        sim_complain("OCCSIM_COUNTERS: %s cannot be used: the device seems idle", sim_env()->counters);
    return tail;
}

void sim_tail_close(struct sim_tail *tail)
{
    if (!tail)
        return;
    if (tail->fd >= 0)
        close(tail->fd);
    free(tail->segments);
    free(tail->changes);
    free(tail);
}

/* ---- reading ---- */

static bool sound(const struct sim_segment *s)
{
    return s->magic == SIM_SEGMENT_MAGIC && s->waiting <= SIM_NOT_WAITING && s->start_ns < s->end_ns &&
           s->blocks >= 0 && s->started >= 0 && s->warps >= 0 && s->active_sms >= 0 &&
           s->busy[SIM_UNIT_ISSUE] >= 0;
}

static bool make_room(struct sim_tail *tail)
{
    if (tail->first > tail->count / 2) {
        tail->count -= tail->first;
        memmove(tail->segments, tail->segments + tail->first, tail->count * sizeof *tail->segments);
        tail->first = 0;
    }
    if (tail->count < tail->room)
        return true;
    size_t room = tail->room ? tail->room * 2 : READ_SEGMENTS;
    struct sim_segment *segments = realloc(tail->segments, room * sizeof *segments);
    if (!segments)
        return false;
    tail->segments = segments;
    tail->room = room;
    return true;
}

/* Inserts a segment by its start; segments come nearly in order. */
static void keep(struct sim_tail *tail, const struct sim_segment *segment)
{
    if (segment->end_ns <= tail->done_ns)
        return;
    if (!make_room(tail)) {
        sim_complain("no memory: counters lack a launch");
        return;
    }
    size_t at = tail->count++;
    for (; at > tail->first && tail->segments[at - 1].start_ns > segment->start_ns; at--)
        tail->segments[at] = tail->segments[at - 1];
    tail->segments[at] = *segment;
}

static void stop_following(struct sim_tail *tail)
{
    sim_complain("OCCSIM_COUNTERS: what is told of the device makes no sense; it is not followed any more");
    close(tail->fd);
    tail->fd = -1;
}

void sim_tail_read(struct sim_tail *tail)
{
    struct sim_segment segments[READ_SEGMENTS];
    while (tail->fd >= 0 && flock(tail->fd, LOCK_EX) != 0 && errno == EINTR)
        ;
    for (size_t n = READ_SEGMENTS; tail->fd >= 0 && n == READ_SEGMENTS;) {
        ssize_t bytes = pread(tail->fd, segments, sizeof segments, tail->offset);
        bool good = bytes >= 0;
        n = good ? (size_t)bytes / sizeof *segments : 0;
        tail->offset += (off_t)(n * sizeof *segments);
        for (size_t i = 0; i < n && good; i++) {
            good = sound(&segments[i]);
            if (good)
                keep(tail, &segments[i]);
        }
        if (!good)
            stop_following(tail);
    }
    if (tail->fd >= 0)
        (void)flock(tail->fd, LOCK_UN);
}

/* ---- summing up ---- */

static int by_time(const void *a, const void *b)
{
    uint64_t x = ((const struct change *)a)->at_ns, y = ((const struct change *)b)->at_ns;
    return (x > y) - (x < y);
}

static bool changes_fit(struct sim_tail *tail, size_t count)
{
    if (count <= tail->change_room)
        return true;
    struct change *changes = realloc(tail->changes, 2 * count * sizeof *changes);
    if (!changes)
        return false;
    tail->changes = changes;
    tail->change_room = 2 * count;
    return true;
}

/* Sums, in ns: active SMs, and activity of the least and the most active SM. */
static void sum_active(struct sim_tail *tail, size_t changes, double ret[SIM_METRICS])
{
    double sms = 0;
    size_t in_use = 0; /* launches in progress; at 0 the rest of `sms` is rounding */
    if (!changes)
        return;
    qsort(tail->changes, changes, sizeof *tail->changes, by_time);
    for (size_t i = 0; i < changes; i++) {
        double ns = i ? (double)(tail->changes[i].at_ns - tail->changes[i - 1].at_ns) : 0;
        ret[SIM_METRIC_ACTIVE] += ns * (sms < tail->sms ? sms : tail->sms);
        ret[SIM_METRIC_ACTIVE_MIN] += sms >= tail->sms - ALL_SMS_SLACK ? ns : 0;
        ret[SIM_METRIC_ACTIVE_MAX] += in_use ? ns : 0;
        in_use += tail->changes[i].sms > 0 ? 1 : -(size_t)1;
        sms = in_use ? sms + tail->changes[i].sms : 0;
    }
}

static size_t add_segment(struct sim_tail *tail, const struct sim_segment *s, uint64_t from_ns,
                          uint64_t to_ns, size_t changes, double ret[SIM_METRICS])
{
    uint64_t start = s->start_ns > from_ns ? s->start_ns : from_ns,
             end = s->end_ns < to_ns ? s->end_ns : to_ns;
    if (start >= end)
        return changes;
    double ns = (double)(end - start);
    ret[SIM_METRIC_BLOCKS] += s->blocks * ns;
    ret[SIM_METRIC_WARPS] += s->warps * ns;
    double first = s->started < s->blocks ? s->started : s->blocks;
    ret[SIM_METRIC_LAUNCHED] += start == s->start_ns ? first : 0;
    ret[SIM_METRIC_LAUNCHED] += (s->started - first) * ns / (double)(s->end_ns - s->start_ns);
    if (s->waiting < SIM_NOT_WAITING)
        ret[SIM_METRIC_STALL_REGISTERS + s->waiting] += ns;
    for (int i = 0; i < SIM_UNITS; i++)
        ret[SIM_METRIC_ISSUE + i] += s->busy[i] * ns;
    if (s->active_sms <= 0)
        return changes;
    tail->changes[changes++] = (struct change){start, s->active_sms};
    tail->changes[changes++] = (struct change){end, -s->active_sms};
    return changes;
}

/* Converts ns to percent of the interval; the maximum is 100. */
static void to_percent(double ns, double ret[SIM_METRICS])
{
    for (int i = SIM_METRIC_ISSUE; i < SIM_METRIC_ISSUE + SIM_UNITS; i++)
        ret[i] = ret[i] < ns ? 100 * ret[i] / ns : 100;
    ret[SIM_METRIC_DRAMC] = ret[SIM_METRIC_DRAM];
}

/* Converts ns to cycles; stall reasons to cycles of all TPCs, at most the interval. */
static void to_cycles(const struct sim_tail *tail, double ns, double ret[SIM_METRICS])
{
    for (int i = 0; i < SIM_LIMITS; i++) {
        double *reason = &ret[SIM_METRIC_STALL_REGISTERS + i];
        *reason = (*reason < ns ? *reason : ns) * tail->sms / 2;
    }
    ret[SIM_METRIC_WARPS_OF_TPC] = ret[SIM_METRIC_WARPS];
    ret[SIM_METRIC_ELAPSED] = ns;
    ret[SIM_METRIC_DURATION] = ns;
    for (int i = 0; i < SIM_METRIC_ISSUE; i++)
        ret[i] *= tail->ghz;
    ret[SIM_METRIC_LAUNCHED_OF_GR] = ret[SIM_METRIC_LAUNCHED];
    to_percent(ns, ret);
}

void sim_tail_sum(struct sim_tail *tail, uint64_t from_ns, uint64_t to_ns, double ret[SIM_METRICS])
{
    size_t end = tail->first, changes = 0;
    memset(ret, 0, SIM_METRICS * sizeof *ret);
    while (end < tail->count && tail->segments[end].start_ns < to_ns)
        end++;
    if (!changes_fit(tail, 2 * (end - tail->first))) {
        sim_complain("no memory: a sample has no counters");
        return;
    }
    for (size_t i = tail->first; i < end; i++)
        changes = add_segment(tail, &tail->segments[i], from_ns, to_ns, changes, ret);
    sum_active(tail, changes, ret);
    to_cycles(tail, (double)(to_ns - from_ns), ret);
    size_t kept = end;
    for (size_t i = end; i-- > tail->first;) {
        if (tail->segments[i].end_ns > to_ns)
            tail->segments[--kept] = tail->segments[i];
    }
    tail->first = kept;
    tail->done_ns = to_ns;
}
