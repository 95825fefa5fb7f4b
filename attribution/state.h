/* The state of one attribution, and the functions that the files of attribution/ share (attribution.c has
 * their order). */
#pragma once

#include "attribution.h"
#include "constants.h"
#include "support/array.h"
#include "support/map.h"

#define OCC_RATIO_DIRECT     OCC_RATIO_UTILIZATION /* lower ratios are also read directly */
#define OCC_NONE             UINT32_MAX
#define OCC_BALANCE_TRIANGLE ((OCC_KINDS_MAX + 1) * (OCC_KINDS_MAX + 2) / 2)

/* The functions of a regressor; each can have a column in the equations. The occupancy of a launch over u =
 * (time - start) / duration, 0...1, is the sum of
 * - a mean
 * - Haar wavelets; level i has 2^i wavelets. A wavelet matters only where a sample's edge cuts a launch.
 * - elasticity x (mean duration / duration - 1): a longer launch often has fewer warps. Without this term,
 *   durations would bias the means of the launches before and after.
 * Columns are given out function by function while there is room. A function without a column, or with a
 * small share of every row, is approximated as a x bound + b, common to all regressors: most kernels drain at
 * their end, and this effect must not be taken for the clocks' offset. */
#define OCC_LEVELS     3
#define OCC_ELASTICITY 4U /* column of the elasticity: after two levels */
#define OCC_COLUMNS    ((1U << OCC_LEVELS) + 1)

/* The first columns of every system of equations. */
enum occ_special {
    OCC_SPECIAL_IDLE,   /* share of the time in which no launch is known to run */
    OCC_SPECIAL_OFFSET, /* derivative of the prediction by the clocks' offset, per us */
    OCC_SPECIAL_DRIFT,  /* derivative of the prediction by the clocks' drift */
    OCC_SPECIAL_SHARED, /* a and b of each function except the mean, for regressors without a column */
    OCC_SPECIAL = OCC_SPECIAL_SHARED + 2 * (OCC_COLUMNS - 1)
};

/* A launch configuration. */
struct occ_regressor {
    uint64_t shape;
    uint32_t n_nodes, last_node; /* last_node: the last of its n_nodes nodes */
    uint32_t segment, part;      /* segment and column of its last part in the current equations */
    double bound;                /* maximum elapsed occupancy */
    double prior[OCC_RATIO_COUNT], value[OCC_RATIO_COUNT]; /* value: the last estimate */
    double grid;                                           /* blocks of a launch; NaN: unknown */
    bool is_memory;                                        /* fills or copies */
    double before;                                /* occupancy (OCC_RATIO_WARPS) by the previous estimate */
    double profile[OCC_COLUMNS];                  /* occupancy by function; the mean is in `value` */
    double utilization_se[OCC_UTILIZATION_COUNT]; /* NaN: not known */
    double launches, launch_ns, overlapped_ns;    /* sums that decay with WINDOW_NS */
    /* by function: index of its entry in the row being made; valid only if that entry has this column */
    uint32_t entry[OCC_COLUMNS];
    uint32_t column_index[OCC_COLUMNS]; /* by function: column in the current equations; OCC_NONE: none */
    struct occ_measured measured;       /* by the last estimate */
};

/* A node of a graph; node 0 of a configuration stands for its launches without a graph. */
struct occ_node {
    uint64_t id;
    uint32_t regressor; /* OCC_NONE: free */
    uint32_t column;    /* in the current equations: its part's; OCC_NONE: none */
    uint32_t entry;     /* index of its entry in the row being made; valid only if that entry has this node */
    int64_t last_ns;    /* start of its last launch */
    double launch_ns;
};

struct occ_entry {
    uint32_t column; /* regressor x OCC_COLUMNS + function */
    float share;
};

struct occ_nodes {
    struct occ_node *at;
    size_t n, allocated;
    struct occ_map index; /* by shape and graph node */
    size_t n_shared;      /* nodes of configurations with several nodes */
    size_t next_free;     /* when all room is allocated, free nodes have this index or a larger one */
    int64_t freed_ns;     /* time at which unused nodes were looked for */
    struct occ_entry entries[OCC_ENTRIES_MAX]; /* of the row being made */
};

struct occ_queued_launch {
    int64_t start_ns, end_ns; /* start < end */
    uint64_t tag;
    uint32_t regressor, node;
    bool is_late; /* came after advance() had passed its start; not in any row */
    bool covered; /* a sample includes a part of the launch */
};

/* Fills or copies of one kind that began in a row. */
struct occ_operations {
    uint32_t regressor;
    float count; /* an operation at the row's edge counts with its part in the row */
};

