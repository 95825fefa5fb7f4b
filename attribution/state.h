/*
 * The state of one attribution and the steps that its files share: samples become design rows over regressors
 * (join.c, regressors.c); the rows of the last while are a weighted least squares problem (solve.c), whose
 * residuals give the errors (errors.c); long launches are read from their own samples (direct.c). Nothing
 * else includes it.
 */
#ifndef OCC_ATTRIBUTION_STATE_H
#define OCC_ATTRIBUTION_STATE_H

#include "attribution.h"
#include "constants.h"
#include "profile.h"
#include "support/array.h"
#include "support/map.h"

/* What is regressed. Ratios: warps and active of what the GPU has, blocks a mean per SM, stalls of cycles. */
enum occ_response {
    OCC_RESPONSE_WARPS,
    OCC_RESPONSE_ACTIVE,
    OCC_RESPONSE_BLOCKS,
    OCC_RESPONSE_STALLS,
    OCC_RESPONSE_COUNT = OCC_RESPONSE_STALLS + 5
};

/* Columns that rows have besides regressors'. */
enum occ_special {
    OCC_SPECIAL_IDLE,    /* share of the time in which no launch is known to run */
    OCC_SPECIAL_OFFSET,  /* how the prediction changes with the clocks' offset, per us ... */
    OCC_SPECIAL_DRIFT,   /* ... and with its drift; a row has it only while it is solved */
    OCC_SPECIAL_PROFILE, /* of the profile that all launches have in common, in parts of their means */
    OCC_SPECIAL = OCC_SPECIAL_PROFILE + OCC_PROFILE
};

/* Rows of utilization have these responses instead. */
enum { OCC_RESPONSE_UTILIZATION_ACTIVE = OCC_UTILIZATION_COUNT, OCC_RESPONSE_UTILIZATIONS };
_Static_assert((int)OCC_RESPONSE_UTILIZATIONS <= (int)OCC_RESPONSE_COUNT, "they have room in a row");

#define OCC_NONE UINT32_MAX

/* A launch configuration (of one graph node), isolated or overlapped. */
struct occ_regressor {
    struct occ_attribution_key model;
    bool overlapped, taken;
    float bound;                                                /* of elapsed occupancy */
    float prior[OCC_RESPONSE_COUNT], value[OCC_RESPONSE_COUNT]; /* value: the last estimate */
    float before;
    float profile[OCC_PROFILE];       /* of warps; the last estimate */
    double launches, launch_ns;       /* since it is known */
    double imbalance, imbalance_ns;   /* sums over launches that are read directly: value x ns; ns */
    int64_t used_ns;                  /* latest end of a launch */
    uint32_t waiting;                 /* launches that refer to it */
    uint32_t stamp, entry, n_entries; /* in the row that is made now: its entries */
    struct occ_measured measured;     /* as of the last estimate */
    float utilization[OCC_RESPONSE_UTILIZATIONS];    /* the last estimate of it, of elapsed cycles ... */
    float utilization_se[OCC_RESPONSE_UTILIZATIONS]; /* ... with its errors; NaN: not known */
};

struct occ_regressors {
    struct occ_regressor *items;
    size_t n, allocated, max, n_free;
    struct occ_map index;
    uint64_t refused;
    int64_t swept_ns; /* when unused ones were looked for */
};

/* Sums of value x ns over the ns for which each response was counted; variance: of their mean of warps. */
struct occ_sums {
    double sum[OCC_RESPONSE_COUNT], ns[OCC_RESPONSE_COUNT], variance;
};

/* Of a launch that is read directly. */
struct occ_direct {
    struct occ_sums sums;
    double shared; /* standard error of what it has of samples with others, x ns */
    double imbalance, imbalance_ns;
    uint32_t samples;
};

struct occ_queued_launch {
    int64_t start_ns, end_ns; /* start < end */
    uint64_t tag;
    struct occ_direct *direct; /* NULL: not read directly */
    float overlapped_ns;       /* of its time while others ran */
    uint32_t regressor;        /* OCC_NONE: its value was taken */
    bool covered;              /* a sample saw it */
    bool counted;              /* its regressor counts it */
};

