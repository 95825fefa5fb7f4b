/* See attribution_timeline.h. */
#include "attribution_timeline.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribution_random.h"

#define STREAMS_MAX  64
#define LONG_GAP_NS  5e6 /* longer gaps of a recording are cut to 5 ms */
#define MADE_UP_SMS  132
#define WARPS_PER_SM 64

static void *grow(void *items, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return items;
    *room = *room ? *room * 2 : 1024;
    items = realloc(items, *room * size);
    if (!items)
        abort();
    return items;
}

static void push(struct timeline *t, size_t *room, struct timeline_event event)
{
    t->events = grow(t->events, t->n_events, room, sizeof *t->events);
    t->events[t->n_events++] = event;
}

static int by_start(const void *a, const void *b)
{
    double x = ((const struct timeline_event *)a)->start_ns, y = ((const struct timeline_event *)b)->start_ns;
    return (x > y) - (x < y);
}

static double draw_slowness(const struct timeline_options *o, uint64_t *random)
{
    bool straggles = random_uniform(random) < o->stragglers;
    return random_lognormal(random, o->duration_spread) * (straggles ? random_between(random, 1.3, 3) : 1);
}

/* Draws the kernel properties that a recording lacks. */
static void draw_character(struct physics_kernel *k, uint64_t *random)
{
    k->block_spread = random_between(random, 0.02, 0.4);
    k->early = random_between(random, 0, 0.6);
    k->contention = random_uniform(random);
    k->ramp = random_between(random, 0, 0.3);
}

/* ---- recorded launches ---- */

struct recording {
    struct timeline_event *events; /* start_ns: since the first start */
    size_t n;
};

static bool read_line(const char *line, struct timeline *t, struct recording *r, size_t room[2])
{
    struct physics_kernel k = {.sms = t->sms, .warps_per_sm = t->warps_per_sm};
    struct timeline_event e = {0};
    double gap_ns;
    if (sscanf(line, "launch %" SCNu32 " %" SCNu32 " %lf %lf", &e.config, &e.stream, &gap_ns,
               &e.duration_ns) == 4) {
        e.start_ns = (r->n ? r->events[r->n - 1].start_ns : 0) + fmin(gap_ns, LONG_GAP_NS);
        r->events = grow(r->events, r->n, &room[1], sizeof *r->events);
        r->events[r->n++] = e;
        return e.config < t->n_configs && e.stream < STREAMS_MAX;
    }
    if (sscanf(line, "config %" SCNu32 " %" SCNu32 " %" SCNu32, &k.grid_blocks, &k.warps_per_block,
               &k.blocks_per_sm) == 3) {
        t->configs = grow(t->configs, t->n_configs, &room[0], sizeof *t->configs);
        t->configs[t->n_configs++] = k;
        return k.grid_blocks > 0 && k.blocks_per_sm > 0 && k.blocks_per_sm <= 32;
    }
    return sscanf(line, "gpu %" SCNu32 " %" SCNu32, &t->sms, &t->warps_per_sm) == 2;
}

static int read_recording(const char *path, struct timeline *t, struct recording *r)
{
    char line[128];
    size_t room[2] = {0};
    bool good = true;
    FILE *file = fopen(path, "r");
    while (file && good && fgets(line, sizeof line, file))
        good = read_line(line, t, r, room);
    if (file)
        (void)fclose(file);
    if (file && good && r->n > 0)
        return 0;
    (void)fprintf(stderr, "bench_attribution: cannot read %s\n", path);
    return -1;
}

/* Replays the recording once from `now_ns` on; returns the end. The first launch's stream is the leader: each
 * of its launches starts a gap after the end of the previous one; other streams keep their offset to the
 * leader. */
static double replay_once(const struct recording *r, const struct timeline_options *o, double now_ns,
                          uint64_t *random, struct timeline *t, size_t *room)
{
    double end[STREAMS_MAX] = {0}, recorded_end[STREAMS_MAX] = {0}, shift = now_ns;
    uint32_t leader = r->events[0].stream;
    for (size_t i = 0; i < r->n; i++) {
        const struct timeline_event *e = &r->events[i];
        struct timeline_event now = *e;
        now.slowness = draw_slowness(o, random);
        now.duration_ns = fmax(e->duration_ns * now.slowness, 600);
        if (e->stream == leader && end[leader] > 0) {
            double gap = fmax(e->start_ns - recorded_end[leader], 400);
            now.start_ns = end[leader] + gap * random_lognormal(random, 0.15);
            shift = now.start_ns - e->start_ns;
        } else
            now.start_ns = fmax(e->start_ns + shift, end[e->stream] + 500);
        end[e->stream] = now.start_ns + now.duration_ns;
        recorded_end[e->stream] = e->start_ns + e->duration_ns;
        push(t, room, now);
    }
    double last = 0;
    for (int i = 0; i < STREAMS_MAX; i++)
        last = fmax(last, end[i]);
    return last;
}

