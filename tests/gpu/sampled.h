/*
 * gpu_sample (sample_main.c) from the outside: started with words, ended, and what it saw. One thread.
 */
#pragma once

#include <stdbool.h>

#include "load_child.h"

/* Numbers of its last line, by the same names; NaN where it says nothing. */
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
    char state[32]; /* of the source, or GPU_SAMPLED_DIED: the process did not end as it should */
    char why[256];  /* its words when it could not be opened; else the process's last */
#define X(name) double name;
    GPU_SAMPLED_NUMBERS(X)
#undef X
};

/* Starts it, as another identity unless that is NULL, and waits until the source is open or refused:
 * ret->opened, state, why. 0, or what kept the process from starting. */
int gpu_sampled_start(struct gpu_child *child, const char *const *words, const char *const *environment,
                      const struct gpu_identity *identity, struct gpu_sampled *ret, struct occ_error *err);
/* Waits for the end (its time plus a grace) and fills the numbers. */
void gpu_sampled_finish(struct gpu_child *child, double seconds, struct gpu_sampled *ret);
/* Of gpu_sample --reopen-after-ms: the same for both openings. */
void gpu_sampled_twice(struct gpu_child *child, double seconds, double pause_s, struct gpu_sampled *ret_first,
                       struct gpu_sampled *ret_again);
/* gpu_sampled_start() and gpu_sampled_finish(). */
int gpu_sampled_run(const char *const *words, const char *const *environment, double seconds,
                    struct gpu_sampled *ret, struct occ_error *err);