/* A sample as a row of the equations. */
struct occ_row {
    struct occ_row *before, *next; /* ordered by time */
    int64_t start_ns, end_ns;
    double offset_ns;      /* clock offset with which the row was made */
    double idle, gradient; /* see OCC_SPECIAL_IDLE, OCC_SPECIAL_OFFSET */
    double variance;       /* prior variance, to be multiplied by the estimated scale */
    /* launched blocks; the same without launches of known grids; NaN: not counted, or not known */
    double launched, others;
    double imbalance; /* 1 - cycles of the least / most active SM; NaN: not a single launch */
    float ratio[OCC_RATIO_COUNT];
    uint16_t phase; /* equal for rows that begin at the same phase of the same regressor */
    uint16_t n_operations : 15, has_more_operations : 1; /* has_more_operations: of kinds that did not fit */
    uint16_t n, n_nodes;
    /* n entries; in a kept row, n_nodes entries of nodes and n_operations elements of struct occ_operations
     * lie behind them (occ_row_nodes()) */
    struct occ_entry *entries;
};

/* A kept row's entries of nodes: `column` is the node. Only of configurations with several nodes. */
static inline const struct occ_entry *occ_row_nodes(const struct occ_row *row)
{
    return row->entries + row->n;
}

/* The unexplained counts of dropped rows that start in the same interval of OCC_PAST_NS. */
struct occ_past {
    int64_t number, end_ns; /* number: start / OCC_PAST_NS since the epoch; end_ns: end of the last row */
    /* sum: ratio x time; ns: time in which the ratio was counted */
    float sum[OCC_RATIO_DIRECT], ns[OCC_RATIO_DIRECT];
    float busy_ns; /* time in which a launch is known to have run */
    uint32_t late; /* number of late launches in the interval */
};

struct occ_rows {
    struct occ_row *first, *last;
    size_t bytes;
    /* busy: rows with launches; fresh: rows added (and, for utilization, dropped) since the estimate */
    size_t busy, fresh;
};

struct occ_estimate {
    bool known;
    /* maximum columns of functions other than means; 0 if profiles would hide the clocks' offset */
    double profile_columns_max;
    double decay;            /* factor of sums since the previous estimate */
    int64_t made_ns, due_ns; /* made_ns: end of the last sample; due_ns: time of the next estimate */
    int64_t begun_ns;        /* start of the first sample */
    double drift_sd_us;      /* prior of the drift's next step, in us per WINDOW_NS */
    int64_t clock_ns;        /* sample time = launch time + offset + drift x (time - clock_ns) */
    double offset_ns, drift;
    double idle[OCC_RATIO_COUNT]; /* while no launch is known to run */
    double scale;                 /* factor of the rows' variances */
    double parts_sd;              /* standard deviation between the nodes of a configuration, in bounds */
    double untraced, untraced_sd; /* occupancy of untraced work */
};

struct occ_attribution {
    struct occ_attribution_options options;
    struct occ_attribution_assumptions assumed;
    struct occ_attribution_stats stats;
    struct occ_estimate estimate;
    struct occ_regressor *regressors;
    struct occ_map index; /* index in `regressors` by shape */
    struct occ_nodes nodes;
    uint32_t busy; /* regressor of the launch that ends last, at busy_until_ns */
    int64_t busy_until_ns;
    struct occ_rows rows, utilization_rows; /* rows with utilization are few, and kept for longer */
    struct occ_past past[OCC_PAST_COUNT];   /* at index number % OCC_PAST_COUNT */
    /* queues: launches ordered by start, except late ones; samples */
    struct occ_queued_launch *launches;
    struct occ_attribution_sample *samples;
    size_t n_regressors, n_launches, n_samples;
    size_t regressors_allocated, launches_allocated, samples_allocated;
    /* all launches that start before advanced_ns have arrived; joined samples end at joined_ns */
    int64_t advanced_ns, joined_ns;
    double longest_ns, shortest_ns; /* longest and shortest duration of the samples */
    /* rows that start at this time or later are joined again by the next trial; INT64_MAX: none */
    int64_t rejoin_from_ns;
    /* the row in the making: its launches, and its entries until the next row */
    size_t next_launch, n_running; /* next_launch: the first launch that has not started */
    uint32_t running[OCC_RUNNING_MAX];
    struct occ_entry entries[OCC_ENTRIES_MAX];
    struct occ_operations operations[OCC_KINDS_MAX];
};

/* Replaces hypot(), whose version in glibc 2.35 would keep the portable bundle from running with glibc
 * 2.34. */
