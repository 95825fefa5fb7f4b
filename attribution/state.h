/*
 * The state of one attribution and the steps that its files share: attribution.c (queues, blocks, values),
 * clock_offset.c (the clocks) with clock_step.c, join.c (samples to rows), direct.c (launches that are read
 * from their own samples). Nothing else includes it.
 */
#ifndef OCC_SAMPLER_STATE_H
#define OCC_SAMPLER_STATE_H

#include "attribution.h"
#include "clock_filter.h"
#include "support/array.h"
#include "keys.h"

#define OCC_NO_DIRECT     UINT32_MAX
#define OCC_HUBER         4.0 /* standard deviations, beyond which a row counts less */
#define OCC_CLASSES       40  /* of samples: powers of 2 of their length in ns */
#define OCC_HISTORY_MAX   32768
#define OCC_SECONDS_MAX   256
#define OCC_BEGIN_ROWS    64 /* that it takes to know the offset */
#define OCC_BLOCK_SAMPLES 2048
#define OCC_OFFSET_MAX_NS                                                                                    \
    INT64_C(64000)         /* two processes, each some 16 us beside the GPU's clock, and as much again */
#define OCC_OVERLAPPED 0.1 /* of a launch's time beside others: then its active cycles are not its own */

/* Sums of value x ns of a launch that is read directly. */
struct direct {
    double sum[OCC_RHS_COUNT], ns[OCC_RHS_COUNT], error, others; /* error: of sum[WARPS], squared */
    double imbalance, imbalance_ns;
    uint32_t samples, next_free;
};

struct noise_class {
    double variance, rows;
};

/* The row that is being made: launches of a sample, added up by key. */
struct row {
    uint32_t n;
    uint32_t key[OCC_OVERLAP_PARTS];
    double share[OCC_OVERLAP_PARTS][OCC_PROFILE_FUNCTIONS];
};

/* What a joined sample counted that no launch explains. */
struct past {
    int64_t start_ns, end_ns;
    float unexplained[OCC_RHS_COUNT], busy; /* busy: the part of its time in which launches ran */
};

struct occ_attribution {
    struct occ_attribution_options options;
    struct occ_keys keys;
    struct occ_clock_fit clock;
    struct occ_overlap_launch *launches;
    size_t n_launches, launches_allocated;
    struct occ_attribution_launch *late; /* that came when their first samples were joined already */
    size_t n_late, late_allocated;
    struct occ_sample *samples;
    size_t n_samples, samples_allocated;
    struct direct *direct;
    uint32_t n_direct, direct_allocated, free_direct;
    struct occ_attribution_value *values; /* settled, not taken */
    size_t n_values, values_allocated, values_taken;
    struct past *past; /* OCC_HISTORY_MAX, the last ones */
    uint64_t n_past;
    int64_t advanced_ns;   /* launches before this are all here */
    int64_t busy_until_ns; /* latest end of the launches so far ... */
    size_t busy_launch;    /* ... whose it is; SIZE_MAX: gone */
    int64_t joined_ns;     /* end of the samples that are joined */
    int64_t settled_ns;    /* when launches without samples were looked for */
    double cycles_per_ns;  /* 0: not known */
    double interval_ns;    /* of late */
    struct noise_class classes[OCC_CLASSES];
    struct occ_noise noise;
    double noise_rows;
    double unexplained, counted;                            /* of late; warp-time */
    struct occ_attribution_second seconds[OCC_SECONDS_MAX]; /* whole ones, not taken */
    uint32_t n_seconds;
    int64_t second; /* at work */
    double second_unexplained, second_ns;
    double since_estimate_ns, estimate_cost_ns;
    bool begun, estimated;
    uint64_t rows_since, estimated_rows; /* since the last estimate; that there were then */
    struct occ_attribution_stats stats;
    uint32_t active[OCC_OVERLAP_PARTS];
    struct occ_overlap_part parts[OCC_OVERLAP_PARTS];
    struct row row;
    uint32_t stamp;
    struct occ_shift_work *shift_work;
};

