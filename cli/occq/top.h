/* What `occq top` prints of a row. One thread. */
#ifndef OCC_OCCQ_TOP_H
#define OCC_OCCQ_TOP_H

#include "cli/marks.h"
#include "cli/values.h"
#include "store/store.h"

/* A row and what follows from it; NaN and "": not known. */
struct top_line {
    struct occ_top_row row;
    double share, mean_duration_ns, achieved_ci95, elapsed_ci95;
    double waves, full_waves, partial_blocks; /* of the configuration with most time */
    double main_cause_ratio, waste_warp_seconds, tail_low, waste_ratio, running_waste_ratio;
    char by_design[CLI_MARKS_BYTES], letters[CLI_LETTERS_BYTES];
    /* what would save most, at most how much, in which configuration; "", NaN: nothing, or top_advise() was
     * not called */
    char advice[96], knob[192];
    double advice_saves_ns, advice_config;
    /* of the configuration with most time; "": top_advise() was not called, or has no model for it */
    const char *bound;
    uint64_t bound_ns; /* its time */
};

/* Sums over all rows. */
struct top_sums {
    double ns, waste;
};

/* 0 where it is not known. */
double top_waste_of(const struct occ_top_row *row);

/* Of rows by range: the part of the time that has one; NaN: there is no time. */
double top_covered_ratio(const struct occ_top *top);

/* `running`: the waste of the row and of those above it. */
void top_fill_line(const struct occ_top_row *row, const struct top_sums *all, double running,
                   struct top_line *ret_line);

/* Advice for lines of kernels or of configurations. */
int top_advise(struct occ_store *store, const struct occ_filter *filter, bool by_config,
               struct top_line *lines, size_t n, struct occ_error *err);

#define TOP_COLUMNS_MAX CLI_MAX_COLUMNS
/* The row's number and name are the first two. */
extern const struct cli_column top_columns[];
extern const size_t top_columns_bytes;

#endif
