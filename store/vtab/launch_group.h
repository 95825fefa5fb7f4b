/*
 * Launches in the order of their configurations, for GROUP BY config_id, or of their kernels, for GROUP BY
 * kernel_id. SQLite would sort all rows. A kernel is a function of the configuration: only configurations are
 * sorted by kernel, and each has a rank in that order. Chunks are read in passes, each of as many ranks as
 * a bounded number of launches has, and only numbers of rows are sorted. A configuration of more launches
 * than that is read chunk by chunk. Threads: the connection's.
 */
#pragma once

#include "launch_scan.h"

struct occ_launch_group_config;

struct occ_launch_group {
    sqlite3_stmt *list;
    struct occ_range wanted;                 /* configurations that the statement's conditions allow */
    bool was_narrowed;                       /* the statement has such conditions */
    struct occ_launch_group_config *configs; /* ordered by rank */
    uint32_t n_configs;
    size_t configs_allocated;
    struct occ_map ranks; /* configuration -> rank */
    uint32_t *ends;       /* for each pass: the rank after its last rank */
    uint32_t n_ends, at;  /* number of passes; the next pass */
    bool streams;         /* the pass has a single configuration and is streamed */
    struct occ_launch_chunk one, gathered;
    uint64_t *values[OCC_COLUMN_none], *rowids;
    uint32_t *order, *sort_buffer; /* row numbers in the order of their ranks; buffer for sorting */
    uint64_t capacity;             /* launches of the largest pass */
};

/* `columns`: columns to read. They must not include a launch's measured values, and its run or device only if
 * all matching launches have the same. The caller owns `list`, which must live until the end of the scan.
 * SQLite codes. */
int occ_launch_group_start(struct occ_launch_group *group, struct occ_launch_scan *scan, sqlite3_stmt *list,
                           bool by_kernel, uint32_t columns);
/* The next launches, of which the first is not consumed yet; NULL: no more. */
int occ_launch_group_next(struct occ_launch_group *group, struct occ_launch_scan *scan,
                          struct occ_launch_chunk **ret_chunk);
void occ_launch_group_close(struct occ_launch_group *group);
