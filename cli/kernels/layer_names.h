/* Names of layers for people. Any thread. */
#pragma once

#include "explain/layers.h"

/* Returns the name of a line of a tree: indented, with the number of folded layers. A chain of layers wider
 * than `width` columns is only its last name, which is never cut. `texts` owns it; failed: no memory. */
const char *layer_line_name(struct occ_arena *texts, const struct occ_layer *layer, size_t width);

/* Returns the names of line `at` and of the lines around it, joined by '/': "Block/MLP". */
const char *layer_path(struct occ_arena *texts, const struct occ_layers *layers, uint32_t at);
