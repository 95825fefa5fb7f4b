/* See attribution_world.h. */
#include "attribution_world.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BINS     200 /* of a launch's course */
#define VARIANTS 8   /* courses of a kernel; each launch has one of them */
#define EPOCH_NS INT64_C(1700000000000000000)
#define CLOCK    1.7 /* SM cycles a ns */

enum { WARPS, BLOCKS, ACTIVE, KINDS };

/* What a launch has of the device up to each bin's end: integrals over ns of warps, blocks, active SMs. */
struct course {
    double duration_ns, total[KINDS], until[KINDS][BINS + 1];
};

static void *get(size_t n, size_t size)
{
    void *memory = calloc(n ? n : 1, size);
    if (!memory)
        abort();
    return memory;
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t x = (*state += UINT64_C(0x9e3779b97f4a7c15));
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static double uniform(uint64_t *state)
{
    return (double)(next_random(state) >> 11) / 9007199254740992.0;
}

static double normal(uint64_t *state)
{
    return sqrt(-2 * log(1 - uniform(state))) * cos(6.283185307179586 * uniform(state));
}

/* ---- one launch's course ---- */

struct slot {
    double free_at;
    uint32_t sm;
};

static void sift_down(struct slot *heap, size_t n)
{
    struct slot item = heap[0];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1].free_at < heap[child].free_at)
            child++;
        if (heap[child].free_at >= item.free_at)
            break;
        heap[at] = heap[child];
    }
    heap[at] = item;
}

/* Adds `level` over [from, to) to per-bin integrals. */
static void add_interval(double *bins, double bin_ns, double from, double to, double level)
{
    size_t first = (size_t)(from / bin_ns), last = (size_t)(to / bin_ns);
    first = first < BINS ? first : BINS - 1;
    last = last < BINS ? last : BINS - 1;
    for (size_t i = first; i <= last; i++) {
        double low = fmax(from, (double)i * bin_ns),
               high = i == BINS - 1 ? to : fmin(to, (double)(i + 1) * bin_ns);
        bins[i] += fmax(high - low, 0) * level;
    }
}

struct ran {
    double from, to;
    uint32_t sm;
};

static void make_course(const struct world_kernel *k, uint64_t *random, struct course *course)
{
    size_t slots = (size_t)WORLD_SMS * k->blocks_per_sm;
    struct slot *heap = get(slots, sizeof *heap);
    struct ran *ran = get(k->blocks, sizeof *ran);
    double waves = ceil((double)k->blocks / (double)slots), block_ns = (k->duration_ns - k->ramp_ns) / waves;
    double bins[KINDS][BINS] = {{0}}, first[WORLD_SMS], last[WORLD_SMS];
    for (size_t i = 0; i < slots; i++)
        heap[i] = (struct slot){k->ramp_ns * (double)i / (double)slots, (uint32_t)(i % WORLD_SMS)};
    for (uint32_t i = 0; i < WORLD_SMS; i++)
        first[i] = INFINITY, last[i] = 0;
    course->duration_ns = 0;
    for (uint32_t i = 0; i < k->blocks; i++) {
        double length = block_ns * (1 - k->block_spread * uniform(random));
        ran[i] = (struct ran){heap[0].free_at, heap[0].free_at + length, heap[0].sm};
        first[ran[i].sm] = fmin(first[ran[i].sm], ran[i].from);
        last[ran[i].sm] = fmax(last[ran[i].sm], ran[i].to);
        course->duration_ns = fmax(course->duration_ns, ran[i].to);
        heap[0].free_at = ran[i].to;
        sift_down(heap, slots);
    }
    double bin_ns = course->duration_ns / BINS;
    for (uint32_t i = 0; i < k->blocks; i++) {
        add_interval(bins[BLOCKS], bin_ns, ran[i].from, ran[i].to, 1);
        for (uint32_t w = 0; w < k->warps_per_block; w++) {
            double part = w == 0 ? 1 : 1 - k->warp_spread * uniform(random);
            add_interval(bins[WARPS], bin_ns, ran[i].from, ran[i].from + part * (ran[i].to - ran[i].from), 1);
        }
    }
    for (uint32_t i = 0; i < WORLD_SMS; i++)
        if (last[i] > 0)
            add_interval(bins[ACTIVE], bin_ns, first[i], last[i], 1);
    for (int kind = 0; kind < KINDS; kind++) {
        course->until[kind][0] = 0;
        for (int i = 0; i < BINS; i++)
            course->until[kind][i + 1] = course->until[kind][i] + bins[kind][i];
        course->total[kind] = course->until[kind][BINS];
    }
    free(heap);
    free(ran);
}

static double course_until(const struct course *course, int kind, double at_ns)
{
    double u = at_ns / course->duration_ns * BINS;
    if (u <= 0)
        return 0;
    if (u >= BINS)
        return course->total[kind];
    size_t bin = (size_t)u;
    return course->until[kind][bin] +
           (u - (double)bin) * (course->until[kind][bin + 1] - course->until[kind][bin]);
}

/* ---- the device ---- */

struct event {
    double start_ns;
    uint32_t kernel, variant;
};

struct events {
    struct event *items;
    size_t n, room;
};

static void push(struct events *events, struct event event)
{
    if (events->n == events->room) {
        events->room = events->room ? events->room * 2 : 1024;
        events->items = realloc(events->items, events->room * sizeof *events->items);
        if (!events->items)
            abort();
    }
    events->items[events->n++] = event;
}

