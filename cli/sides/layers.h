/* The layers of both sides as one tree (explain/layers.h), each line with a verdict. One thread. */
#pragma once

#include "cli/values.h"
#include "compare/levels.h"
#include "explain/layers.h"

/* A line of the tree. */
struct diff_layer_line {
    const struct occ_layer *layer;  /* time and launches of both sides together */
    const struct diff_group *group; /* the verdict on its pooled configurations */
    const char *verdict, *phase, *prefix;
    const char *basis, *work; /* work: "same", if the basis is the time for the same work; else NULL */
    const char *path;         /* names below the prefix: of the layers around it, then its own */
    const char *tree;         /* name for people: indented, with the number of folded layers */
    char interval[48], times[72], counts[48]; /* texts for people */
    uint32_t depth, count, configurations;
    uint64_t launches[DIFF_SIDES], total_ns[DIFF_SIDES];
    double share; /* its share of A's or of B's time, whichever is larger */
    double change, low, high, q, to_control, to_control_low, to_control_high;
};
extern const struct cli_column diff_layer_columns[];

struct diff_layers {
    struct occ_layers tree;
    struct diff_levels verdicts;   /* a group for each line */
    struct diff_layer_line *lines; /* tree.n */
    struct occ_arena texts;
};

/* Makes the tree of all ranges of `diff`, whose items have a struct side_range as `where`. Lines with
 * `min_share` of A's or B's time have a verdict. Free with diff_layers_free(), also after a failure. */
int diff_layers_make(const struct diff *diff, double floor, double min_share, struct diff_layers *ret_layers,
                     struct occ_error *err);
void diff_layers_free(struct diff_layers *layers);

/* Returns the line that has the item's launches; NULL: its range is not known. */
const struct diff_layer_line *diff_layer_of(const struct diff_layers *layers, const struct diff *diff,
                                            const struct diff_item *item);

/* Lines that fit on a screen of 24 lines, with heading, the verdict on the total and footers. */
enum { DIFF_LAYERS_SCREEN = 11 };
/* Returns the share below which lines are left out so that at most about `most` lines remain; up to
 * DIFF_LAYERS_SCREEN lines it is at least 0.5 %. *ret_shown: number of the lines that remain. */
double diff_layers_fit(const struct diff_layers *layers, size_t most, size_t *ret_shown);
