/* Where occupancy goes, as bars: a pattern and a letter for each cause beside its colour. One thread. */
#ifndef OCC_REPORT_BARS_H
#define OCC_REPORT_BARS_H

#include <stdio.h>

#include "cli/occq/calc/analysis.h"
#include "cli/occq/top.h"

/* The patterns that bars refer to: once in a page. */
void bars_patterns(FILE *out);
/* What letters and patterns mean, of the causes that the lines have. */
void bars_legend(FILE *out, const struct top_line *lines, size_t n);
/* The row's warp-seconds, of `largest_seconds`: used, and by cause. */
void bars_stacked(FILE *out, const struct occ_top_row *row, double largest_seconds);
/* Used and wasted; NaN: not known. */
double bars_warp_seconds(const struct occ_top_row *row);

/* From 100 % down to what is used, as a table. */
void bars_waterfall(FILE *out, const struct analysis *a);
/* Theoretical, expected and measured occupancy on one scale, as a table. */
void bars_occupancies(FILE *out, const struct analysis *a);

#endif
