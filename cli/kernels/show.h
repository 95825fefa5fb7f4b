/* Groups of launch configurations by kernel, as JSON and as parts of pages, for `occq show` and other
 * commands. One thread (stdio). */
#pragma once

#include <stddef.h>

#include "answer/answer.h"
#include "cli/analysis/analysis.h"
#include "store/store.h"

/* Launch configurations of one kernel on one device. */
struct show_group {
    const struct occ_config_row *configs; /* longest total time first; at least one */
    size_t n;
    size_t shown; /* number of first configurations to show */
    uint64_t launches, total_ns;
    bool has_no_ranges;    /* true: ranges were not searched */
    struct occ_top ranges; /* longest total time first; no rows if the history has none */
    /* for each shown configuration: the nearest configuration in Nsight Compute's reports and the
     * differences; NULL: the reports have the same configuration, or not this kernel; `nearest` NULL: not
     * searched */
    char **nearest;
    const struct occ_kernel_answer *answer; /* about configs[0]'s kernel; NULL: not asked */
};

/* Groups the rows by kernel and device, longest total time first. Rows of a group must be adjacent, longest
 * time first, and must outlive the groups. `shown_max`: limit of `shown` of each group. */
int show_groups_make(const struct occ_config_rows *rows, size_t shown_max, struct show_group **ret_groups,
                     size_t *ret_n, struct occ_error *err);
/* NULL is fine. */
void show_groups_free(struct show_group **groups);

/* Writes all groups as member "kernels" of the open object. */
void show_json(struct occ_json *json, const struct show_group *groups, size_t n);

/* Returns the analysis of a row, and its measured means in *ret_means. Utilization is from Nsight Compute if
 * our counters have none. Both refer to the row. */
struct analysis show_analysis(const struct occ_config_row *row, struct occ_measurement *ret_means);

/* Finds the ranges of the group's launches; the caller frees group->ranges. */
int show_find_ranges(struct occ_store *store, const struct occ_filter *filter, struct show_group *group,
                     struct occ_error *err);
/* Prints the ranges with the longest total time. Prints nothing without ranges. */
void show_ranges(const struct show_group *group);
/* Writes the member "ranges" of the open object. */
void show_json_ranges(struct occ_json *json, const struct show_group *group);

/* Prints the counters' values: launches by source, the group's means, the SMs. Prints nothing without
 * measured values. */
void show_measured(const struct occ_config_row *row, const struct occ_measurement *measured);
/* Writes the member "measured" of the open object. */
void show_json_measured(struct occ_json *json, const struct occ_config_row *row,
                        const struct occ_measurement *measured);

/* Print Nsight Compute's values of the configuration beside ours, with the reason for each difference.
 * Without a report, show_ncu() prints nothing and show_json_ncu() writes null. */
void show_ncu(const struct occ_config_row *row);
void show_json_ncu(struct occ_json *json, const struct occ_config_row *row);

/* ---- the occupancy in a recording, beside ours (reported_occupancy.c); pure ---- */

/*
 * Explains a difference to Kineto's "est. achieved occupancy %", an estimate from the configuration:
 *   min(blocks / SMs, its own blocks per SM) x threads per block / maximum threads per SM,
 * in whole percent. Blocks with more shared memory than a kernel has without opting in count as impossible:
 * 0 %. (Source: the formula reproduces the values in public recordings.) Returns the reason for a difference;
 * "" if the reported value is the expected value within its rounding.
 */
const char *reported_difference(const struct occ_config_row *row);

/* Returns our value with the nearest meaning: theoretical occupancy, or expected_elapsed_high for less than a
 * full wave. NaN: not analysed. */
double reported_expected(const struct occ_config_row *row);
