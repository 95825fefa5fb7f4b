/* Rows of `occq top` with their columns and order. One thread. */
#pragma once

#include "answer/answer.h"
#include "cli/gather.h"
#include "cli/marks.h"
#include "cli/values.h"
#include "store/store.h"

/* A row and values computed from it; NaN and "": unknown. Texts belong to the row's answer, or are static. */
struct top_line {
    struct occ_top_row row;
    double gpu_share; /* share of the GPU time */
    double share;     /* share of the total time of all rows */
    double mean_duration_ns;
    double achieved_ci95, elapsed_ci95;       /* half widths of the 95 % intervals */
    double waves, full_waves, partial_blocks; /* waves of the configuration with the longest total time */
    double main_cause_ratio;
    double tail_low, small_grid_low; /* low ends of these parts of the waterfall */
    double waste_warp_seconds;
    double waste_ratio,
        running_waste_ratio; /* shares of the waste of all rows: this row; rows up to this one */
    char limiters[64];
    char expected[24];       /* range of expected achieved occupancy */
    char why[OCC_WHY_BYTES]; /* the largest cause in words; "": none */
    const char *whose;       /* owner of the kernel in words; NULL: the row is no kernel */
    char by_design[CLI_MARKS_BYTES], letters[CLI_LETTERS_BYTES]; /* marks as words, and as letters */
    /* the change that `occq show` answers for the kernel, or else the advice with the largest predicted
     * saving: in words, in CUDA's terms, its saving, and the number of its configuration. "" and NaN: none,
     * or not asked */
    char advice[96], knob[192];
    double advice_saves_ns, advice_config;
    bool is_answered; /* the advice is the change of `occq show`, also if it is "" */
    /* bound of the configuration with the longest total time; "": not asked, or no model */
    const char *bound;
    uint64_t bound_ns; /* total time of this configuration */
};

/* Sums over all rows. */
struct top_sums {
    double ns, waste; /* waste: in warp-seconds */
    uint64_t launches;
    const struct occ_overview
        *overview; /* overview of the same launches; NULL: shares of GPU time are unknown */
};

/* Returns the waste in warp-seconds; 0: unknown. */
double top_waste_of(const struct occ_top_row *row);

/* Returns the part of the total time with a range, from rows by range; NaN: the total time is 0. */
double top_covered_ratio(const struct occ_top *top);

/* Returns the cause with this label; OCC_PART_COUNT: none. */
unsigned top_part_of(const char *label);

/* Sorts the rows. `by`: "waste", "time", "launches", "occupancy" (lowest first), or a cause's label. */
void top_sort(struct occ_top *top, const char *by);

/* Returns true if two of the first `n` rows differ only in their device. Only kernels, configurations and
 * streams can differ so. Returns false without memory. */
bool top_needs_device(const struct occ_top *top, size_t n, enum occ_top_by by);

/* Adds up all rows. `overview` is NULL; the caller may set it. */
struct top_sums top_sum(const struct occ_top *top);

/* Makes one line, so that a million rows need the memory of one line. `running`: sum of top_waste_of() of
 * this row and the rows above. */
void top_make_line(const struct occ_top_row *row, const struct top_sums *all, double running,
                   struct top_line *ret_line);

/* Makes lines of the first `n` rows, and sums of all rows; the caller frees the lines. NULL: no memory.
 * `overview`: as in struct top_sums. */
struct top_line *top_make_lines(const struct occ_top *top, size_t n, const struct occ_overview *overview,
                                struct top_sums *ret_all);

/* Adds to lines of kernels or of configurations (by_config) the bound of the configuration with the longest
 * total time; and, to lines that are not answered, the advice with the largest predicted saving, in the
 * owner's words. Returns 0 or OCC_E_NO_MEMORY. */
int top_advise_rows(const struct occ_config_rows *configs, bool by_config, struct top_line *lines, size_t n,
                    struct occ_error *err);

#define TOP_COLUMNS_MAX CLI_MAX_COLUMNS
/* The first two columns are the row's number and name. */
extern const struct cli_column top_columns[];

/* Labels of the kinds of rows of OCC_TOP_BY, without units of time; NULL ends them. Indexed by enum
 * occ_top_by. */
extern const char *const top_by_labels[];
/* Copies the columns for the kind of rows into `table`, which has room for TOP_COLUMNS_MAX. The second column
 * keeps the key "kernel" for -o until top_name_rows(). */
void top_copy_columns(enum occ_top_by by, struct cli_column *table);
/* Sets the second column's key for the kind of rows. */
void top_name_rows(enum occ_top_by by, struct cli_column *table);
/* Empties the columns that a warehouse does not know by GPU model, and hides them by default. */
void top_leave_unknown(struct cli_column *table);
/* Shows the share of kernel time instead of the share of GPU time, which is not known. */
void top_use_kernel_time(struct cli_column *table);
/* Returns true if a row has a measured value. */
bool top_any_measured(const struct occ_top *top);
/* Returns true for the name of a column that `top --advice` shows. */
bool top_is_of_advice(const char *name);
/* Returns the columns with the order of top_sort(), and the columns that are shares of the sums over all
 * rows. */
struct cli_merge top_merge_of(const char *order);
