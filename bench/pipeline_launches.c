/* See pipeline.h. */
#include "pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring/ring_abi.h"

void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench_pipeline: %s: %s\n", what, why);
    exit(1);
}

void check(int status, const struct occ_error *err, const char *what)
{
    if (status != 0)
        die(what, err->message);
}

int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

/* ---- launches ---- */

static uint64_t next_random(struct generator *g)
{
    g->seed ^= g->seed << 13;
    g->seed ^= g->seed >> 7;
    g->seed ^= g->seed << 17;
    return g->seed;
}

void make_generator(struct generator *g, uint64_t launches_per_second)
{
    double total = 0;
    uint32_t at = 0;
    *g = (struct generator){.seed = 88172645463325252u, .time_ns = EPOCH_NS};
    g->step_ns = SECOND_NS / (int64_t)launches_per_second;
    for (int i = 0; i < SHAPES; i++)
        total += 1.0 / (i + 1);
    for (uint32_t i = 0; i < SHAPES; i++) {
        uint32_t share = (uint32_t)(ZIPF_TABLE / (i + 1) / total) + 1;
        for (; share > 0 && at < ZIPF_TABLE; share--)
            g->shape[at++] = i;
        g->mean_ns[i] = 2000 + (uint32_t)(next_random(g) % 100000);
    }
    while (at < ZIPF_TABLE)
        g->shape[at++] = 0;
}

struct occ_ring_launch make_launch(struct generator *g)
{
    uint64_t r = next_random(g);
    uint32_t shape = g->shape[r % ZIPF_TABLE];
    uint32_t mean = g->mean_ns[shape];
    g->time_ns += (int64_t)((r >> 20) % (uint64_t)(2 * g->step_ns));
    /* every 16th launch is a little late, as from another buffer */
    int64_t late = (r >> 40) % 16 == 0 ? (int64_t)((r >> 44) % 16) * g->step_ns : 0;
    return (struct occ_ring_launch){.start_ns = (uint64_t)(g->time_ns - late),
                                    .duration_ns = mean - mean / 16 + (r >> 48) % (mean / 8),
                                    .config = shape,
                                    .stream = shape % 4 + 7,
                                    .correlation = (uint32_t)++g->n};
}

static bool log_kernel(struct occ_ring_producer *ring, uint32_t id)
{
    char name[64];
    uint32_t n = (uint32_t)snprintf(name, sizeof name, "_Z9kernel%04uPfi", id);
    struct occ_record_kernel f = {
        .record.type = OCC_RECORD_KERNEL, .id = id, .name_bytes = n + 1, .name_hash = occ_fnv1a(name, n)};
    return occ_ring_log(ring, &f.record, sizeof f, name, n + 1);
}

static bool log_shape(struct occ_ring_producer *ring, uint32_t id)
{
    struct occ_record_config f = {.record.type = OCC_RECORD_CONFIG,
                                  .id = id,
                                  .kernel = id / 4,
                                  .grid = {100 + id, 1, 1},
                                  .block = {32 * (1 + id % 32), 1, 1},
                                  .cluster = {1, 1, 1},
                                  .registers_per_thread = 16 + id % 48,
                                  .carveout_percent = -1};
    return occ_ring_log(ring, &f.record, sizeof f, NULL, 0);
}

void make_ring(struct occ_ring_producer *ring, uint32_t slots)
{
    struct occ_record_device device = {.record.type = OCC_RECORD_DEVICE, .cc_major = 9, .sm_count = 132};
    (void)snprintf(device.name, sizeof device.name, "H200 (simulated)");
    bool ok = occ_ring_create(ring, slots, 1u << 20) == 0 &&
              occ_ring_log(ring, &device.record, sizeof device, NULL, 0);
    for (uint32_t i = 0; ok && i < SHAPES / 4; i++)
        ok = log_kernel(ring, i);
    for (uint32_t i = 0; ok && i < SHAPES; i++)
        ok = log_shape(ring, i);
    if (!ok)
        die("ring", "cannot be made");
}

void name_database(const struct bench *b, const char *name, char path[320])
{
    (void)snprintf(path, 320, "%s/%s.db", b->directory, name);
}
