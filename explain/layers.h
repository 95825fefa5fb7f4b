/*
 * Layers: a tree of the ranges (modules of a model, NVTX ranges) that launches were made in.
 *
 *   below execute_context_#
 *   GptOssForCausalLM_0
 *     TransformerBlock × 36
 *       MLPBlock × 36
 *         FusedMoE × 36
 *
 * The part of the paths that all launches share is the prefix. Siblings with names that differ in a number at
 * their end are folded into one line with their count; a line names the sibling with a time far from the
 * other times. A chain of layers with one child each is one line ("MLPBlock/FusedMoE"). Launches of the
 * backward pass have a tree of their own. Names are never cut.
 *
 * Pure apart from malloc: no I/O; any thread. Paths come from traced programs and may be hostile: the depth
 * is limited, time and memory grow with the length of all paths.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/arena.h"

/* Totals of the launches in one range, or of a kernel in it. */
struct occ_range_totals {
    const char *path;   /* names joined by '/', outermost first; NULL: no range is known */
    bool is_backward;   /* launched by autograd for the operator of that range */
    const char *kernel; /* text for `worst_kernel`; NULL: unknown */
    int64_t kernel_id;  /* its number; 0: unknown */
    uint64_t launches;
    double time_s;
    double used; /* elapsed occupancy; NaN: unknown */
};

struct occ_layer_options {
    unsigned depth; /* maximum number of levels; 0: all */
    /* Lines with a smaller share are left out and counted in `hidden`. A ratio; 0: none. */
    double min_share;
    /* Operators inside of layers are layers too. Operators have names with "::" ("aten::addmm"). */
    bool with_operators;
    const char *unfold; /* siblings with this name (without its number) have a line each; NULL: none */
};

/* A folded sibling with a time far from the median. */
struct occ_layer_outlier {
    const char *name; /* "TransformerBlock_17"; inside folded layers with its path; NULL: none */
    double ratio;     /* its time / median time of its folded siblings */
};

#define OCC_NO_LAYER UINT32_MAX

/* A line of the tree, after its parent. */
struct occ_layer {
    unsigned depth;  /* 0: directly below the prefix */
    uint32_t parent; /* index of the line around it; OCC_NO_LAYER: depth 0 */
    const char
        *name; /* without number if folded; "(directly)": launches of the parent, outside of its children */
    uint32_t count; /* folded siblings, over all folded parents; 1: a single layer */
    uint64_t launches;
    double time_s;
    double share;             /* share of the time of all launches, with or without a range */
    double used;              /* mean elapsed occupancy by time, of launches with a known one; NaN: none */
    const char *worst_kernel; /* kernel of the range with the largest loss; NULL: unknown */
    int64_t worst_kernel_id;  /* 0: unknown */
    struct occ_layer_outlier outlier;
    bool is_backward;
};

struct occ_layers {
    const char *prefix; /* "": the paths have nothing in common */
    const char *backward_prefix;
    struct occ_layer *layers;
    size_t n;
    double time_s;        /* time of all launches */
    double covered_ratio; /* part of time_s in launches with a range; NaN: time_s is 0 */
    size_t hidden;        /* layers left out */
    uint32_t *line_of; /* for each item of `totals`: the deepest line with its launches; OCC_NO_LAYER: none */
    struct occ_arena memory;
};

#define OCC_LAYERS_DEPTH_MAX 64 /* deeper names stay joined by '/' */
/* An outlier differs from the median by 20 % and by five standard deviations, estimated from the median of
 * the differences. Chosen, not measured. */
#define OCC_LAYER_OUTLIER_RATIO  0.2
#define OCC_LAYER_OUTLIER_SIGMAS 5.0

/* Makes the tree of layers. Returns 0 or OCC_E_NO_MEMORY. Texts of `totals` must outlive *ret_layers; free it
 * with occ_layers_free(). */
int occ_layers_make(const struct occ_range_totals *totals, size_t n, const struct occ_layer_options *options,
                    struct occ_layers *ret_layers);
void occ_layers_free(struct occ_layers *layers);

/* Returns the length of a name without a number at its end and the sign before it: 5 for "Block_12", 1 for
 * "h.3", 6 for "layers[7]". A name without a number keeps its length. */
size_t occ_layer_name_bytes(const char *name, size_t bytes);
