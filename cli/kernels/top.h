/* What `occq top` prints of a row. One thread. */
#pragma once

#include "cli/gather.h"
#include "cli/marks.h"
#include "cli/values.h"
#include "store/store.h"

/* A row and what follows from it; NaN and "": not known. */
struct top_line {
    struct occ_top_row row;
    double share, mean_duration_ns, achieved_ci95, elapsed_ci95;
    double waves, full_waves, partial_blocks; /* of the configuration with most time */
    double main_cause_ratio, waste_warp_seconds, tail_low, small_grid_low, waste_ratio, running_waste_ratio;
    char limiters[64];
    char expected[24]; /* both ends of expected achieved occupancy */
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
    uint64_t launches;
};

/* 0 where it is not known. */
double top_waste_of(const struct occ_top_row *row);

/* Of rows by range: the part of the time that has one; NaN: there is no time. */
double top_covered_ratio(const struct occ_top *top);

/* The cause with that label; OCC_PART_COUNT: none. */
unsigned top_part_of(const char *label);

/* `by`: "waste", "time", "launches", "occupancy" (the lowest first), or a cause's label. */
void top_sort(struct occ_top *top, const char *by);

/* Whether two of the first `n` rows differ in their device alone. false also without memory. */
bool top_needs_device(const struct occ_top *top, size_t n, enum occ_top_by by);

struct top_sums top_sum(const struct occ_top *top);

/* `running`: the waste of the row and of those above it. A million rows need the memory of one line. */
void top_make_line(const struct occ_top_row *row, const struct top_sums *all, double running,
                   struct top_line *ret_line);

/* The first `n` rows, to be freed; the sums are of all. NULL: no memory. */
struct top_line *top_make_lines(const struct occ_top *top, size_t n, struct top_sums *ret_all);

/* Advice for lines of kernels or of configurations. */
int top_advise_rows(const struct occ_config_rows *configs, bool by_config, struct top_line *lines, size_t n,
                    struct occ_error *err);
int top_advise(struct occ_store *store, const struct occ_filter *filter, bool by_config,
               struct top_line *lines, size_t n, struct occ_error *err);

#define TOP_COLUMNS_MAX CLI_MAX_COLUMNS
/* The row's number and name are the first two. */
extern const struct cli_column top_columns[];

extern const char *const top_by_labels[]; /* by enum occ_top_by, NULL ends them */
/* The columns by what rows are; -o knows the second one as "kernel" too, until top_name_rows(). */
void top_copy_columns(enum occ_top_by by, struct cli_column *table);
void top_name_rows(enum occ_top_by by, struct cli_column *table);
/* Of GPUs of a warehouse, what it does not know of them is null, and not shown. */
void top_leave_unknown(struct cli_column *table);
/* True if a row has a measured value. */
bool top_any_measured(const struct occ_top *top);
/* True for the columns of `top --advice`. */
bool top_is_of_advice(const char *name);
/* The order of top_sort(), by columns, and the columns that are shares of the sums over all rows. */
struct cli_merge top_merge_of(const char *order);
