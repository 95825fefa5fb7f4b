/*
 * Computes the counters of a placed launch over time: resident blocks and warps and active SMs, from the
 * timeline's stretches, for the truth file and for counter samplers (OCCSIM_COUNTERS, see segments.h).
 *
 * Blocks are spread breadth first, so that min(SMs, resident blocks) SMs are active. With
 * OCCSIM_WARP_IMBALANCE half of a block's warps (rounded down) end earlier, by that share of the block's
 * time: a stretch of few waves has a second level per wave, a longer one their mean. The sum of warps over
 * time is exactly the sum over all blocks' warps. Threads: called under the driver's lock.
 */
#include "driver.h"

#include "env.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define MOST_BUSY   0.95
#define WAVES_SHOWN 16 /* of a stretch: more waves are shown as their mean */

struct segments {
    struct sim_segment *items;
    size_t count, room;
};

/* A block's warps: `all`, until `early` warps end, `early_part` of the block's time before its end. */
struct warps {
    double all, early, early_part;
};

/* The instruction mix of a kernel: depends on the kernel's name, not on its number of warps. */
struct instructions {
    double cycles_between;    /* cycles between two instructions of a warp */
    double demand[SIM_UNITS]; /* share of the peak at one instruction per cycle */
};

static struct instructions instructions_of(uint64_t hash)
{
    struct instructions i = {.cycles_between = 4 + (double)(hash % 61)};
    i.demand[SIM_UNIT_ISSUE] = 1;
    for (int unit = SIM_UNIT_DRAM; unit < SIM_UNITS; unit++) {
        hash = hash * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        i.demand[unit] = (double)(hash >> 33 & 1023) / 512;
    }
    return i;
}

/* Sets the use of the units. A scheduler has a quarter of its SM's warps, each with an instruction every
 * `cycles_between` cycles; the busiest unit limits the issue rate. */
static void keep_busy(const struct instructions *instructions, double sms, struct sim_segment *s)
{
    double warps = s->active_sms > 0 ? s->warps / (4 * s->active_sms) : 0;
    double issued = warps / instructions->cycles_between, active = s->active_sms / sms;
    issued = issued < 1 ? issued : 1;
    for (int i = 0; i < SIM_UNITS; i++)
        if (issued * active * instructions->demand[i] > MOST_BUSY)
            issued = MOST_BUSY / active / instructions->demand[i];
    for (int i = 0; i < SIM_UNITS; i++)
        s->busy[i] = issued * active * instructions->demand[i];
}

static int counters_fd(struct sim_device *device)
{
    const char *directory = sim_env()->counters;
    uint8_t uuid[SIM_UUID_BYTES];
    if (device->counters_asked)
        return device->counters_fd;
    device->counters_asked = true;
    device->counters_fd = -1;
    if (!*directory)
        return -1;
    if (sim_env()->clock_mode == SIM_CLOCK_VIRTUAL) {
        sim_complain("OCCSIM_COUNTERS: nothing is published, virtual time is no time for other processes");
        return -1;
    }
    sim_gpu_uuid(device->gpu, (uint32_t)device->ordinal, uuid);
    device->counters_fd = sim_segments_open(directory, uuid, SIM_SEGMENT_SUFFIX, SIM_APPEND);
    if (device->counters_fd < 0)
        sim_complain("OCCSIM_COUNTERS: %s: %s", directory, strerror(errno));
    return device->counters_fd;
}

bool sim_counters_begin_locked(struct sim_device *device)
{
    if (counters_fd(device) < 0)
        return false;
    while (flock(device->counters_fd, LOCK_EX) != 0 && errno == EINTR)
        ;
    return true;
}

void sim_counters_end_locked(struct sim_device *device)
{
    if (device->counters_fd >= 0)
        (void)flock(device->counters_fd, LOCK_UN);
}

static bool add(struct segments *segments, const struct sim_segment *segment)
{
    if (segment->start_ns >= segment->end_ns)
        return true;
    if (segments->count == segments->room) {
        size_t room = segments->room ? segments->room * 2 : 64;
        struct sim_segment *items = realloc(segments->items, room * sizeof *items);
        if (!items)
            return false;
        segments->items = items;
        segments->room = room;
    }
    segments->items[segments->count++] = *segment;
    return true;
}

/* Adds a stretch with two levels per wave. */
static bool add_levels(struct segments *segments, const struct sim_segment *whole, uint64_t wave_ns,
                       const struct warps *warps)
{
    uint64_t early_ns = (uint64_t)((double)wave_ns * warps->early_part);
    bool good = true;
    for (uint64_t at = whole->start_ns; at < whole->end_ns && good; at += wave_ns) {
        struct sim_segment first = *whole, second = *whole;
        first.start_ns = at;
        first.end_ns = second.start_ns = at + wave_ns - early_ns;
        second.end_ns = at + wave_ns;
        first.warps = whole->blocks * warps->all;
        second.warps = whole->blocks * (warps->all - warps->early);
        good = add(segments, &first) && add(segments, &second);
    }
    return good;
}

