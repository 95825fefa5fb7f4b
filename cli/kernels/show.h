/* What `occq show` and others say of kernels: groups of launch configurations, as JSON, and parts of pages
 * for people. One thread (stdio). */
#pragma once

#include <stddef.h>

#include "cli/analysis/analysis.h"
#include "store/store.h"

/* Launch configurations of one kernel on one device. */
struct show_group {
    const struct occ_config_row *configs; /* most time first; at least one */
    size_t n;
    size_t shown; /* the first of them */
    uint64_t launches, total_ns;
    bool has_no_ranges;    /* they were not looked for */
    struct occ_top ranges; /* most time first; without rows where the history knows none */
    /* of those shown: what Nsight Compute has nearest to the configuration, and what differs; NULL: it has
     * the same, or nothing of the kernel; all NULL: not looked for */
    char **nearest;
};

/* The rows by kernel and device, those with most time first; they must outlive the groups. `shown_max`: of
 * the configurations of each. */
int show_groups_make(const struct occ_config_rows *rows, size_t shown_max, struct show_group **ret_groups,
                     size_t *ret_n, struct occ_error *err);
/* NULL is fine. */
void show_groups_free(struct show_group **groups);

/* Member "kernels" of the open object: all groups. */
void show_json(struct occ_json *json, const struct show_group *groups, size_t n);

/* The analysis of a row; *ret_means holds its measured means, with Nsight Compute's utilization where there
 * is none of ours. Both refer to the row. */
struct analysis show_analysis(const struct occ_config_row *row, struct occ_measurement *ret_means);

/* Where the group's launches were made; the caller frees group->ranges. */
int show_find_ranges(struct occ_store *store, const struct occ_filter *filter, struct show_group *group,
                     struct occ_error *err);
/* Those with most time. Prints nothing if none is known. */
void show_ranges(const struct show_group *group);
/* The member "ranges" of the open object. */
void show_json_ranges(struct occ_json *json, const struct show_group *group);

/* What counters measured: launches by source, the group's means, the SMs. Prints nothing if nothing was
 * measured. */
void show_measured(const struct occ_config_row *row, const struct occ_measurement *measured);
/* The member "measured" of the open object. */
void show_json_measured(struct occ_json *json, const struct occ_config_row *row,
                        const struct occ_measurement *measured);

/* What Nsight Compute has of the configuration, beside ours, with the reason for each difference. Prints
 * nothing, null, if no report has it. */
void show_ncu(const struct occ_config_row *row);
void show_json_ncu(struct occ_json *json, const struct occ_config_row *row);
/* What it has of the units' utilization; all NaN: no report has it. */
struct occ_hw_utilization show_ncu_utilization(const struct occ_config_row *row);

/* ---- the occupancy that a recording itself reports, beside ours (reported_occupancy.c); pure ---- */

/*
 * Kineto's "est. achieved occupancy %" is an estimate from the configuration, not measured:
 *   min(blocks / SMs, its own blocks per SM) x threads per block / maximum threads per SM,
 * in whole percent; blocks that need more shared memory than a kernel has without opting in count as
 * impossible, 0 %. (Source: the values in public recordings, which this reproduces.) Returns the reason for a
 * difference; "" if the reported value is the expected one within its rounding.
 */
const char *reported_difference(const struct occ_config_row *row);

/* Our value nearest to it in meaning: theoretical occupancy, or for less than a wave expected_elapsed_low.
 * NaN: not analysed. */
double reported_expected(const struct occ_config_row *row);
