/* How often advice was right in this history: outcomes that occq diff kept, by change. One thread. */
#pragma once

#include "store/outcomes.h"

/* Time ratios below and above which an outcome is faster or slower, as for the published changes. */
#define HIT_FASTER 0.98
#define HIT_SLOWER 1.02

enum { HIT_LINE_MIN = 3 }; /* minimum outcomes for a line: fewer are chance */

struct hit_rate {
    const char *change; /* the word of the advice; "all" */
    uint64_t n;         /* outcomes */
    uint64_t promised;  /* outcomes whose advice promised a gain */
    uint64_t faster, neutral, slower;
    uint64_t inside;            /* outcomes measured inside the predicted 80 % interval */
    double predicted, measured; /* medians of the time ratios, after / before; NaN: no outcome */
    double inside_ratio;        /* equals inside / n */
    double faster_ratio, faster_low, faster_high; /* faster / n, with Wilson's 95 % interval */
};

/* Makes a row for each change, and a last row for all outcomes; none without outcomes. `outcomes` are sorted
 * by change. The caller frees *ret_rows, which refer to `outcomes`. Returns 0 or OCC_E_NO_MEMORY. */
int hit_rates_make(const struct occ_advice_outcome *outcomes, size_t n, struct hit_rate **ret_rows,
                   size_t *ret_n, struct occ_error *err);

/* Prints a line about all outcomes of the history; nothing with fewer than HIT_LINE_MIN, or after an error.
 */
void hit_rate_print_line(struct occ_store *store);
