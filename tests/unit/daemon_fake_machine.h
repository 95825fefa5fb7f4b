/* A machine for the sampler (daemon/sampling/sampler_machine.h): a clock that moves when the test says so,
 * one GPU, two kinds of counter sources that follow a script, and a /proc in a directory of the test's own.
 * One thread but for workers of a test that sets has_threads. */
#pragma once

#include "daemon/sampling/sampler_machine.h"

#define FAKE_MS     INT64_C(1000000)
#define FAKE_SECOND INT64_C(1000000000)

/* The script of a kind of source, and a record of the sampler's calls. */
struct fake_kind {
    enum occ_source_state begin, read, set_interval; /* the states that these functions return */
    int64_t late_ns;                                 /* samples are that much ahead of the clock */
    const char *note;                                /* of its sources; NULL: none */
    uint64_t failed_changes;                         /* that they tell of */
    unsigned begins, closes, reads;
    int64_t interval_ns, shortest_ns; /* as given last; of all */
    bool is_open, keeps_first_set;
};

struct fake_machine {
    struct occ_sampler_machine machine;
    int64_t now_ns, monotonic_ns;
    struct fake_kind kinds[OCC_SOURCE_SLOTS];
    double (*occupancy)(int64_t time_ns); /* that the samples show; NULL: 0 */
    struct occ_gpu_found gpus[2];
    size_t n_gpus;
    enum occ_source_state gpu_state; /* of find_gpus() */
    unsigned searches;               /* for GPUs */
    char offered[64];                /* libcupti that the last source of kind PM got; "" */
    char proc[64];
};

/* Fake sources change the counter set with each sample; a sample has this size. */
#define FAKE_SAMPLE_BYTES 18000

extern struct fake_machine fake;

/* Both clocks start again, GPUs 0 and 1 are found, all sources work; /proc has process 1. */
void fake_machine_reset(void);
void fake_machine_advance(int64_t ns);

/* Process `pid` of this name appears in, or (comm NULL) disappears from, /proc. */
void fake_machine_process(unsigned pid, const char *comm);

/* Removes /proc. */
void fake_machine_remove(void);
