/*
 * Verdicts on groups of kernels: all of them, layers, families, kernels. A group pools its launch
 * configurations (pool.h), so that it can be decided where each configuration alone has too few launches.
 *
 * Worse and better are decided against a change within the floor: the group's change, and its change to the
 * control, are both beyond the floor, in one direction, with a chance of at most 5 % for any false verdict
 * among the groups of a scope (Holm). Same: the 95 % interval of the ratio lies within the floor. The total
 * has no control, and a chance of at most 1 %.
 *
 * Pure apart from malloc; any thread.
 */
#pragma once

#include "compare.h"
#include "kernel_sets.h"

/* X(NAME, word) */
#define DIFF_SCOPES(X) X(TOTAL, "total") X(LAYER, "layer") X(FAMILY, "family") X(KERNEL, "kernel")

#define DIFF_SCOPE_ENUMERATOR(name, word) DIFF_SCOPE_##name,
enum diff_scope { DIFF_SCOPES(DIFF_SCOPE_ENUMERATOR) DIFF_SCOPE_COUNT };

struct diff_group {
    enum diff_scope scope;
    const char *name; /* the layer, A's family, or A's kernel (kernel_sets.h); "": total */
    /* B's kernel if it has another name; several if they replaced A's, or one that replaced several. NULL:
     * the same as A's, or no kernel */
    const char *name_b;
    const struct diff_pair *main_pair; /* the pair with the most time in A */
    uint32_t configurations;
    uint64_t launches[DIFF_SIDES], total_ns[DIFF_SIDES];
    double share;            /* its share of A's or of B's time, whichever is larger */
    bool is_for_work;        /* launches of a part of it do other work: their times are for the same work */
    struct diff_ratio ratio; /* time of a launch, B / A */
    struct diff_ratio to_control; /* `ratio` / change of the control; NaN: no control */
    double q;                     /* chance of a false verdict in the scope; NaN: not judged */
    enum diff_verdict verdict;
};

/* Pooled share of the time without which the total has no verdict. */
#define DIFF_TOTAL_SHARE_MIN 0.5

struct diff_levels {
    struct diff_group *groups; /* by scope, in each the largest change of time first */
    size_t n;
    /* Median change of the configurations outside of all groups that are worse or better. NaN: too few. */
    struct diff_ratio control;
    uint32_t control_configurations;
    double pooled_share;             /* share of both sides' time in pooled configurations */
    struct diff_kernel_sets kernels; /* names of groups */
};

/* Judges groups with `min_share` of A's or B's time, and the total. Texts are those of `diff`,
 * after diff_conclude(). */
int diff_levels_make(const struct diff *diff, double floor, double min_share, struct diff_levels *ret_levels,
                     struct occ_error *err);
void diff_levels_free(struct diff_levels *levels);

/* True if the pair is in the group, except for a layer: its layer is the first of its items. False without a
 * launch on both sides. */
bool diff_group_has(const struct diff *diff, const struct diff_levels *levels, const struct diff_group *group,
                    const struct diff_pair *pair);

/* Groups inside of each other, such as a tree of layers in depth-first order: group k has the pairs with k <=
 * group[pair] < end[k]. */
struct diff_nest {
    const uint32_t *group; /* innermost group of each pair; DIFF_NO_PAIR: in no group */
    const uint32_t *end;   /* for each group: the first group that is not inside */
    uint32_t n;
};
/* Judges nested groups as a scope: ret_levels->groups[k] is group k, without a name. Its ratios are NaN
 * without pooled configurations, or with less than `min_share` of the time. Sets the groups only. */
int diff_levels_nested(const struct diff *diff, double floor, double min_share, const struct diff_nest *nest,
                       struct diff_levels *ret_levels, struct occ_error *err);

bool diff_is_change(enum diff_verdict verdict); /* worse or better */
