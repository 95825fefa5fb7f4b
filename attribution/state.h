/*
 * The state of one attribution and the steps that its files share: samples become design rows over regressors
 * (join.c, regressors.c); the rows of the last while are a weighted least squares problem (solve.c), whose
 * residuals give the errors (errors.c); long launches are read from their own samples (direct.c). Nothing
 * else includes it.
 */
#ifndef OCC_ATTRIBUTION_STATE_H
#define OCC_ATTRIBUTION_STATE_H

#include "attribution.h"
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

#define OCC_NONE        UINT32_MAX
#define OCC_PARTS_MAX   2048 /* launches in one sample */
#define OCC_ENTRIES_MAX 4096 /* of one row */
#define OCC_LENGTHS     40   /* classes of samples: powers of 2 of their length in ns */
#define OCC_SECONDS_MAX 256
#define OCC_CLOCKS_NS                                                                                        \
    INT64_C(64000)         /* by which two processes' clocks differ at most: 16 us each, doubled             \
                            */
#define OCC_OVERLAPPED 0.1 /* of a launch's time beside others: then its active cycles are not its own */
#define OCC_CLUSTERS   32  /* of rows whose errors are taken to be independent */

/* A launch configuration (of one graph node), isolated or overlapped. */
struct occ_regressor {
    struct occ_attribution_key model;
    bool overlapped, taken;
    float bound;                                                /* of elapsed occupancy */
    float prior[OCC_RESPONSE_COUNT], value[OCC_RESPONSE_COUNT]; /* value: the last estimate */
    float profile[OCC_PROFILE];                                 /* of warps; the last estimate */
    double launches, launch_ns;                                 /* since it is known */
    double imbalance, imbalance_ns;   /* sums over launches that are read directly: value x ns; ns */
    int64_t used_ns;                  /* latest end of a launch */
    uint32_t waiting;                 /* launches that refer to it */
    uint32_t stamp, entry, n_entries; /* in the row that is made now: its entries */
    struct occ_measured measured;     /* as of the last estimate */
};

struct occ_regressors {
    struct occ_regressor *items;
    size_t n, allocated, max, n_free;
    struct occ_map index;
    uint64_t refused;
    int64_t swept_ns; /* when unused ones were looked for */
};

struct occ_queued_launch {
    int64_t start_ns, end_ns; /* start < end */
    uint64_t tag;
    int64_t beside_ns;  /* of its time while others ran */
    uint32_t regressor; /* OCC_NONE: its value was taken */
    uint32_t direct;    /* index; OCC_NONE: not read directly */
    bool covered;       /* a sample saw it */
    bool is_used;       /* its regressor counts it */
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
};

/* Sums of value x ns of a launch that is read directly. */
struct occ_direct {
    double sum[OCC_RESPONSE_COUNT], ns[OCC_RESPONSE_COUNT], others_variance;
    double imbalance, imbalance_ns;
    uint32_t samples, next_free;
};

/* What samples of OCC_PAST_NS counted that no launch explains: sums of value x ns. */
#define OCC_PAST_MAX 4096
#define OCC_PAST_NS  INT64_C(100000000)
struct occ_past {
    int64_t bin;
    float sum[OCC_RESPONSE_COUNT], ns[OCC_RESPONSE_COUNT], busy_ns;
};

struct occ_attribution {
    struct occ_attribution_options options;
    struct occ_regressors regressors;
    struct occ_queued_launch *launches;
    size_t n_launches, launches_allocated, taken; /* taken: below it, values were taken or have to wait */
    struct occ_attribution_launch *late;          /* that came when their first samples were joined already */
    size_t n_late, late_allocated;
    struct occ_sample *samples;
    size_t n_samples, samples_allocated;
    struct occ_direct *direct;
    size_t n_direct, direct_allocated;
    uint32_t free_direct;
    struct occ_past *past; /* OCC_PAST_MAX, by bin */
    struct occ_rows rows;
    int64_t advanced_ns;             /* launches before this are all here */
    int64_t busy_until_ns;           /* latest end of the launches so far ... */
    size_t busy_launch;              /* ... whose it is; SIZE_MAX: gone */
    int64_t joined_ns;               /* end of the samples that are joined */
    int64_t settled_ns;              /* launches that end before have their values */
    double cycles_per_ns;            /* 0: not known */
    uint64_t idle_samples;           /* that follow each other */
    bool is_trial, begun, estimated; /* begun: the clocks' offset is known */
    /* the last estimate */
    int64_t due_ns, hurry_ns; /* when the next one is; at the earliest */
    int64_t changed_ns;       /* since when kernels do the same */
    int64_t clock_ns;         /* launch time + offset + drift x (time - this) = sample time */
    double offset_ns, drift;
    double special[OCC_SPECIAL][OCC_RESPONSE_COUNT]; /* those of the clocks are 0 */
    double scale[OCC_LENGTHS];                       /* of rows' variances, by their length */
    bool knows[OCC_RESPONSE_COUNT];                  /* what rows that count warps count */
    double spread;                         /* mean of rows' squared residuals in units of their variance */
    double idle_square, common_sd;         /* what varies while nothing runs; beside launches */
    double untraced, untraced_sd;          /* occupancy of work that nobody traced */
    double usual, surprise, surprise_rows; /* squared residuals in their variance: mean; sum of late */
    /* residuals */
    double residual, counted; /* of late; warp-time */
    int64_t second;           /* at work */
    double second_residual, second_ns;
    struct occ_attribution_second seconds[OCC_SECONDS_MAX];
    uint32_t n_seconds;
    struct occ_attribution_stats stats;
    /* the row that is being made */
    uint32_t active[OCC_PARTS_MAX], n_active, stamp;
    size_t next_launch, n_parts;
    struct occ_part parts[OCC_PARTS_MAX];
    struct occ_entry entries[OCC_ENTRIES_MAX];
};