static int replay(const struct timeline_options *o, uint64_t *random, struct timeline *t, size_t *room)
{
    struct recording r = {0};
    int status = read_recording(o->recording, t, &r);
    for (uint32_t i = 0; i < t->n_configs && status == 0; i++)
        draw_character(&t->configs[i], random);
    for (double now_ns = 0; now_ns < o->seconds * 1e9 && status == 0;)
        now_ns = replay_once(&r, o, now_ns, random, t, room) + 5e4 +
                 (5e4 + o->idle_ns) * random_exponential(random);
    free(r.events);
    return status;
}

/* ---- made-up launches ---- */

static void make_configs(const struct timeline_options *o, uint64_t *random, struct timeline *t)
{
    static const uint32_t warps[] = {1, 2, 4, 4, 8, 8, 8, 12, 16, 32};
    t->sms = MADE_UP_SMS;
    t->warps_per_sm = WARPS_PER_SM;
    t->n_configs = o->n_configs;
    t->configs = calloc(o->n_configs, sizeof *t->configs);
    if (!t->configs)
        abort();
    for (uint32_t i = 0; i < o->n_configs; i++) {
        struct physics_kernel *k = &t->configs[i];
        *k = (struct physics_kernel){.sms = t->sms, .warps_per_sm = t->warps_per_sm};
        k->warps_per_block = warps[random_bits(random) % (sizeof warps / sizeof *warps)];
        uint32_t fit = t->warps_per_sm / o->streams / k->warps_per_block;
        k->blocks_per_sm = (uint32_t)fmax(1, fmin(32, fit * random_between(random, 0.25, 1)));
        k->grid_blocks =
            (uint32_t)fmax(1, k->sms * k->blocks_per_sm * exp(random_between(random, log(0.1), log(12))));
        draw_character(k, random);
    }
}

/* Draws the usual duration of each configuration. */
static double *draw_durations(const struct timeline_options *o, uint64_t *random)
{
    double *durations = calloc(o->n_configs, sizeof *durations);
    if (!durations)
        abort();
    for (uint32_t i = 0; i < o->n_configs; i++)
        durations[i] = exp(random_between(random, log(o->shortest_ns), log(o->longest_ns)));
    for (uint32_t i = o->n_configs / o->streams; i < o->n_configs && o->longer > 0; i++)
        durations[i] *= o->longer;
    return durations;
}

/* Draws the configuration and the usual duration of each node of the graphs; NULL: no graphs of nodes. */
static struct timeline_event *draw_nodes(const struct timeline_options *o, const double *durations,
                                         uint64_t *random)
{
    uint32_t n = o->graphs * o->nodes;
    struct timeline_event *nodes = n > 0 ? calloc(n, sizeof *nodes) : NULL;
    if (n > 0 && !nodes)
        abort();
    for (uint32_t i = 0; i < n; i++) {
        nodes[i].node = i + 1;
        nodes[i].config = (uint32_t)(random_bits(random) % o->n_configs);
        nodes[i].duration_ns = durations[nodes[i].config] * random_lognormal(random, o->node_spread);
    }
    return nodes;
}

/* Launches graphs of nodes, one after the other, in random order. */
static void run_graphs(const struct timeline_options *o, const struct timeline_event *nodes, uint64_t *random,
                       struct timeline *t, size_t *room)
{
    for (double now_ns = 1e5 * random_uniform(random); now_ns < o->seconds * 1e9;) {
        const struct timeline_event *graph = nodes + random_bits(random) % o->graphs * o->nodes;
        for (uint32_t i = 0; i < o->nodes; i++) {
            struct timeline_event now = graph[i];
            now.start_ns = now_ns;
            now.slowness = draw_slowness(o, random);
            now.duration_ns = fmax(now.duration_ns * now.slowness, 600);
            push(t, room, now);
            now_ns += now.duration_ns + o->gap_ns * random_between(random, 0.6, 1.4);
        }
        now_ns += o->graph_gap_ns * random_between(random, 0.5, 1.5);
    }
}

