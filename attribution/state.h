/* The state of one attribution and the steps that its files share (their order: attribution.c). */
#pragma once

#include "attribution.h"
#include "constants.h"
#include "support/array.h"
#include "support/map.h"

#define OCC_RATIO_DIRECT OCC_RATIO_UTILIZATION /* those before are read from single launches too */
#define OCC_NONE         UINT32_MAX

/* The functions of a regressor, each a column. The occupancy of its launches over u = (time - start) /
 * duration, 0...1, is a mean; plus Haar wavelets, of level i 2^i, which matter only where a sample's edge
 * cuts a launch; plus elasticity x (mean duration / duration - 1): a launch that takes longer often has fewer
 * warps, and without it durations bias the means of those before and after. First ones have room first; those
 * without, or of which rows have little, are taken to be a x bound + b: most kernels drain, which is not the
 * clocks' offset. */
#define OCC_LEVELS     3
#define OCC_ELASTICITY 4U /* after two levels */
#define OCC_COLUMNS    ((1U << OCC_LEVELS) + 1)

/* The first columns of all equations. */
enum occ_special {
    OCC_SPECIAL_IDLE,   /* share of the time in which no launch is known to run */
    OCC_SPECIAL_OFFSET, /* how the prediction changes with the clocks' offset, per us ... */
    OCC_SPECIAL_DRIFT,  /* ... and with its drift */
    OCC_SPECIAL_SHARED, /* two for each function but the mean: a and b of those without room */
    OCC_SPECIAL = OCC_SPECIAL_SHARED + 2 * (OCC_COLUMNS - 1)
};

/* A launch configuration (of one graph node). */
struct occ_regressor {
    uint64_t shape;
    double bound;                                          /* of elapsed occupancy */
    double prior[OCC_RATIO_COUNT], value[OCC_RATIO_COUNT]; /* value: the last estimate */
    double grid;                                           /* blocks of a launch; NaN */
    double before;                                         /* of warps: the estimate before */
    double profile[OCC_COLUMNS];                           /* of warps, by function but the mean */
    double utilization_se[OCC_UTILIZATION_COUNT];          /* NaN: not known */
    double launches, launch_ns, overlapped_ns;             /* of late */
    double untold;                /* part of the last while without a value that was certain enough */
    uint32_t entry[OCC_COLUMNS];  /* by function: in the row that is made now, if it is its column's */
    uint32_t place[OCC_COLUMNS];  /* by function: column of the equations that are solved now; OCC_NONE */
    struct occ_measured measured; /* as of the last estimate */
};

struct occ_queued_launch {
    int64_t start_ns, end_ns; /* start < end */
    uint64_t tag;
    uint32_t regressor;
    bool is_late; /* it came when advance() had passed its start, and is not in rows */
    bool covered; /* a sample saw it */
};

struct occ_entry {
    uint32_t column; /* regressor x OCC_COLUMNS + function */
    float share;
};

/* A sample as a row of the equations. */
struct occ_row {
    struct occ_row *before, *next; /* in time */
    int64_t start_ns, end_ns;
    double offset_ns;        /* by which the clocks were taken to differ */
    double idle, gradient;   /* as in enum occ_special */
    double variance;         /* expected, but for a factor that residuals give */
    double launched, others; /* blocks; but for those of its launches; NaN: not counted */
    double imbalance;        /* 1 - least / most active SM's cycles; NaN: not of one launch */
    float ratio[OCC_RATIO_COUNT];
    uint32_t phase, n; /* phase: equal for rows that begin at the same place of the same regressor */
    struct occ_entry *entries;
};

/* What no launch explained of rows that are dropped, and start in the same OCC_PAST_NS. */
struct occ_past {
    int64_t number, end_ns;                            /* since the epoch; of the last row */
    float sum[OCC_RATIO_DIRECT], ns[OCC_RATIO_DIRECT]; /* x time; time in which it was counted */
    float busy_ns;                                     /* time in which launches are known to have run */
    uint32_t late;                                     /* late launches that ran in it, too */
};

struct occ_rows {
    struct occ_row *first, *last;
    size_t bytes;
    size_t busy, fresh; /* rows with launches; new ones since the last estimate, and old ones that left */
};

struct occ_estimate {
    bool known;
    double room;  /* columns for functions but means; none where profiles would hide the clocks' offset */
    double faded; /* by which what is of the last while counts less than in the estimate before */
    int64_t made_ns, due_ns; /* end of its samples; when the next one is */
    int64_t clock_ns;        /* launch time + offset + drift x (time - this) = sample time */
    double offset_ns, drift;
    double idle[OCC_RATIO_COUNT]; /* while no launch is known to run */
    double scale;                 /* of rows' variances */
    double untraced, untraced_sd; /* occupancy of work that nobody traced */
};

