/* Rows of `occq top` by layer as the input of the tree of layers (explain/layers.h). Any thread. */
#pragma once

#include "explain/layers.h"
#include "store/store.h"

/* Makes an item for each row of `top`, a kernel in a range. Paths, words and names of kernels belong to
 * `top`, the array and labels to `texts`. Returns NULL without memory. */
struct occ_range_totals *top_range_totals(const struct occ_top *top, struct occ_arena *texts);