bool occ_attribution_put(struct occ_attribution *a, const struct occ_attribution_value *value);

/* ---- join.c ---- */

/* What a sample counted, as the ratios that are regressed; NaN where it did not, or what cannot be. */
void occ_join_ratios(const struct occ_attribution *a, const struct occ_sample *sample, double *ret_ratios);
/* False: some counter has an impossible value. */
bool occ_join_is_possible(const struct occ_attribution *a, const struct occ_sample *sample);
void occ_join_begin(struct occ_attribution *a, struct occ_overlap *walk);
/* Puts the launches of a sample, if the clocks were `offset_ns` apart, into a->parts and a->row; how many
 * parts. */
size_t occ_join_row(struct occ_attribution *a, struct occ_overlap *walk, const struct occ_sample *sample,
                    double offset_ns);
/* What the keys' present values make of the row. */
double occ_join_predict(const struct occ_attribution *a, enum occ_rhs rhs);
/* A row as the fit of the offset sees it: the residual of the present values. */
struct occ_offset_row {
    double residual, weight; /* weight: 1 / variance, less for outliers */
    size_t n_parts;          /* in a->parts */
};
/* Makes the row of a sample; false: it holds no launches, or no warps were counted. */
bool occ_join_residual(struct occ_attribution *a, struct occ_overlap *walk, const struct occ_sample *sample,
                       double offset_ns, struct occ_offset_row *ret_row);
/* The row as entries of the equations; more than fit: 0. */
size_t occ_join_entries(const struct occ_attribution *a, struct occ_normal_entry *entries);
/* Joins the first n samples with their launches. */
int occ_join_block(struct occ_attribution *a, size_t n, struct occ_error *err);

/* ---- noise.c ---- */

/* The variance of residuals of samples as long as this one. */
double occ_noise_variance(struct occ_attribution *a, const struct occ_sample *sample);
/* Learns from the residuals of the row that was made of the sample. */
void occ_noise_note(struct occ_attribution *a, const struct occ_sample *sample, size_t n_parts,
                    const double *ratio, const double *predicted);

/* ---- clock_offset.c ---- */

/* How many of the first n samples hold launches. */
size_t occ_offset_rows(struct occ_attribution *a, size_t n);
int occ_offset_find(struct occ_attribution *a, size_t n, struct occ_error *err);
void occ_offset_follow(struct occ_attribution *a, size_t n);

/* ---- clock_step.c ---- */

struct occ_shift {
    double ns, variance;  /* to be added to the offset at which it was measured; variance INFINITY: nothing is
                             known */
    double squares, rows; /* of the residuals there, each in units of its weight */
};
/* How far the clocks are beside the filter's offset and `beside_ns` more, as the first n samples say. Keys'
 * values and profiles are free to differ from the present ones: where they could explain as much, the
 * variance is large. */
struct occ_shift occ_shift_measure(struct occ_attribution *a, size_t n, double beside_ns);
struct occ_shift_work *occ_shift_work_new(uint32_t max_columns);
void occ_shift_work_free(struct occ_shift_work *work);

/* ---- direct.c ---- */

/* Adds the row's sample to one of its launches: what was counted, less what the others had of it. */
void occ_direct_read(struct occ_attribution *a, const struct occ_sample *sample, const double *ratio,
                     const double *predicted, const struct occ_overlap_part *part);
/* The launch's own value; its imbalance counts for its key too. False: it has none. */
bool occ_direct_report(struct occ_attribution *a, const struct occ_overlap_launch *launch,
                       struct occ_measured *ret_measured);
void occ_direct_release(struct occ_attribution *a, uint32_t direct);
/* Remembers what a sample counted that no launch explains, and the part of it in which launches ran. */
void occ_direct_push(struct occ_attribution *a, const struct occ_sample *sample, const double *ratio,
                     const double *predicted, size_t n_parts);
/* A launch that was reported after its samples were joined: read from what they left unexplained. */
bool occ_direct_lookup(struct occ_attribution *a, const struct occ_attribution_launch *launch,
                       struct occ_measured *ret_measured);

#endif