static inline double occ_quadrature(double a, double b)
{
    return sqrt(a * a + b * b);
}

/* Sample time minus launch time. */
static inline double occ_clock_offset(const struct occ_attribution *a, int64_t at_ns)
{
    return a->estimate.offset_ns + a->estimate.drift * (double)(at_ns - a->estimate.clock_ns);
}

/* The index of a row's column in the current equations; OCC_NONE: none. */
static inline uint32_t *occ_column_index(const struct occ_attribution *a, uint32_t column)
{
    return &a->regressors[column / OCC_COLUMNS].column_index[column % OCC_COLUMNS];
}

/* (mean duration of the configuration's launches - the launch's duration) / the launch's duration. */
static inline double occ_shorter(const struct occ_regressor *regressor, double duration_ns)
{
    return regressor->launch_ns / regressor->launches / duration_ns - 1;
}

/* The index of the launch's node, which is new if needed; without room for it, of the last node of its
 * configuration. OCC_NONE: there is none. */
uint32_t occ_nodes_find(struct occ_attribution *attribution, const struct occ_attribution_key *key,
                        uint32_t regressor);
/* Makes a row from the sample and the launches that ran in it. The row is dropped if it has too many
 * entries. */
void occ_design_add(struct occ_attribution *a, const struct occ_attribution_sample *sample);
/* Sets the row's ratios minus the current estimates of its launches. Returns the variance of the
 * difference. */
double occ_design_residual(const struct occ_attribution *a, const struct occ_row *row,
                           double ret_ratio[OCC_RATIO_DIRECT]);
/* Drops the rows that overlap [from_ns, to_ns), and the oldest rows while the rows have more than `bytes_max`
 * bytes. The unexplained counts of rows in `a->rows` go to the merged old rows (struct occ_past). */
void occ_design_forget(struct occ_attribution *a, struct occ_rows *rows, int64_t from_ns, int64_t to_ns,
                       size_t bytes_max);
/* Drops all rows that start at from_ns or later, and searches the running launches from the start again. */
void occ_design_undo(struct occ_attribution *a, int64_t from_ns);

struct occ_column {
    uint32_t regressor;
    /* of a part of graphs: its number of nodes, its share of the configuration's time, its place in the
     * observation being made */
    double nodes, weight;
    uint32_t at, mean; /* mean: column of its configuration's mean */
    double pooled;     /* sum of the scores of its nodes */
    double precision;  /* 1 / variance, if all other columns were known */
    double variance;   /* variance of a mean: see occ_inference_variances() */
    double clustered;  /* by the scatter of row clusters */
    /* square of the difference to the mean weighted by time, less the square that chance would give */
    double unbalanced;
    bool in_group; /* a group with this column was tried; one try for each column would cost columns^3 */
};

/* Sums over rows with whole launches of one configuration and no other launch. score: of share x
 * residual / variance; information: of share^2 / variance; share: of the share, weighted by age; all_share:
 * the same over all rows. */
struct occ_alone {
    double score, information, share, all_share;
};

/* Sums of launched blocks over rows without idle time. others: without launches of known grids. */
struct occ_block_sums {
    double launched, others, others_squares;
};

/* The balance of launched blocks. Its equations have an observation for each BALANCE_NS:
 *     others = sum over kinds (blocks of an operation x operations) + rate x busy time + error
 * The rate describes steady other work, whose blocks would otherwise go to the operations. */
struct occ_balance {
    struct occ_block_sums all, without; /* without: rows without fills and copies */
    bool is_full; /* some rows had kinds that did not fit, so their blocks are missing here */
    uint32_t n_kinds, kinds[OCC_KINDS_MAX];
    double operations[OCC_KINDS_MAX], groups; /* groups: number of observations */
    /* the observation in the making; number: start / BALANCE_NS; x[OCC_KINDS_MAX]: busy time in ms */
    int64_t number;
    double x[OCC_KINDS_MAX + 1], y;
    double matrix[OCC_BALANCE_TRIANGLE], rhs[OCC_KINDS_MAX + 1], squares;
};

/* Blocks of other work, as shares of all blocks. */
struct occ_others {
    double least, most; /* most: INFINITY if unknown */
    bool is_counted;    /* enough blocks ran without fills and copies to show other work, as `least` does */
};

/* Adds the row, unless idle time shows other work or blocks are not known. Rows come in the order of time. */
void occ_balance_add(struct occ_balance *balance, const struct occ_row *row);
struct occ_others occ_balance_solve(struct occ_balance *balance);