/* Not hypot(): its version of glibc 2.35 would keep the portable bundle from running with 2.34. */
static inline double occ_quadrature(double a, double b)
{
    return sqrt(a * a + b * b);
}

static inline double occ_clock_offset(const struct occ_attribution *a, int64_t at_ns)
{
    return a->offset_ns + a->drift * (double)(at_ns - a->clock_ns);
}

static inline int occ_length_class(const struct occ_row *row)
{
    int power = ilogb((double)row->length_ns);
    return power < OCC_LENGTHS ? power : OCC_LENGTHS - 1;
}

static inline double occ_row_variance(const struct occ_attribution *a, const struct occ_row *row)
{
    return (double)row->variance * a->scale[occ_length_class(row)];
}

static inline bool occ_row_has_warps(const struct occ_row *row)
{
    return isfinite(row->response[OCC_RESPONSE_WARPS]) != 0;
}

/* ---- regressors.c ---- */

/* New or old; OCC_NONE: there is no room. No row from before `oldest_ns` is in use. */
uint32_t occ_regressors_put(struct occ_regressors *all, const struct occ_attribution_options *options,
                            const struct occ_attribution_key *model, bool overlapped, int64_t oldest_ns);

/* ---- join.c ---- */

/* What a sample counted, as the ratios that are regressed; NaN where it did not. False: some counter has an
 * impossible value, which is NaN too. */
bool occ_join_ratios(const struct occ_attribution *a, const struct occ_sample *sample, double *ret_ratios);
/* What present values make of a row. */
double occ_join_predict(const struct occ_attribution *a, const struct occ_row *row,
                        const struct occ_entry *entries, enum occ_response response);
/* Joins the first n samples with their launches; before the clocks' offset is known, rows are all that comes
 * of it. */
void occ_join_block(struct occ_attribution *a, size_t n);
/* Drops the first n rows. */
void occ_join_drop(struct occ_rows *rows, size_t n);

/* ---- solve.c, errors.c ---- */

/* A weighted least squares problem and its solution; the arrays are one block. */
struct occ_solution {
    uint32_t n, n_means; /* columns: special ones, n_means regressors' means, their profiles */
    uint32_t *place;     /* column of a row's entry -> column here; OCC_NONE */
    uint32_t *regressor; /* of the means */
    double *inverse;     /* W with (X' X / variance + prior)^-1 = W' W (equations.h) */
    double *diagonal;    /* of that */
    double *rhs;         /* OCC_RESPONSE_COUNT x n */
    double *x, *scratch, *prior, *precision, *launch_ns; /* n each; x: of warps; 1 / variance before, and
                                                            if other columns were known */
    double *score; /* 2 x OCC_CLUSTERS x n: what stretches of time, then phases, add to x */
    double rows;
};

/* Estimates everything from the rows. */
int occ_solve(struct occ_attribution *a, struct occ_error *err);
/* Sets every regressor's `measured` from its values. */
void occ_errors_report(struct occ_attribution *a, struct occ_solution *s);

/* ---- direct.c ---- */

/* Adds a sample to those of its launches that are long: what was counted, less what the others had of it; and
 * what no launch explains to the history. */
void occ_direct_read(struct occ_attribution *a, const struct occ_sample *sample, const struct occ_row *row,
                     const double *ratio, const double *predicted);
/* The launch's own value, and what is kept of it is given back. False: it has none. */
bool occ_direct_report(struct occ_attribution *a, const struct occ_queued_launch *launch,
                       struct occ_measured *ret_measured);
/* A launch that was reported after its samples were joined, read from the history. */
bool occ_direct_lookup(struct occ_attribution *a, const struct occ_attribution_launch *launch,
                       struct occ_measured *ret_measured);

#endif
