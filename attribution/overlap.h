/*
 * Which launches ran during a sample, and how much of their warp-time the model expects in it: one walk over
 * launches and samples, both in order of their start.
 *
 * Within a launch occupancy is not flat. Its profile over u = (t - start) / duration is a sum of functions:
 *   [0]       1,
 *   [1 ...]   hats over some knots but the middle one, each less its mean: more (or less) there. Launches
 *             that are short beside a sample have none.
 * A sample that holds a launch whole gets 1, 0, 0 ... times the launch's share of it, whatever the profile
 * is.
 *
 * Pure; one thread.
 */
#ifndef OCC_SAMPLER_OVERLAP_H
#define OCC_SAMPLER_OVERLAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCC_OVERLAP_PARTS 2048 /* launches in one sample, at most */

#define OCC_PROFILE_FUNCTIONS 10 /* maximum functions of one profile */

/* The number of functions that suit launches of so many samples' length. */
uint32_t occ_overlap_functions(double samples);

struct occ_overlap_launch {
    int64_t start_ns, end_ns; /* start < end */
    uint64_t tag;
    uint32_t key;
    uint32_t direct;   /* index of the caller's; UINT32_MAX: none */
    int64_t beside_ns; /* of its time while others ran */
    bool covered;      /* a sample saw it */
    bool in_use;       /* its key knows of it */
};

/* One launch in one sample. Times are launch times as doubles relative to the sample's start, in ns. */
struct occ_overlap_part {
    uint32_t launch;
    double share[OCC_PROFILE_FUNCTIONS]; /* of the sample's length; as many as the key has functions */
    double time_share;                   /* how much of the sample it ran, 0...1 */
    double at_start, at_end;             /* u at the sample's edges; negative: did not run there */
};

struct occ_overlap {
    const struct occ_overlap_launch *launches;
    size_t n, next;
    uint32_t (*functions)(const void *context, uint32_t key); /* of a key's profile */
    const void *context;
    uint32_t *active; /* OCC_OVERLAP_PARTS of the caller's */
    size_t n_active;
};

/* The value at u of one of so many functions. */
double occ_overlap_function_at(uint32_t functions, uint32_t function, double u);

/* Launches that overlap [a_ns, b_ns) in launch time, at most OCC_OVERLAP_PARTS; a_ns must not go back. */
size_t occ_overlap_next(struct occ_overlap *overlap, double a_ns, double b_ns, int64_t origin_ns,
                        struct occ_overlap_part *parts);

#endif