/* Returns the configuration (of n) of a stream's `turn`-th launch. With phases the program runs one quarter
 * of its configurations at a time, in random order. */
static uint32_t choose(const struct timeline_options *o, uint32_t n, size_t turn, double now_ns,
                       uint64_t *random)
{
    if (o->order == TIMELINE_FIXED)
        return (uint32_t)(turn % n);
    if (o->order == TIMELINE_RANDOM || n < 8)
        return (uint32_t)(random_bits(random) % n);
    uint32_t part = n / 4, phase = (uint32_t)(now_ns / 2e9) % 4;
    return phase * part + (uint32_t)(random_bits(random) % part);
}

static void run_stream(const struct timeline_options *o, uint32_t stream, const double *durations,
                       uint64_t *random, struct timeline *t, size_t *room)
{
    double now_ns = 1e5 * random_uniform(random), idle_at_ns = now_ns + o->busy_ns;
    uint32_t n = o->apart ? o->n_configs / o->streams : o->n_configs, first = o->apart ? stream * n : 0;
    for (size_t turn = 0; now_ns < o->seconds * 1e9; turn++) {
        uint32_t config = first + choose(o, n, turn, now_ns, random);
        double slowness = draw_slowness(o, random), duration_ns = fmax(durations[config] * slowness, 600);
        bool alone = o->alone > 0 && random_uniform(random) < o->alone;
        now_ns += alone ? o->pause_ns : 0;
        uint32_t node = o->graph_gap_ns > 0 ? config + 1 : 0;
        push(t, room, (struct timeline_event){now_ns, duration_ns, slowness, config, stream, alone, node});
        now_ns += duration_ns + (alone ? o->pause_ns : 0);
        now_ns += o->gap_ns * random_between(random, 0.6, 1.4);
        if (o->order == TIMELINE_FIXED && config == first + n - 1)
            now_ns += o->graph_gap_ns * random_between(random, 0.5, 1.5);
        if (o->idle_ns > 0 && now_ns > idle_at_ns) {
            now_ns += o->idle_ns * random_exponential(random);
            idle_at_ns = now_ns + o->busy_ns * random_exponential(random);
        }
    }
}

/* Adds a persistent kernel: one block of 8 warps on each SM. */
static void run_persistent(const struct timeline_options *o, uint64_t *random, struct timeline *t,
                           size_t *room)
{
    struct physics_kernel k = {
        .sms = t->sms, .warps_per_sm = t->warps_per_sm, .grid_blocks = t->sms, .warps_per_block = 8};
    k.blocks_per_sm = 1;
    draw_character(&k, random);
    t->configs = realloc(t->configs, (t->n_configs + 1) * sizeof *t->configs);
    if (!t->configs)
        abort();
    t->configs[t->n_configs++] = k;
    for (double now_ns = 3e9; now_ns < o->seconds * 1e9; now_ns += o->persistent_ns + 3e9)
        push(t, room,
             (struct timeline_event){now_ns, o->persistent_ns, 1, t->n_configs - 1, STREAMS_MAX - 1, false,
                                     0});
}

int timeline_make(const struct timeline_options *o, uint64_t *random, struct timeline *ret_timeline)
{
    struct timeline t = {0};
    size_t room = 0;
    int status = 0;
    if (o->recording)
        status = replay(o, random, &t, &room);
    else {
        make_configs(o, random, &t);
        double *durations = draw_durations(o, random);
        struct timeline_event *nodes = draw_nodes(o, durations, random);
        if (nodes)
            run_graphs(o, nodes, random, &t, &room);
        for (uint32_t i = 0; i < o->streams && !nodes; i++)
            run_stream(o, i, durations, random, &t, &room);
        free(nodes);
        free(durations);
    }
    if (status == 0 && o->persistent_ns > 0)
        run_persistent(o, random, &t, &room);
    if (status == 0)
        qsort(t.events, t.n_events, sizeof *t.events, by_start);
    *ret_timeline = t;
    return status;
}

void timeline_free(struct timeline *t)
{
    free(t->configs);
    free(t->events);
    *t = (struct timeline){0};
}
