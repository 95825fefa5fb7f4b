/* A machine for the sampler (daemon/sampling/sampler_machine.h): a clock that only the test advances, two
 * GPUs, two kinds of counter sources that follow a script, and a /proc in a temporary directory. One thread,
 * except for workers of a test that sets has_threads. */
#pragma once

#include "daemon/sampling/sampler_machine.h"

#define FAKE_MS     INT64_C(1000000)
#define FAKE_SECOND INT64_C(1000000000)

/* The script of a kind of source, and a record of the sampler's calls. */
struct fake_kind {
    enum occ_source_state begin, read, set_interval; /* states that these functions return */
    int64_t late_ns;                                 /* samples are ahead of the clock by this time */
    const char *note;                                /* of the kind's sources; NULL: none */
    uint64_t failed_changes; /* counter set changes that the sources report as failed */
    unsigned begins, closes, reads;
    int64_t interval_ns, shortest_ns; /* last interval set; shortest interval of all */
    bool is_open, keeps_first_set;
};

struct fake_machine {
    struct occ_sampler_machine machine;
    int64_t now_ns, monotonic_ns;
    struct fake_kind kinds[OCC_SOURCE_SLOTS];
    double (*occupancy)(int64_t time_ns); /* occupancy in the samples; NULL: 0 */
    struct occ_gpu_found gpus[2];
    int64_t watts[2]; /* mean power of each GPU since the start; 0: its energy cannot be read */
    unsigned energy_reads;
    size_t n_gpus;
    enum occ_source_state gpu_state; /* result of find_gpus() */
    unsigned searches;               /* number of searches for GPUs */
    char offered[64];                /* libcupti given to the last PM source; "" */
    char proc[64];
};

/* Size of a sample: fake sources change the counter set after each one. */
#define FAKE_SAMPLE_BYTES 18000

extern struct fake_machine fake;

/* Restarts both clocks, offers GPUs 0 and 1, makes all sources work and puts process 1 into /proc. */
void fake_machine_reset(void);
void fake_machine_advance(int64_t ns);

/* Adds process `pid` of this name to /proc, or removes the process if `comm` is NULL. */
void fake_machine_process(unsigned pid, const char *comm);

/* Removes /proc. */
void fake_machine_remove(void);
