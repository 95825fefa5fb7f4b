/*
 * Recordings that are compared with themselves, for bench_diff: sides of their launches, other work in one of
 * them, and the comparison as occq diff makes it. Failures end the process. One thread.
 */
#pragma once

#include "cli/sides/layers.h"
#include "cli/sides/side_ranges.h"
#include "compare/gpu_time.h"
#include "compare/levels.h"
#include "support/arena.h"

/* Launches of one configuration in one range. */
struct place {
    struct diff_row row;
    struct side_range range; /* id 0: not known */
    uint32_t other; /* place of the launches with other work that stand for these; UINT32_MAX: none */
};

struct launch {
    uint32_t place;
    double ns;
    double gpu_ns; /* from its start to the next start on the GPU */
    int64_t stream;
    bool is_fused; /* one launch does the work of this one and the next */
};

/* Launches of B with other work than A's, but as much work in all. */
enum other_work {
    OTHER_NONE,
    OTHER_LONGER, /* one launch of the same kernel for every two: half as many, of twice the grid */
    OTHER_FUSED,  /* one kernel for every two that always follow each other */
    OTHER_WORKS
};

struct recording {
    char title[64];
    struct place *places;
    struct launch *launches;
    size_t n, n_places, n_own_places, places_allocated, launches_allocated;
    size_t period; /* distance at which launches recur: a step, a block of a model; 0: they do not */
    enum other_work other;
    struct occ_arena texts;
};

/* Returns the recording of a run of a history; NULL without a further run. `at`: 0 for the first. */
struct recording *recording_read(const char *history, size_t at);
struct recording *recording_new(void);
struct place *recording_add_place(struct recording *r, int64_t config, const char *mangled,
                                  const char *demangled);
void recording_add_launch(struct recording *r, const struct launch *launch);
void recording_free(struct recording *r);

/* Chooses kernels whose launches do other work on a side with `is_other`: of `family` all, of NULL every
 * second, by the seed. Returns their number. */
size_t recording_choose(struct recording *r, enum other_work other, uint64_t seed, const char *family);

#define INJECTED 1.1
struct side {
    uint32_t *launches; /* in order */
    size_t n;
    const char *layer; /* its launches take INJECTED times as long; NULL: none */
    bool is_other;     /* chosen kernels do other work */
};
/* Free with sides_drop(). */
void sides_new(const struct recording *r, struct side sides[DIFF_SIDES]);
void sides_drop(const struct side sides[DIFF_SIDES]);

struct compared {
    struct diff diff;
    struct diff_levels levels;
    struct diff_layers layers; /* lines of the tree */
    struct diff_gpu_time_verdict gpu_time;
    struct diff_row *rows[DIFF_SIDES];
    struct diff_part *parts;
    uint32_t *part_of[DIFF_SIDES]; /* place -> part */
    size_t n_parts;
};
/* Compares two runs as occq diff does. Free with compared_free(). */
void compare(const struct recording *r, const struct side *a, const struct side *b, struct compared *ret);
void compared_free(struct compared *c);

void bench_fail(const char *what) __attribute__((noreturn));
void bench_check(bool has_memory);
