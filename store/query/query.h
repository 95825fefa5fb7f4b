/*
 * Shared by the queries: a filter resolved to ids and times, and sums of launches and of measured values by
 * launch configuration. A query runs inside one read transaction, which the caller has begun, so that an
 * answer is a single snapshot. Times (..._ns) are since the epoch. One thread.
 */
#pragma once

#include "store/holes.h"
#include "store/internal.h"
#include "support/arena.h"

/* Round a time that is not negative to a multiple of `unit`. */
static inline int64_t occ_round_down(int64_t ns, int64_t unit)
{
    return ns / unit * unit;
}

static inline int64_t occ_round_up(int64_t ns, int64_t unit)
{
    int64_t down = occ_round_down(ns, unit);
    return down == ns ? ns : down > INT64_MAX - unit ? INT64_MAX : down + unit;
}

/* A run that may have launches matching the filter. */
struct occ_filtered_run {
    int64_t id, first_ns, last_ns; /* first and last start of a launch */
    int64_t evicted_ns;            /* whole minutes: chunks of earlier launches may be evicted */
    int64_t rolled_ns;             /* the rollups contain exactly the launches that start earlier */
    uint32_t group; /* if `top` groups by run or by a text of runs: index of the group's first run; else 0 */
    char *text;     /* text of the group; NULL: unknown. Belongs to the resolved filter */
};

enum { OCC_ANY_GROUP = -1 };

/* A group of ranges with equal paths. The path belongs to the resolved filter. */
struct occ_range_group {
    const char *path; /* NULL: no range */
    bool is_backward; /* only with by_phase; else false */
};

/* The runs and configurations that a filter selects. */
struct occ_resolved_filter {
    struct occ_span time;
    int64_t stream;        /* 0: any */
    bool by_stream;        /* totals are also grouped by stream */
    int64_t unit_ns;       /* totals are also grouped by these units of time; 0: not by time */
    bool by_range;         /* totals are also grouped by range: the group is a range's path */
    bool by_phase;         /* only with by_range: the group is a path in a phase */
    bool has_range_filter; /* only launches with a range in `ranges` */
    bool graphs;           /* only launches of CUDA graphs */
    struct occ_map ranges; /* occ_range_key() of a selected range -> index of its group in range_groups */
    struct occ_arena range_texts;
    struct occ_range_group *range_groups; /* group 0: launches without a range */
    size_t n_ranges, ranges_allocated;    /* number of range_groups */
    struct occ_span hours;                /* the part of `time` that hour rollups may answer; may be empty */
    bool any_config;
    struct occ_map configs; /* selected configurations, unless any_config */
    struct occ_filtered_run *runs;
    size_t n_runs, runs_allocated;
    struct occ_map run_index; /* id -> index in runs */
    struct occ_map groups;    /* hash of a group's text -> index of its first run */
    int64_t first_minute_ns;  /* rows of earlier minutes were evicted */
};

/* Resolves the filter. *f is overwritten; the caller frees it with occ_resolved_filter_free(), also after a
 * failure. OCC_E_USAGE: a text for kernels or ranges is neither a name nor a regular expression, or is the
 * cut name of several kernels. */
int occ_filter_resolve(struct occ_store *s, const struct occ_filter *filter, enum occ_top_by by,
                       struct occ_resolved_filter *f, struct occ_error *err);
void occ_resolved_filter_free(struct occ_resolved_filter *f);

/* Resolves only the ranges: of the only run of `f`, or else of all runs of the history. `text`: a path, a
 * path that a narrow screen cut, or a regular expression; NULL: all ranges if totals are grouped by range,
 * else none. Errors as above. */
int occ_filter_resolve_ranges(struct occ_store *s, const char *text, struct occ_resolved_filter *f,
                              struct occ_error *err);

static inline bool occ_filter_has_config(const struct occ_resolved_filter *f, uint64_t config)
{
    return f->any_config || occ_map_get(&f->configs, config) != OCC_MAP_NONE;
}

/* Adds totals by configuration to `table`. Key: group << 32 | configuration; the group is the number of the
 * run's group, of the range's group, of the stream or of the unit of time. A configuration whose launches are
 * all excluded has an entry without launches. `detailed`: with histograms and first and last start; otherwise
 * without them (faster). OCC_E_CORRUPT: a chunk or a histogram is damaged. */
int occ_sum_by_config(struct occ_store *s, struct occ_resolved_filter *f, bool detailed,
                      struct occ_totals_table *table, struct occ_error *err);

/* Reads a configuration's sums of measured values over the filter's runs, for the whole minutes around the
 * filter's time. `group`: only this group of runs; OCC_ANY_GROUP: all. */
int occ_measured_read(struct occ_store *s, const struct occ_resolved_filter *f, int64_t config, int64_t group,
                      struct occ_measured_sums *ret_sums, struct occ_error *err);

/* The same by the filter's units of time: occ_measured_first() begins with a configuration, then
 * occ_measured_of_unit() reads the sums of one unit, `group`, in ascending order of units. Rows must not be
 * used after the next occ_measured_first() or occ_measured_read() on the store, which use the same statement.
 */
struct occ_measured_rows {
    sqlite3_stmt *stmt; /* positioned on the next row; belongs to the store */
    int64_t in_unit;    /* number of minutes or hours in a unit */
    bool has_row;       /* false: all rows were read */
};
int occ_measured_first(struct occ_store *s, const struct occ_resolved_filter *f, int64_t config,
                       struct occ_measured_rows *ret_rows, struct occ_error *err);
int occ_measured_of_unit(struct occ_store *s, const struct occ_resolved_filter *f,
                         struct occ_measured_rows *rows, int64_t group, struct occ_measured_sums *ret_sums,
                         struct occ_error *err);
