/* Groups of launch configurations by kernel, as JSON and as parts of pages, for `occq show` and other
 * commands. One thread (stdio). */
#pragma once

#include <stddef.h>

#include "answer/answer.h"
#include "cli/analysis/analysis.h"
#include "store/store.h"

/* Launch configurations of one kernel on one device. The rows belong to the caller of show_groups_make(). */
struct show_group {
    const struct occ_config_row *configs; /* longest total time first; at least one; NULL: end of the array */
    size_t n;
    size_t shown; /* number of first configurations to show */
    uint64_t launches, total_ns;
    bool ranges_skipped;   /* true: ranges were not searched, and JSON has null */
    struct occ_top ranges; /* longest total time first; no rows if the history has none */
    /* a text for each shown configuration: the nearest configuration in Nsight Compute's reports and the
     * differences; NULL: the reports have the same configuration, or not this kernel. `nearest` NULL: not
     * searched */
    char **nearest;
    const struct occ_kernel_answer *answer; /* about configs[0]'s kernel; NULL: not asked */
};

/* Groups the rows by kernel and device, longest total time first. Rows of a group must be adjacent, longest
 * time first, and must outlive the groups. `shown_max`: limit of `shown` of each group. *ret_n: number of
 * groups, without the end of the array. The caller calls show_groups_free(). Returns 0 or OCC_E_NO_MEMORY. */
int show_groups_make(const struct occ_config_rows *rows, size_t shown_max, struct show_group **ret_groups,
                     size_t *ret_n, struct occ_error *err);
/* Frees the array *groups, which may be NULL, up to its end, with the groups' ranges and nearest texts. */
void show_groups_free(struct show_group **groups);

/* Writes all groups as member "kernels" of the open object. */
void show_json(struct occ_json *json, const struct show_group *groups, size_t n);

/* Returns the analysis of a row, and its measured means in *ret_means. Utilization is from Nsight Compute if
 * our counters have none. The analysis refers to the row and to *ret_means. */
struct analysis show_analysis(const struct occ_config_row *row, struct occ_measurement *ret_means);

/* Sets group->ranges: the ranges of the group's launches that the filter selects. show_groups_free() frees
 * them. */
int show_find_ranges(struct occ_store *store, const struct occ_filter *filter, struct show_group *group,
                     struct occ_error *err);
/* Prints the three ranges with the longest total time, and the part of the time that has a range. Prints
 * nothing without ranges. */
void show_ranges(const struct show_group *group);
/* Writes the member "ranges" of the open object. */
void show_json_ranges(struct occ_json *json, const struct show_group *group);

/* Prints the counters' values: launches by source, the means of the kernels that always run together, the
 * SMs. Prints nothing without measured values. */
void show_measured(const struct occ_config_row *row, const struct occ_measurement *measured);
/* Writes the member "measured" of the open object. */
void show_json_measured(struct occ_json *json, const struct occ_config_row *row,
                        const struct occ_measurement *measured);

/* Print Nsight Compute's values of the configuration beside ours, with the reason for each difference; JSON:
 * write the member "ncu" of the open object. Without a report, show_ncu() prints nothing and show_json_ncu()
 * writes null. */
void show_ncu(const struct occ_config_row *row);
void show_json_ncu(struct occ_json *json, const struct occ_config_row *row);

/* ---- the occupancy in a recording, beside ours (reported_occupancy.c); pure ---- */

/*
 * Explains a difference to Kineto's "est. achieved occupancy %", an estimate from the configuration:
 *   min(blocks / SMs, its own blocks per SM) x threads per block / maximum threads per SM,
 * in whole percent. Blocks with more shared memory than a kernel has without opting in count as impossible:
 * 0 %. (Source: the formula reproduces the values in public recordings.) Returns the reason for the
 * difference between row->reported and reported_expected(), a static text; "" if they are equal within the
 * rounding.
 */
const char *reported_difference(const struct occ_config_row *row);

/* Returns our value with the nearest meaning: theoretical occupancy, or expected_elapsed_high for less than a
 * full wave. NaN: not analysed. */
double reported_expected(const struct occ_config_row *row);
