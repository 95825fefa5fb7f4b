/*
 * Samples for the ring's tests: a ring with one process, device, kernel and launch configuration, and
 * launches with fields derived from their number, so that a reader can tell them apart.
 */
#pragma once

#include "ring/consumer.h"
#include "ring/producer.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define SAMPLE_EPOCH_NS UINT64_C(1700000000000000000)

static inline struct occ_ring_launch sample_launch(uint64_t n)
{
    return (struct occ_ring_launch){.start_ns = SAMPLE_EPOCH_NS + n * 1000,
                                    .duration_ns = n % 977,
                                    .graph_node = n * 3,
                                    .config = 0,
                                    .stream = (uint32_t)(n % 7),
                                    .correlation = (uint32_t)n};
}

static inline bool is_sample_launch(const struct occ_ring_launch *launch, uint64_t n)
{
    struct occ_ring_launch expected = sample_launch(n);
    expected.check = occ_ring_check(n);
    return memcmp(launch, &expected, sizeof expected) == 0;
}

static inline bool log_process(struct occ_ring_producer *p, uint32_t count, const char *text, uint32_t bytes)
{
    struct occ_record_process f = {.record.type = OCC_RECORD_PROCESS, .count = count, .text_bytes = bytes};
    return occ_ring_log(p, &f.record, sizeof f, text, bytes);
}

static inline bool log_device(struct occ_ring_producer *p, uint32_t id)
{
    struct occ_record_device f = {.record.type = OCC_RECORD_DEVICE, .id = id, .cc_major = 9, .sm_count = 132};
    memcpy(f.name, "a device", 9);
    return occ_ring_log(p, &f.record, sizeof f, NULL, 0);
}

static inline bool log_kernel(struct occ_ring_producer *p, uint32_t id, const char *name)
{
    uint32_t bytes = (uint32_t)strlen(name) + 1;
    struct occ_record_kernel f = {.record.type = OCC_RECORD_KERNEL,
                                  .id = id,
                                  .name_bytes = bytes,
                                  .name_hash = occ_fnv1a(name, bytes - 1)};
    return occ_ring_log(p, &f.record, sizeof f, name, bytes);
}

static inline bool log_range(struct occ_ring_producer *p, uint32_t id, const char *path)
{
    uint32_t bytes = (uint32_t)strlen(path) + 1;
    struct occ_record_range f = {.record.type = OCC_RECORD_RANGE, .id = id, .path_bytes = bytes};
    return occ_ring_log(p, &f.record, sizeof f, path, bytes);
}

static inline struct occ_record_config sample_config(uint32_t id)
{
    return (struct occ_record_config){.record.type = OCC_RECORD_CONFIG,
                                      .id = id,
                                      .grid = {100, 1, 1},
                                      .block = {128, 1, 1},
                                      .cluster = {1, 1, 1},
                                      .registers_per_thread = 32,
                                      .carveout_percent = -1};
}

static inline bool log_config(struct occ_ring_producer *p, uint32_t id)
{
    struct occ_record_config f = sample_config(id);
    return occ_ring_log(p, &f.record, sizeof f, NULL, 0);
}

/* Returns exact values of the sample configuration, for launches of 1000 ns each. */
static inline struct occ_record_measured sample_measured(uint64_t head, uint64_t launches)
{
    double ns = 1000.0 * (double)launches;
    return (struct occ_record_measured){.record.type = OCC_RECORD_MEASURED,
                                        .minute = SAMPLE_EPOCH_NS / UINT64_C(60000000000),
                                        .head = head,
                                        .launches = launches,
                                        .ns = ns,
                                        .warps_active_ns = 32 * ns,
                                        .warps_ns = 32 * 66 * ns,
                                        .sms_active_ns = 66 * ns,
                                        .blocks_active_ns = 8 * ns};
}

/* Logs the process, device, kernel and configuration that a launch needs. */
static inline bool log_samples(struct occ_ring_producer *p)
{
    static const char text[] = "exe\0/bin/app\0label\0night run"; /* the literal's NUL ends the last value */
    return log_process(p, 2, text, sizeof text) && log_device(p, 0) && log_kernel(p, 0, "_Z4axpyPf") &&
           log_config(p, 0);
}

/* Attaches to a second descriptor of the producer's memfd, like a daemon. */
static inline int attach_to(const struct occ_ring_producer *p, uint64_t next, struct occ_ring_consumer **ret)
{
    int fd = dup(p->fd);
    int rc = occ_ring_attach(fd, next, ret, NULL);
    if (rc != 0)
        (void)close(fd);
    return rc;
}

/* Reads all records. Returns their number, or -1 if the ring is broken. */
static inline int drain_log(struct occ_ring_consumer *c)
{
    const struct occ_log_record *record;
    enum occ_ring_status status;
    int n = 0;
    while ((status = occ_ring_next_log_record(c, &record)) == OCC_RING_OK)
        n++;
    return status == OCC_RING_EMPTY ? n : -1;
}
