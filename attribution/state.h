/*
 * The state of one attribution and the steps that its files share (attribution.c says how they follow each
 * other). Nothing else includes it.
 */
#pragma once

#include "attribution.h"
#include "constants.h"
#include "support/array.h"
#include "support/map.h"

/* What is regressed. Ratios: warps and active of what the GPU has, blocks a mean per SM, stalls of cycles,
 * utilizations of the peak. The first ones are read from single launches too. */
enum occ_response {
    OCC_RESPONSE_WARPS,
    OCC_RESPONSE_ACTIVE,
    OCC_RESPONSE_BLOCKS,
    OCC_RESPONSE_STALLS,
    OCC_RESPONSE_DIRECT = OCC_RESPONSE_STALLS + 5,
    OCC_RESPONSE_UTILIZATION = OCC_RESPONSE_DIRECT,
    OCC_RESPONSE_COUNT = OCC_RESPONSE_UTILIZATION + OCC_UTILIZATION_COUNT
};

/* Columns that rows have besides regressors'. */
enum occ_special {
    OCC_SPECIAL_IDLE,   /* share of the time in which no launch is known to run */
    OCC_SPECIAL_OFFSET, /* how the prediction changes with the clocks' offset, per us ... */
    OCC_SPECIAL_DRIFT,  /* ... and with its drift */
    OCC_SPECIAL
};

#define OCC_NONE UINT32_MAX

/* The functions of a regressor, each a column. The occupancy of its launches over u = (time - start) /
 * duration, 0...1, is a mean; plus Haar wavelets, which matter only where a sample's edge cuts a launch, and
 * there only the one of each level that has u in it: of level i there are 2^i; plus elasticity x (mean
 * duration / duration - 1), for a launch that takes longer often has fewer warps: without it its length told
 * wrong things of those beside it. Where there is no room for all, first ones have it first. */
#define OCC_LEVELS     3
#define OCC_ELASTICITY 4U /* after two levels */
#define OCC_COLUMNS    ((1U << OCC_LEVELS) + 1)

/* A launch configuration (of one graph node). */
struct occ_regressor {
    uint64_t shape;
    float bound;                                                /* of elapsed occupancy */
    float prior[OCC_RESPONSE_COUNT], value[OCC_RESPONSE_COUNT]; /* value: the last estimate */
    float before;                                               /* of warps: the estimate before */
    float profile[OCC_COLUMNS];                                 /* of warps, by function but the mean */
    float utilization_se[OCC_UTILIZATION_COUNT];                /* NaN: not known */
    double launches, launch_ns, overlapped_ns;                  /* of late */
    double untold;                  /* part of the last while in which no value was certain enough */
    double imbalance, imbalance_ns; /* of launches that are read directly: as in struct occ_sums */
    uint32_t entry[OCC_COLUMNS];    /* by function: in the row that is made now, if it is its column's */
    struct occ_measured measured;   /* as of the last estimate */
};

struct occ_regressors {
    struct occ_regressor *items;
    size_t n, allocated;
    struct occ_map index; /* by shape and graph node */
};

/* Sums of value x ns, and the ns for which each was counted. */
struct occ_sums {
    double sum[OCC_RESPONSE_DIRECT], ns[OCC_RESPONSE_DIRECT];
    double variance; /* of the mean of warps */
    double imbalance, imbalance_ns;
    double busy_ns, counted; /* of the past: while launches ran; of warps, whatever explains them */
};

/* Of a launch that is read directly. */
struct occ_direct {
    struct occ_sums sums;
    double shared; /* standard error of what it has of samples with others, x ns */
    uint32_t samples;
};

struct occ_queued_launch {
    int64_t start_ns, end_ns; /* start < end */
    uint64_t tag;
    struct occ_direct *direct; /* NULL: not read directly */
    float overlapped_ns;       /* of its time while others ran */
    uint32_t regressor;
    bool is_late; /* it came when its first samples were joined, and is not in rows */
    bool covered; /* a sample saw it */
};

/* One launch in one sample. */
struct occ_part {
    uint32_t launch;
    float time_share;       /* of the sample's length */
    float at_start, at_end; /* u at the sample's edges; negative: did not run there */
    float by_profile;       /* what all but the mean adds to the sample, as of now */
};

/* Column: regressor x OCC_COLUMNS + function. */
struct occ_entry {
    uint32_t column;
    float share;
};

/* A sample as a row of the equations. */
struct occ_row {
    int64_t start_ns;
    float length_ns, offset_ns; /* offset: by which the clocks were taken to differ */
    float idle, gradient;       /* what enum occ_special says */
    float variance;             /* expected, but for a factor that residuals give; infinite: not used */
    float response[OCC_RESPONSE_COUNT];
    uint32_t phase;    /* equal for rows that begin at the same place of the same regressor */
    uint32_t first, n; /* entries */
};

struct occ_rows {
    struct occ_row *rows;
    struct occ_entry *entries;
    size_t n, allocated, n_entries, entries_allocated;
    size_t fresh; /* rows since the last estimate */
};

/* What samples counted that no launch explains, in OCC_PAST_NS: as in struct occ_sums. */
struct occ_past {
    int64_t bin;
    float sum[OCC_RESPONSE_DIRECT], ns[OCC_RESPONSE_DIRECT], busy_ns, counted;
};

/* A sample, as the ratios that are regressed; NaN: not counted. */
struct occ_queued_sample {
    int64_t start_ns, end_ns;
    float ratio[OCC_RESPONSE_COUNT];
    float imbalance;  /* 1 - least / most active SM's cycles */
    bool is_possible; /* else a ratio is NaN that cannot be, and the others may be wrong too */
};

