/* How often advice was right in this history: outcomes that occq diff kept, by change. One thread. */
#pragma once

#include "store/outcomes.h"

/* Time ratios below and above which an outcome is faster or slower, as for the published changes. */
#define HIT_FASTER 0.98
#define HIT_SLOWER 1.02

enum { HIT_LINE_MIN = 3 }; /* minimum outcomes for a line: fewer are chance */

struct hit_rate {
    const char *change; /* the word of the advice; "all" */
    uint64_t n, promised, faster, neutral, slower, inside;
    double predicted, measured; /* medians; NaN: no outcome */
    double inside_ratio;        /* share of outcomes measured inside the predicted 80 % interval */
    double faster_ratio, faster_low, faster_high; /* Wilson's 95 % interval */
};

/* Makes a row for each change, and a last one for all. `outcomes` are sorted by change. The caller frees
 * *ret_rows, which refer to `outcomes`. */
int hit_rates_make(const struct occ_advice_outcome *outcomes, size_t n, struct hit_rate **ret_rows,
                   size_t *ret_n, struct occ_error *err);

/* Prints a line about all outcomes; nothing with fewer than HIT_LINE_MIN, or without memory. */
void hit_rate_print_line(struct occ_store *store);