static bool add_stretch(struct segments *segments, const struct sim_stretch *stretch,
                        const struct warps *warps, double sms, enum sim_limit limit)
{
    struct sim_segment whole = {.magic = SIM_SEGMENT_MAGIC,
                                .waiting = stretch->waiting ? limit : SIM_NOT_WAITING,
                                .start_ns = stretch->start_ns,
                                .end_ns = stretch->end_ns,
                                .blocks = stretch->blocks,
                                .active_sms = stretch->blocks < sms ? stretch->blocks : sms};
    uint64_t wave_ns = stretch->wave_ns, ns = stretch->end_ns - stretch->start_ns;
    double early_part = warps->early_part;
    if (wave_ns && warps->early > 0) {
        if (ns / wave_ns <= WAVES_SHOWN)
            return add_levels(segments, &whole, wave_ns, warps);
        early_part = (double)(uint64_t)((double)wave_ns * early_part) / (double)wave_ns;
    }
    whole.warps = stretch->blocks * (warps->all - warps->early * early_part);
    return add(segments, &whole);
}

/* Distributes the starts of the grid's blocks in proportion to resident blocks: in lockstep, each wave's own
 * blocks. */
static void start_blocks(const uint32_t *grid, struct segments *segments)
{
    double all_ns = 0, blocks = (double)grid[0] * grid[1] * grid[2];
    for (size_t i = 0; i < segments->count; i++) {
        struct sim_segment *s = &segments->items[i];
        s->started = s->blocks * (double)(s->end_ns - s->start_ns);
        all_ns += s->started;
    }
    for (size_t i = 0; i < segments->count && all_ns > 0; i++)
        segments->items[i].started *= blocks / all_ns;
}

static bool collect(const struct sim_device *device, const struct sim_occupation *occupation, double sms,
                    struct segments *segments)
{
    const uint32_t *block = occupation->launch->block;
    uint32_t in_block = (block[0] * block[1] * block[2] + 31) / 32;
    uint64_t percent = sim_env()->warp_imbalance_percent;
    struct warps warps = {
        .all = in_block, .early = percent ? in_block / 2 : 0, .early_part = (double)percent / 100};
    size_t n = 0;
    const struct sim_stretch *stretches = sim_timeline_stretches(device->timeline, &n);
    for (size_t i = 0; i < n; i++) {
        if (!add_stretch(segments, &stretches[i], &warps, sms, occupation->residency->limit))
            return false;
    }
    start_blocks(occupation->launch->grid, segments);
    const struct instructions instructions = instructions_of(occupation->launch->function->hash);
    for (size_t i = 0; i < segments->count; i++)
        keep_busy(&instructions, sms, &segments->items[i]);
    return true;
}

static void sum_up(const struct segments *segments, double sms, double most_warps,
                   struct sim_occupation *occupation)
{
    double warp_ns = 0, active_ns = 0, ns = 0;
    for (size_t i = 0; i < segments->count; i++) {
        const struct sim_segment *s = &segments->items[i];
        double length = (double)(s->end_ns - s->start_ns);
        warp_ns += s->warps * length;
        active_ns += s->active_sms * length;
        for (int unit = 0; unit < SIM_UNITS; unit++)
            occupation->busy[unit] += s->busy[unit] * length;
    }
    size_t first = 0;
    while (first < segments->count && segments->items[first].blocks <= 0)
        first++;
    if (first < segments->count)
        ns = (double)(segments->items[segments->count - 1].end_ns - segments->items[first].start_ns);
    occupation->achieved = active_ns > 0 ? warp_ns / (active_ns * most_warps) : 0;
    for (int unit = 0; unit < SIM_UNITS; unit++) {
        double of_ns = unit == SIM_UNIT_ISSUE ? active_ns / sms : ns;
        occupation->busy[unit] = of_ns > 0 ? occupation->busy[unit] / of_ns : 0;
    }
    occupation->elapsed = ns > 0 ? warp_ns / (ns * sms * most_warps) : 0;
}

static void publish(struct sim_device *device, const struct segments *segments)
{
    size_t bytes = segments->count * sizeof *segments->items;
    if (write(counters_fd(device), segments->items, bytes) == (ssize_t)bytes)
        return;
    sim_complain("OCCSIM_COUNTERS: a launch could not be written, no more are");
    (void)close(device->counters_fd);
    device->counters_fd = -1;
}

void sim_counters_publish_locked(struct sim_device *device, struct sim_occupation *occupation)
{
    struct segments segments = {0};
    double sms = sim_gpu_limit(device->gpu, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    double most_warps = sim_gpu_limit(device->gpu, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / 32.0;
    bool told = counters_fd(device) >= 0;
    if (!told && !*sim_env()->truth)
        return;
    if (!collect(device, occupation, sms, &segments))
        sim_complain("no memory: a launch has no counters");
    sum_up(&segments, sms, most_warps, occupation);
    if (told && segments.count)
        publish(device, &segments);
    free(segments.items);
}
