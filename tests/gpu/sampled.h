/* Controls gpu_sample (sample_main.c) from another process: start, end, results. One thread. */
#pragma once

#include <stdbool.h>

#include "load_child.h"

/* Numbers of its last line, with the same names; NaN for missing ones. */
#define GPU_SAMPLED_NUMBERS(X)                                                                               \
    X(samples)                                                                                               \
    X(wall_s)                                                                                                \
    X(covered_s)                                                                                             \
    X(bad)                                                                                                   \
    X(overflows)                                                                                             \
    X(gaps)                                                                                                  \
    X(rotations)                                                                                             \
    X(failed_changes)                                                                                        \
    X(bytes_per_sample)                                                                                      \
    X(achieved)                                                                                              \
    X(elapsed)                                                                                               \
    X(sm_active)                                                                                             \
    X(block_us)                                                                                              \
    X(blocks)                                                                                                \
    X(ghz)                                                                                                   \
    X(silent_s)                                                                                              \
    X(cpu_s)                                                                                                 \
    X(read_cpu_s)

#define GPU_SAMPLED_DIED "died"

struct gpu_sampled {
    bool opened, ended; /* the source was opened; it was read to the end */
    int exit_code;
    char state[32]; /* state of the source, or GPU_SAMPLED_DIED after an abnormal end */
    char why[256];  /* message of a source that does not open; else the last line */
#define X(name) double name;
    GPU_SAMPLED_NUMBERS(X)
#undef X
};

/* Starts gpu_sample, as another identity unless that is NULL, and waits until the source is open or refused:
 * sets ret->opened, state, why. Returns 0, or the error that kept the process from starting. */
int gpu_sampled_start(struct gpu_child *child, const char *const *words, const char *const *environment,
                      const struct gpu_identity *identity, struct gpu_sampled *ret, struct occ_error *err);
/* Waits for the end (its time plus a grace period) and fills the numbers. */
void gpu_sampled_finish(struct gpu_child *child, double seconds, struct gpu_sampled *ret);
/* Finishes gpu_sample --reopen-after-ms: fills the results of both openings. */
void gpu_sampled_twice(struct gpu_child *child, double seconds, double pause_s, struct gpu_sampled *ret_first,
                       struct gpu_sampled *ret_again);
/* Calls gpu_sampled_start() and gpu_sampled_finish(). */
int gpu_sampled_run(const char *const *words, const char *const *environment, double seconds,
                    struct gpu_sampled *ret, struct occ_error *err);
