/* Names of layers for people. Any thread. */
#pragma once

#include "explain/layers.h"

/* Returns the name of a line of a tree: indented, with the number of folded layers. Of a chain of layers
 * wider than `width` columns only the last name is shown, which is never cut. The text belongs to `texts`;
 * "?": no memory, and texts->failed is set. */
const char *layer_line_name(struct occ_arena *texts, const struct occ_layer *layer, size_t width);

/* Returns the names of the lines around line `at` and its own name, joined by '/': "Block/MLP". The text
 * belongs to `texts` or to the tree; "?": no memory, and texts->failed is set. */
const char *layer_path(struct occ_arena *texts, const struct occ_layers *layers, uint32_t at);
