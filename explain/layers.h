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
    const char *path;   /* names joined by '/', outermost first; NULL and "": no range is known */
    bool is_backward;   /* launched by autograd for the operator of that range */
    const char *kernel; /* text for `worst_kernel`; NULL: unknown */
    int64_t kernel_id;  /* its number; 0: unknown */
    uint64_t launches;
    double time_s;
    double used; /* elapsed occupancy; NaN: unknown */
};

struct occ_layer_options {
    unsigned depth; /* maximum number of levels; 0: all */
    /* lines with a smaller share are left out, with the lines inside them; 0: none. A ratio. */
    double min_share;
    /* true: operators inside of layers, with names that have "::" ("aten::addmm"), are layers too; false:
     * their launches count to the layer around them */
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
    /* folded: without the number; "(directly)": launches of the parent, outside of its children */
    const char *name;
    uint32_t count; /* folded siblings, over all folded parents; 1: a single layer */
    uint64_t launches;
    double time_s;
    double share; /* share of the time of all launches, with or without a range */
    double used;  /* elapsed occupancy, mean over the time of the launches for which it is known; NaN: none */
    const char *worst_kernel; /* kernel with the largest loss in one range of the layer; NULL: unknown */
    int64_t worst_kernel_id;  /* 0: unknown */
    struct occ_layer_outlier outlier;
    bool is_backward;
};

/* The lines, forward passes first; lines inside a line follow it, the longest time first. All texts live
 * until occ_layers_free(). */
struct occ_layers {
    /* "": the paths share no name, or only names that have a line (leaves, folded layers) */
    const char *prefix;
    const char *backward_prefix;
    struct occ_layer *layers;
    size_t n;
    double time_s;        /* time of all launches */
    double covered_ratio; /* part of time_s in launches with a range; NaN: time_s is 0 */
    size_t hidden;        /* lines left out because of min_share, without the lines inside them */
    uint32_t *line_of;    /* deepest line with the launches of each item of `totals`; OCC_NO_LAYER: none */
    struct occ_arena memory;
};

#define OCC_LAYERS_DEPTH_MAX 64 /* deeper names stay joined by '/' */
/* An outlier differs from the median by 20 % and by five standard deviations, estimated from the median of
 * the differences. Chosen, not measured. */
#define OCC_LAYER_OUTLIER_RATIO  0.2
#define OCC_LAYER_OUTLIER_SIGMAS 5.0

/* Makes the tree of layers. The texts of `totals` must outlive *ret_layers, which the caller frees with
 * occ_layers_free(). Returns 0 or OCC_E_NO_MEMORY; then *ret_layers is unchanged. */
int occ_layers_make(const struct occ_range_totals *totals, size_t n, const struct occ_layer_options *options,
                    struct occ_layers *ret_layers);
void occ_layers_free(struct occ_layers *layers);

/* Returns the length of a name without a number at its end and the sign before it: 5 for "Block_12", 1 for
 * "h.3", 6 for "layers[7]". A name without a number keeps its length. */
size_t occ_layer_name_bytes(const char *name, size_t bytes);
