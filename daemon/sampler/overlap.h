/*
 * Which launches ran during a sample, and how much of their warp-time the model expects in it: one walk over launches and
 * samples, both in order of their start.
 *
 * Within a launch occupancy is not flat. Its course over the launch's time, of mean 1, is described by three
 * functions of u = (t - start) / duration:
 *   MEAN  the wave model's: full waves, then the partial last one (flat where the grid is not known),
 *   TAIL  1 in the last 15 %, negative before so that its mean is 0: the tail is fuller (or emptier) than the model's,
 *   HEAD  the same for the first 15 %.
 * A sample that holds a launch whole gets 1, 0, 0 times its share of the sample, whatever the course is.
 *
 * Pure; one thread.
 */
#ifndef OCC_SAMPLER_OVERLAP_H
#define OCC_SAMPLER_OVERLAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCC_OVERLAP_PARTS 2048 /* launches in one sample, at most */

enum occ_course { OCC_COURSE_MEAN, OCC_COURSE_TAIL, OCC_COURSE_HEAD, OCC_COURSE_COUNT };

/* MEAN's course: `body` until `body_end`, then `last`. */
struct occ_overlap_course {
    double body_end, body, last;
};
/* Of `grid_blocks` equal blocks, `wave_blocks` at a time; 0: not known. */
struct occ_overlap_course occ_overlap_course_of(uint64_t grid_blocks, uint64_t wave_blocks);

struct occ_overlap_launch {
    int64_t start_ns, end_ns; /* start < end */
    uint64_t tag;
    uint32_t key;
    uint32_t direct;   /* index of the caller's; UINT32_MAX: none */
    int64_t beside_ns; /* of its time while others ran */
    bool covered;      /* a sample saw it */
};

/* One launch in one sample. Times are launch times as doubles relative to the sample's start, in ns. */
struct occ_overlap_part {
    uint32_t launch;
    double share[OCC_COURSE_COUNT]; /* of the sample's length */
    double time_share;              /* how much of the sample it ran, 0...1 */
    double at_start[OCC_COURSE_COUNT],
        at_end[OCC_COURSE_COUNT]; /* the courses at the sample's edges; 0: did not run */
};

struct occ_overlap {
    const struct occ_overlap_launch *launches;
    size_t n, next;
    const struct occ_overlap_course *(*course)(const void *context, uint32_t key);
    const void *context;
    uint32_t *active; /* OCC_OVERLAP_PARTS of the caller's */
    size_t n_active;
    uint64_t crowded; /* launches that found no place in `active` */
};

/* Launches that overlap [a_ns, b_ns) in launch time, at most OCC_OVERLAP_PARTS; a_ns must not go back. */
size_t occ_overlap_next(struct occ_overlap *overlap, double a_ns, double b_ns, int64_t origin_ns,
                        struct occ_overlap_part *parts);

#endif