struct occ_queue {
    struct occ_queued_launch *launches; /* by start, but for late ones */
    size_t n_launches, launches_allocated;
    struct occ_queued_sample *samples;
    size_t n_samples, samples_allocated;
    int64_t busy_until_ns; /* latest end of the launches so far ... */
    size_t busy_launch;    /* ... whose it is; SIZE_MAX: gone */
};

/* The last estimate. */
struct occ_estimate {
    bool known;
    int64_t due_ns;   /* when the next one is */
    int64_t made_ns;  /* end of its samples */
    double faded;     /* of the last while, since the estimate before */
    int64_t clock_ns; /* launch time + offset + drift x (time - this) = sample time */
    double offset_ns, drift;
    double idle[OCC_RESPONSE_COUNT]; /* while no launch is known to run */
    double scale;                    /* of rows' variances */
    double untraced, untraced_sd;    /* occupancy of work that nobody traced */
};

/* The row that is being made: its launches, and its entries until the next one. */
struct occ_making {
    size_t next_launch, n_parts; /* next: the first that has not started */
    struct occ_part parts[OCC_PARTS_MAX];
    struct occ_entry entries[OCC_ENTRIES_MAX];
};

struct occ_attribution {
    struct occ_attribution_options options;
    struct occ_attribution_stats stats;
    struct occ_regressors regressors;
    struct occ_queue queue;
    struct occ_rows rows, utilization_rows; /* the latter are few, and kept for longer */
    struct occ_estimate estimate;
    struct occ_making making;
    struct occ_past past[OCC_PAST_MAX]; /* bin modulo OCC_PAST_MAX */
    int64_t advanced_ns;                /* launches before this are all here */
    int64_t joined_ns;                  /* end of the samples that are joined */
    double cycles_per_ns;               /* 0: not known */
    double longest_ns;                  /* of the samples */
};

/* Not hypot(): its version of glibc 2.35 would keep the portable bundle from running with 2.34. */
static inline double occ_quadrature(double a, double b)
{
    return sqrt(a * a + b * b);
}

static inline double occ_clock_offset(const struct occ_attribution *a, int64_t at_ns)
{
    return a->estimate.offset_ns + a->estimate.drift * (double)(at_ns - a->estimate.clock_ns);
}

/* ---- join.c ---- */

/* Joins the first n samples with their launches; `is_trial`: rows are all that comes of it. */
void occ_join_block(struct occ_attribution *a, size_t n, bool is_trial);

/* ---- solve.c, errors.c ---- */

/* A weighted least squares problem and its solution. Columns: means, profiles, special ones. The arrays of
 * doubles are one block; n each, except where it says otherwise. */
struct occ_solution {
    const struct occ_rows *from;
    enum occ_response lead; /* rows are used that count this */
    uint32_t n, n_means;
    uint32_t *place;                     /* column of a row's entry -> column here; OCC_NONE */
    uint32_t *regressor;                 /* of the means */
    uint32_t *selected;                  /* room for n_means columns ... */
    double *weights;                     /* ... and their weights */
    bool is_unknown[OCC_RESPONSE_COUNT]; /* all of the rows count it, and it is not known yet */
    double rows, busy_rows;              /* number; of those with launches ... */
    double squares;                      /* ... and of their residuals, in units of the variance */
    double counted;                      /* by all rows */
    double *inverse;                     /* W with (X' X / variance + prior)^-1 = W' W (equations.h) */
    double *rhs;                         /* OCC_RESPONSE_COUNT x n */
    double *score;        /* OCC_CLUSTERS x n: what rows that begin at the same place add to x */
    double *x, *diagonal; /* of one response: solution; its variances */
    double *prior;        /* 1 / variance before rows, ... */
    double *precision;    /* ... and after them, if other columns were known */
    double *launch_ns;    /* in rows */
    double *clock;        /* what a clock 1 us ahead does to x */
    double *scratch;      /* 2 x n */
};

/* Estimates everything from the rows. */
int occ_solve(struct occ_attribution *a, struct occ_error *err);
/* Sets every regressor's `measured` from its values. */
void occ_errors_report(struct occ_attribution *a, struct occ_solution *s);
/* The variance of a mean, by what the equations give and by how clusters of rows scatter. */
double occ_errors_variance(const struct occ_solution *s, uint32_t column);
/* Fills in what the sums say of one launch or of a selection of means, but for its source. */
void occ_errors_fill(const struct occ_attribution *a, const struct occ_sums *sums,
                     struct occ_measured *measured);
/* Fills in the regressor's utilization, where occupancy is its own. */
void occ_errors_fill_utilization(const struct occ_attribution *a, const struct occ_regressor *regressor,
                                 struct occ_measured *measured);

/* ---- direct.c ---- */

/* Adds the row that was made last to those of its launches that are long: what was counted, less what the
 * others had of it; and what no launch explains to the past. */
void occ_direct_read(struct occ_attribution *a, const struct occ_row *row, double imbalance);
/* The launch's own value, and what is kept of it is freed. False: it has none. */
bool occ_direct_report(struct occ_attribution *a, struct occ_queued_launch *launch,
                       struct occ_measured *ret_measured);
/* Adds up the bins [first, end) of the past. Returns how many have anything. */
size_t occ_direct_sum_past(const struct occ_attribution *a, int64_t first, int64_t end,
                           struct occ_sums *sums);
/* A launch that was reported after its samples were joined, read from the past. */
bool occ_direct_lookup(struct occ_attribution *a, const struct occ_queued_launch *launch,
                       struct occ_measured *ret_measured);