/* A weighted least squares problem and its solution. Order of columns: special columns, means, other
 * functions. Parts of graphs come after means. */
struct occ_solution {
    const struct occ_rows *from;
    enum occ_ratio first_response; /* rows that count this ratio are used */
    uint32_t n, means_end, parts_end;
    bool is_unknown[OCC_RATIO_COUNT]; /* true if all rows count the ratio, and it is not solved yet */
    double rows, busy_rows;           /* number of rows; number of rows with launches */
    double squares, counted; /* squares: of residuals, in units of the variance; counted: sum over all rows */
    struct occ_balance balance;
    struct occ_column *columns;
    double *inverse; /* (X' X / variance + prior)^-1 (equations.h) */
    double *rhs;     /* n x OCC_RATIO_COUNT right-hand sides, then solutions */
    double *score;   /* 2 x n x OCC_CLUSTERS: change of x by the rows of a cluster; the same for active SMs */
    struct occ_alone *alone; /* for each column; means only */
    /* by node and value: how the value changes with the node's difference; NULL: no node differs from its
     * part */
    float *node_score;
    uint32_t n_scored;           /* values with scores: those of the first columns of means */
    bool is_pooled;              /* some parts have several nodes */
    bool lacks_scores;           /* there was no room for scores, so errors of values are not known */
    double *x, *prior, *scratch; /* solution for one ratio; 1 / prior variance; n x OCC_CLUSTERS values */
};

/* An observation: a row, with its entries in the columns of the solution. */
struct occ_observation {
    uint32_t n, column_index[OCC_ENTRIES_MAX + OCC_PARTS_MAX + OCC_SPECIAL];
    double share[OCC_ENTRIES_MAX + OCC_PARTS_MAX + OCC_SPECIAL], variance;
    double aged;        /* factor of the variance, from the row's age */
    double clock_shift; /* warps of this row that the current clock offset explains */
};

/* Sets the clock's offset and drift to the best of a search, before the first estimate; `samples` of the
 * queue are the first block. Without memory, or with rows or very many regressors already, they stay. */
void occ_clock_search(struct occ_attribution *a, size_t samples);
/* Estimates all values from the rows. Without memory there is no new estimate. */
void occ_gls_fit(struct occ_attribution *a);
/* Fills in *p. False: the row is not usable. */
bool occ_observation_make(const struct occ_attribution *a, const struct occ_solution *s,
                          const struct occ_row *row, struct occ_observation *p);
/* Numbers the columns of parts after those of means, as many as there is room for. */
void occ_parts_number(struct occ_attribution *a, struct occ_solution *s);
/* Sets the number of nodes and the weight of each part. */
void occ_parts_weigh(const struct occ_attribution *a, struct occ_solution *s);
/* The prior standard deviation of a part's difference to its configuration. */
double occ_parts_sd(const struct occ_attribution *a, const struct occ_column *part);
/* Estimates the standard deviation between nodes again. */
void occ_parts_learn(struct occ_attribution *a, struct occ_solution *s);
/* Computes how nodes that differ from their part change the values. */
void occ_parts_score(struct occ_attribution *a, struct occ_solution *s);
/* The variance by these changes of a mean of n values, which their columns name; the weights add up to 1. */
double occ_parts_variance(const struct occ_attribution *a, struct occ_solution *s, const uint32_t *means,
                          const double *weights, uint32_t n);
/* Sets the variances of the means: the larger of the equations' variance and CLUSTERED times the scatter of
 * row clusters. */
void occ_inference_variances(const struct occ_attribution *a, struct occ_solution *s);
/* Sets the `measured` member of every regressor. */
void occ_inference_report(struct occ_attribution *a, struct occ_solution *s);
/* Fills in *measured for a launch or a selection of means, from its ratios and the variance of its warps. */
void occ_inference_fill(const struct occ_attribution *a, const double *ratio, double variance,
                        struct occ_measured *measured);
/* Fills in the utilization, if the occupancy is the regressor's own value (not a group's). */
void occ_inference_fill_utilization(const struct occ_attribution *a, const struct occ_regressor *regressor,
                                    struct occ_measured *measured);
/* Excludes the time of a launch that arrived after its samples were joined: drops its rows to the merged old
 * rows, and counts the launch there. */
void occ_direct_mark(struct occ_attribution *a, const struct occ_queued_launch *launch);
/* Reads the launch's own value from the rows, or from the merged old rows if it is late. False: there is
 * none. */
bool occ_direct_read(struct occ_attribution *a, const struct occ_queued_launch *launch,
                     struct occ_measured *ret_measured);