/* One launch in one sample. */
struct occ_part {
    uint32_t launch;
    float time_share;           /* of the sample's length */
    float at_start, at_end;     /* u (profile.h) at the sample's edges; negative: did not run there */
    float profile[OCC_PROFILE]; /* integrals of the profile's functions, of the sample's length */
};

/* Column: regressor x OCC_COLUMNS + function; function 0 is its mean, the others are its profile's. */
#define OCC_COLUMNS (1 + OCC_PROFILE)
struct occ_entry {
    uint32_t column;
    float share;
};

/* A sample as a row of the equations. */
struct occ_row {
    int64_t start_ns;
    float length_ns, offset_ns; /* offset: by which the clocks were taken to differ */
    float special[OCC_SPECIAL];
    float variance; /* expected, but for a factor that residuals give */
    float busy_ns;  /* from its start to the end of its last launch */
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

/* What samples counted that no launch explains, by OCC_PAST_NS. */
struct occ_past {
    int64_t bin;
    float sum[OCC_RESPONSE_COUNT], ns[OCC_RESPONSE_COUNT], busy_ns;
};

struct occ_queue {
    struct occ_queued_launch *launches;
    size_t n_launches, launches_allocated, taken; /* taken: below it, values were taken or have to wait */
    struct occ_attribution_launch *late;          /* that came when their first samples were joined */
    size_t n_late, late_allocated;
    struct occ_sample *samples;
    size_t n_samples, samples_allocated;
    int64_t busy_until_ns; /* latest end of the launches so far ... */
    size_t busy_launch;    /* ... whose it is; SIZE_MAX: gone */
};

/* The last estimate. */
struct occ_estimate {
    bool known;
    int64_t due_ns;   /* when the next one is */
    int64_t clock_ns; /* launch time + offset + drift x (time - this) = sample time */
    double offset_ns, drift;
    double special[OCC_SPECIAL][OCC_RESPONSE_COUNT]; /* those of the clocks are 0 */
    double scale;                                    /* of rows' variances */
    bool knows[OCC_RESPONSE_COUNT];                  /* what rows that count warps count */
    double untraced, untraced_sd;                    /* occupancy of work that nobody traced */
};

/* The row that is being made: its launches, and its entries until the next one. */
struct occ_making {
    uint32_t active[OCC_PARTS_MAX], n_active, stamp;
    size_t next_launch, n_parts;
    struct occ_part parts[OCC_PARTS_MAX];
    struct occ_entry entries[OCC_ENTRIES_MAX];
};

/* Sums of the second that is being joined, and those that wait for take_seconds(). */
struct occ_seconds {
    int64_t second;
    double residual, counted, ns;
    struct occ_attribution_second items[OCC_SECONDS_MAX];
    uint32_t n;
};

struct occ_attribution {
    struct occ_attribution_options options;
    struct occ_attribution_stats stats;
    struct occ_regressors regressors;
    struct occ_queue queue;
    struct occ_rows rows, utilization_rows;
    struct occ_estimate estimate;
    struct occ_making making;
    struct occ_seconds seconds;
    struct occ_past *past; /* OCC_PAST_MAX, by bin */
    int64_t advanced_ns;   /* launches before this are all here */
    int64_t joined_ns;     /* end of the samples that are joined */
    int64_t settled_ns;    /* launches that end before have their values */
    double cycles_per_ns;  /* 0: not known */
    double longest_ns;     /* of the samples */
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

/* ---- regressors.c ---- */

/* New or old; OCC_NONE: there is no room. No row from before `oldest_ns` is in use. */
uint32_t occ_regressors_put(struct occ_regressors *all, const struct occ_attribution_options *options,
                            const struct occ_attribution_key *model, bool overlapped, int64_t oldest_ns);

/* What the estimate expects of a launch of the regressor in a sample. */
double occ_regressor_expect(const struct occ_regressor *regressor, const struct occ_estimate *estimate,
                            const struct occ_part *part, enum occ_response response);

/* ---- join.c ---- */

/* What a sample counted, as the ratios that are regressed; NaN where it did not. False: some counter has an
 * impossible value, which is NaN too. */
bool occ_join_ratios(const struct occ_attribution *a, const struct occ_sample *sample, double *ret_ratios);
/* Joins the first n samples with their launches; `is_trial`: rows are all that comes of it. */
void occ_join_block(struct occ_attribution *a, size_t n, bool is_trial);

/* ---- solve.c, errors.c ---- */

/* Sums over the residuals of rows. */
struct occ_residuals {
    double squares, rows;         /* in units of their variance; of rows with launches */
    double idle_squares, idle_ns; /* of rows without launches, by time */
    double common, common_rows;   /* products of residuals that follow each other ... */
    double last;
    int64_t last_ns; /* ... the last one, and when its launches end */
    double counted;  /* by all rows */
};

/* A weighted least squares problem and its solution. Columns: means, profiles, special ones. The arrays of
 * doubles are one block; n each, except where it says otherwise. */
struct occ_solution {
    bool is_main;       /* of rows that count warps */
    bool has_all_means; /* else there are too many for the rows, or for us: nothing is reported */
    uint32_t n, n_means;
    uint32_t *place;     /* column of a row's entry -> column here; OCC_NONE */
    uint32_t *regressor; /* of the means */
    uint32_t *selected;  /* room for n_means columns ... */
    double *weights;     /* ... and their weights */
    bool knows[OCC_RESPONSE_COUNT];
    double rows;
    int64_t from_ns, length_ns;
    double *inverse;      /* W with (X' X / variance + prior)^-1 = W' W (equations.h) */
    double *rhs;          /* OCC_RESPONSE_COUNT x n */
    double *score;        /* 2 x OCC_CLUSTERS x n: what stretches of time, then phases, add to x */
    double *x, *diagonal; /* of warps: solution, its variances */
    double *prior;        /* 1 / variance before ... */
    double *precision;    /* ... and if other columns were known */
    double *launch_ns;    /* in rows */
    double *scratch;      /* 2 x n */
    struct occ_residuals residuals;
};

/* Estimates everything from the rows. */
int occ_solve(struct occ_attribution *a, struct occ_error *err);
/* Sets every regressor's `measured` from its values. */
void occ_errors_report(struct occ_attribution *a, struct occ_solution *s);
/* Fills in what the sums say of one launch or of a selection of means, but for its source. */
void occ_errors_fill(const struct occ_attribution *a, const struct occ_sums *sums,
                     struct occ_measured *measured);

/* The variance of a mean, by what the equations give and by how clusters of rows scatter. */
double occ_errors_variance(const struct occ_solution *s, uint32_t column);

/* ---- utilization.c ---- */

static inline bool occ_utilization_is_in(const struct occ_sample *sample)
{
    return isfinite(sample->value[OCC_COUNTER_UTILIZATION]) != 0; /* ISSUE is in all such sets */
}

/* Responses of a row that counted it; `active`: the share of active cycles. False: one of them is impossible,
 * and the others may be too. */
bool occ_utilization_read(const struct occ_sample *sample, double active, double *ret_response);
/* Estimates the utilization of all regressors, if enough rows are new. */
int occ_utilization_solve(struct occ_attribution *a, bool final, struct occ_error *err);
/* Fills in what is known of the regressor's, where occupancy is. */
void occ_utilization_fill(const struct occ_attribution *a, const struct occ_regressor *regressor,
                          struct occ_measured *measured);

/* ---- direct.c ---- */

/* Adds a sample to those of its launches that are long: what was counted, less what the others had of it; and
 * what no launch explains to the history. */
void occ_direct_read(struct occ_attribution *a, const struct occ_sample *sample, const struct occ_row *row,
                     const double *ratio, const double *predicted);
/* The launch's own value, and what is kept of it is freed. False: it has none. */
bool occ_direct_report(struct occ_attribution *a, struct occ_queued_launch *launch,
                       struct occ_measured *ret_measured);
/* A launch that was reported after its samples were joined, read from the history. */
bool occ_direct_lookup(struct occ_attribution *a, const struct occ_attribution_launch *launch,
                       struct occ_measured *ret_measured);

#endif