/* One stream's launches, one after the other. */
static void run_stream(const struct world_options *o, const struct course *courses, uint64_t *random,
                       struct events *events)
{
    double now = 1000 * uniform(random);
    for (size_t turn = 0; now < o->seconds * 1e9; turn++) {
        uint32_t kernel =
            (uint32_t)(o->fixed_order ? turn % o->n_kernels : next_random(random) % o->n_kernels);
        uint32_t variant = (uint32_t)(next_random(random) % VARIANTS);
        push(events, (struct event){now, kernel, variant});
        now += courses[kernel * VARIANTS + variant].duration_ns + o->gap_ns * (0.5 + uniform(random));
        if (o->fixed_order && kernel == o->n_kernels - 1)
            now += o->graph_gap_ns * (0.5 + uniform(random));
    }
}

static int by_start(const void *a, const void *b)
{
    double x = ((const struct event *)a)->start_ns, y = ((const struct event *)b)->start_ns;
    return (x > y) - (x < y);
}

static int by_reported_start(const void *a, const void *b)
{
    int64_t x = ((const struct world_launch *)a)->start_ns, y = ((const struct world_launch *)b)->start_ns;
    return (x > y) - (x < y);
}

/* Adds a launch to the samples; active SMs of launches side by side are drawn apart: 1 - product of what is
 * idle. */
static void count(const struct world_options *o, const struct event *event, const struct course *course,
                  double (*sums)[KINDS], size_t n_samples)
{
    size_t i = (size_t)(event->start_ns / o->interval_ns);
    double end = event->start_ns + course->duration_ns;
    for (; i < n_samples && (double)i * o->interval_ns < end; i++) {
        double low = (double)i * o->interval_ns - event->start_ns;
        for (int kind = 0; kind < KINDS; kind++) {
            double part = course_until(course, kind, low + o->interval_ns) - course_until(course, kind, low);
            if (kind == ACTIVE && o->streams > 1) {
                double share = part / (WORLD_SMS * o->interval_ns),
                       before = sums[i][kind] / (WORLD_SMS * o->interval_ns);
                part = (1 - (1 - before) * (1 - share) - before) * WORLD_SMS * o->interval_ns;
            }
            sums[i][kind] += part;
        }
    }
}

static void tell_launch(const struct world_options *o, const struct event *event, const struct course *course,
                        uint64_t *random, struct world_launch *launch)
{
    double start = event->start_ns + o->jitter_ns * normal(random);
    double end = event->start_ns + course->duration_ns + o->jitter_ns * normal(random);
    *launch = (struct world_launch){.kernel = event->kernel, .duration_ns = course->duration_ns};
    launch->start_ns = EPOCH_NS + llround(fmax(start, 0));
    launch->end_ns = EPOCH_NS + llround(fmax(end, start + 100));
    launch->elapsed = course->total[WARPS] / (WORLD_SMS * WORLD_WARPS * course->duration_ns);
    launch->active = course->total[ACTIVE] / (WORLD_SMS * course->duration_ns);
    launch->achieved = launch->elapsed / launch->active;
}

static void tell_sample(const struct world_options *o, size_t i, const double *sums, uint64_t *random,
                        struct occ_sample *sample)
{
    double from = (double)i * o->interval_ns, to = from + o->interval_ns;
    sample->start_ns = EPOCH_NS + llround(from * (1 + o->drift) + o->offset_ns);
    sample->end_ns = EPOCH_NS + llround(to * (1 + o->drift) + o->offset_ns);
    for (int c = 0; c < OCC_COUNTER_COUNT; c++)
        sample->value[c] = NAN;
    sample->value[OCC_COUNTER_ELAPSED] = o->interval_ns * CLOCK;
    sample->value[OCC_COUNTER_WARPS] = sums[WARPS] * CLOCK * (1 + o->noise * normal(random));
    sample->value[OCC_COUNTER_BLOCKS] = sums[BLOCKS] * CLOCK * (1 + o->noise * normal(random));
    sample->value[OCC_COUNTER_ACTIVE] = sums[ACTIVE] * CLOCK * (1 + o->noise * normal(random));
}

struct world *world_make(const struct world_options *o)
{
    uint64_t random = o->seed * 7919 + 17;
    struct world *world = get(1, sizeof *world);
    struct course *courses = get(o->n_kernels * VARIANTS, sizeof *courses);
    struct events events = {0};
    for (size_t i = 0; i < o->n_kernels * VARIANTS; i++)
        make_course(&o->kernels[i / VARIANTS], &random, &courses[i]);
    for (int i = 0; i < o->streams; i++)
        run_stream(o, courses, &random, &events);
    qsort(events.items, events.n, sizeof *events.items, by_start);
    world->n_samples = (size_t)(o->seconds * 1e9 / o->interval_ns);
    world->samples = get(world->n_samples, sizeof *world->samples);
    world->launches = get(events.n, sizeof *world->launches);
    double(*sums)[KINDS] = get(world->n_samples, sizeof *sums);
    for (size_t i = 0; i < events.n; i++) {
        const struct course *course = &courses[events.items[i].kernel * VARIANTS + events.items[i].variant];
        count(o, &events.items[i], course, sums, world->n_samples);
        tell_launch(o, &events.items[i], course, &random, &world->launches[world->n_launches++]);
    }
    for (size_t i = 0; i < world->n_samples; i++)
        tell_sample(o, i, sums[i], &random, &world->samples[i]);
    qsort(world->launches, world->n_launches, sizeof *world->launches, by_reported_start);
    free(sums);
    free(events.items);
    free(courses);
    return world;
}

void world_free(struct world *world)
{
    free(world->launches);
    free(world->samples);
    free(world);
}
