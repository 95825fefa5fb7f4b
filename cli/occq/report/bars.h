/* Where occupancy goes, as bars: a pattern and a letter for each cause beside its colour. One thread. */
#pragma once

#include <stdio.h>

#include "cli/kernels/show.h"
#include "cli/kernels/top.h"

/* The patterns that bars refer to: once in a page. */
void bars_patterns(FILE *out);
/* What letters and patterns mean, of the causes that the lines have. */
void bars_legend(FILE *out, const struct top_line *lines, size_t n);
/* The row's warp-seconds, as a bar of that length (0 ... 1): used, and by cause. */
void bars_stacked(FILE *out, const struct occ_top_row *row, double length);

/* From 100 % down to what is used, as a table. */
void bars_waterfall(FILE *out, const struct analysis *a);
/* Theoretical, expected and measured occupancy on one scale, as a table. */
void bars_occupancies(FILE *out, const struct analysis *a);
