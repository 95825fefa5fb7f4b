/*
 * Launches in the order of their configurations, for GROUP BY config_id, or of their kernels, for GROUP BY
 * kernel_id. SQLite would sort all rows. A kernel is a function of the configuration: only configurations are
 * sorted by kernel, and each has a place in that order. Chunks are read in passes, each of as many places as
 * a bounded number of launches has, and only numbers of rows are sorted. A configuration of more launches
 * than that is read chunk by chunk. Threads: the connection's.
 */
#pragma once

#include "launch_scan.h"

struct occ_launch_group_config;

struct occ_launch_group {
    sqlite3_stmt *list;
    struct occ_range wanted;                 /* configurations, by the statement's conditions */
    bool was_narrowed;                       /* there are such conditions */
    struct occ_launch_group_config *configs; /* by place */
    uint32_t n_configs;
    size_t configs_allocated;
    struct occ_map places; /* configuration -> place */
    uint32_t *ends;        /* of each pass: the place after its last one */
    uint32_t n_ends, at;   /* passes, the next one */
    bool streams;          /* the pass is of one configuration */
    struct occ_launch_chunk one, gathered;
    uint64_t *values[OCC_COLUMN_none], *rowids;
    uint32_t *order, *spare; /* rows in the order of their places; for sorting */
    uint64_t capacity;       /* launches of the largest pass */
};

/* `columns`: what will be read; not of a launch's measured values, and its run or device only if all launches
 * that match have the same. `list` is the caller's, until the end of the scan. SQLite codes. */
int occ_launch_group_start(struct occ_launch_group *group, struct occ_launch_scan *scan, sqlite3_stmt *list,
                           bool by_kernel, uint32_t columns);
/* The next launches, of which the first is not passed over yet; NULL: there are none. */
int occ_launch_group_next(struct occ_launch_group *group, struct occ_launch_scan *scan,
                          struct occ_launch_chunk **ret_chunk);
void occ_launch_group_close(struct occ_launch_group *group);