struct occ_attribution {
    struct occ_attribution_options options;
    struct occ_attribution_stats stats;
    struct occ_estimate estimate;
    struct occ_regressor *regressors;
    struct occ_map index; /* of regressors, by shape and graph node */
    uint32_t busy;        /* regressor whose launch is the last to end, so far: */
    int64_t busy_until_ns;
    struct occ_rows rows, utilization_rows; /* the latter are few, and kept for longer */
    struct occ_past past[OCC_PAST_COUNT];   /* by number modulo this */
    /* what waits: launches by start, but for late ones; samples */
    struct occ_queued_launch *launches;
    struct occ_attribution_sample *samples;
    size_t n_regressors, n_launches, n_samples;
    size_t regressors_allocated, launches_allocated, samples_allocated;
    int64_t advanced_ns, joined_ns; /* launches before are all here; end of the joined samples */
    double longest_ns, shortest_ns; /* of the samples */
    int64_t again_ns;               /* rows that start then or later are joined again */
    /* the row that is being made: its launches, and its entries until the next one */
    size_t next_launch, n_running; /* next: the first that has not started */
    uint32_t running[OCC_RUNNING_MAX];
    struct occ_entry entries[OCC_ENTRIES_MAX];
};

/* Not hypot(): its version of glibc 2.35 would keep the portable bundle from running with 2.34. */
static inline double occ_quadrature(double a, double b)
{
    return sqrt(a * a + b * b);
}

/* To be added to launch times, to get sample times. */
static inline double occ_clock_offset(const struct occ_attribution *a, int64_t at_ns)
{
    return a->estimate.offset_ns + a->estimate.drift * (double)(at_ns - a->estimate.clock_ns);
}

/* Of a row's column in the equations that are solved now; OCC_NONE. */
static inline uint32_t *occ_place(const struct occ_attribution *a, uint32_t column)
{
    return &a->regressors[column / OCC_COLUMNS].place[column % OCC_COLUMNS];
}

/* By how much a launch is shorter than others of its configuration, in its own duration. */
static inline double occ_shorter(const struct occ_regressor *regressor, double duration_ns)
{
    return regressor->launch_ns / regressor->launches / duration_ns - 1;
}

/* Makes a row of the sample and its launches, for the equations. Without room for all it is not kept. */
void occ_join(struct occ_attribution *a, const struct occ_attribution_sample *sample);
/* What the row counted that no launch explains, by present values; returns the variance as of a row. */
double occ_join_unexplained(const struct occ_attribution *a, const struct occ_row *row,
                            double ret_ratio[OCC_RATIO_DIRECT]);
/* Drops rows that have a part of [from_ns, to_ns), and the oldest while there are more bytes. What no launch
 * explains of those of `rows` goes into the past. */
void occ_join_forget(struct occ_attribution *a, struct occ_rows *rows, int64_t from_ns, int64_t to_ns,
                     size_t bytes_max);
/* Drops all rows that start at this time or later, and starts anew to look for what runs. */
void occ_join_undo(struct occ_attribution *a, int64_t from_ns);

struct occ_column {
    uint32_t regressor;
    double precision; /* 1 / variance, if other columns were known */
    double variance;  /* of a mean */
    bool in_group;    /* one was tried; all of them would cost the cube of their number */
};

/* A weighted least squares problem and its solution. Columns: special ones, means, other functions. */
struct occ_solution {
    const struct occ_rows *from;
    enum occ_ratio lead; /* rows are used that count this */
    uint32_t n, means_end;
    bool is_unknown[OCC_RATIO_COUNT]; /* all of the rows count it, and it is not known yet */
    double rows, busy_rows;           /* number; of those with launches ... */
    double squares, counted;          /* ... and of their residuals, in units of the variance; by all rows */
    double launched, others, others_squares; /* blocks, in rows of no idle time; of such, no launch's */
    struct occ_column *columns;
    double *inverse; /* (X' X / variance + prior)^-1 (equations.h) */
    double *rhs;     /* n x OCC_RATIO_COUNT; solved: x */
    double *score;   /* 2 x n x OCC_CLUSTERS: what rows of one begin add to x, to that of active SMs */
    double *x, *prior, *scratch; /* of one response; 1 / variance before rows; n x OCC_CLUSTERS */
};

/* Estimates everything from the rows; nothing where there is no memory for it. */
void occ_solve(struct occ_attribution *a);
/* Sets the variances of means, by what the equations give and by how clusters of rows scatter. */
void occ_errors_find(struct occ_solution *s);
/* Sets every regressor's `measured` from its values. */
void occ_errors_report(struct occ_attribution *a, const struct occ_solution *s);
/* Fills in what the ratios and the variance of that of warps say, of one launch or a selection of means. */
void occ_errors_fill(const struct occ_attribution *a, const double *ratio, double variance,
                     struct occ_measured *measured);
/* Fills in the regressor's utilization, where occupancy is its own. */
void occ_errors_fill_utilization(const struct occ_attribution *a, const struct occ_regressor *regressor,
                                 struct occ_measured *measured);
/* Takes note of a launch that was reported after its samples were joined: where it ran is the past. */
void occ_direct_mark(struct occ_attribution *a, const struct occ_queued_launch *launch);
/* A launch's own value, from the rows; of a late one, from the past. False: it has none. */
bool occ_direct_read(struct occ_attribution *a, const struct occ_queued_launch *launch,
                     struct occ_measured *ret_measured);
