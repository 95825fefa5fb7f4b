/* Bars of used and lost occupancy: each cause has a colour, a pattern and a letter. One thread. */
#pragma once

#include <stdio.h>

#include "cli/kernels/show.h"
#include "cli/kernels/top.h"

/* Prints the patterns that bars use; once per page. */
void bars_patterns(FILE *out);
/* Prints the legend of letters and patterns, for the causes in `lines`. */
void bars_legend(FILE *out, const struct top_line *lines, size_t n);
/* Prints the row's warp-seconds as a bar of the given length (0 ... 1): used, and lost by cause. */
void bars_stacked(FILE *out, const struct occ_top_row *row, double length);

/* A part of a bar of 100 percent. */
struct bars_step {
    unsigned percent;
    const char *fill, *what; /* NULL: of `part` */
    unsigned part;           /* enum occ_part */
};
/* Prints parts, which add up to 100 percent, as one bar with a legend of all parts above 0. */
void bars_whole(FILE *out, const struct bars_step *steps, size_t n);

/* Prints the losses from 100 % down to used occupancy, as a table. */
void bars_waterfall(FILE *out, const struct analysis *a);
/* Prints theoretical, expected and measured occupancy on one scale, as a table. */
void bars_occupancies(FILE *out, const struct analysis *a);
