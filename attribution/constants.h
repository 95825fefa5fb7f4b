/* The tuned numbers and limits of the attribution; clock_search.c has its own. Limits bound memory and
 * hostile input. The other numbers were tuned with bench_attribution and the "Guards" tests in
 * test_attribution.c. Assumptions that no counter tests are in attribution.h. */
#pragma once

/* clang-format off */
/* ---- limits ---- */
#define REGRESSORS_MAX   8192
#define WAITING_MAX      262144                /* launches, and samples, in the queues */
#define BEGIN_MAX        16384                 /* queued launches after which the first block need not be longer */
#define BEGIN_FEW        100                   /* regressors; with more regressors a block needs more rows */
#define WATERMARK_NS     INT64_C(2000000000)
#define SAMPLE_NS_MAX    INT64_C(60000000000)
#define TIME_MAX         (INT64_MAX / 2)       /* ns since the epoch: sums do not overflow */
#define LAUNCH_NS_MAX    INT64_C(86400000000000)
#define OCC_NODES_MAX    8192                  /* nodes of graphs; further ones share the last one's difference */
#define OCC_NODES_DUE    450                   /* nodes that rows get memory for */
#define OCC_PARTS_MAX    400                   /* columns of parts of graphs */
#define SCORES_MAX       4194304               /* nodes x values: 16 MiB */
#define OCC_RUNNING_MAX  4096                  /* launches in one sample */
#define OCC_ENTRIES_MAX  4096                  /* entries in one row */
#define OCC_KINDS_MAX    16                    /* kinds of fills and copies with estimated blocks */
#define OCC_PAST_NS      INT64_C(100000000)    /* older rows are merged in intervals of this length */
#define OCC_PAST_COUNT   4096                  /* number of merged intervals that are kept */
#define LATE_MAX         64                    /* late launches in one report; beyond this number, old rows are dropped */
#define ROWS_BYTES       ((size_t)1408 << 10)  /* memory for rows */
#define ROWS_BYTES_EACH  ((size_t)24 << 10)    /* additional memory for rows, for each regressor */
#define MEANS_MAX        1500.0                /* columns of means */
#define PROFILES_MAX     450.0                 /* columns at which regressors get no further functions than the mean */
/* ---- priors and properties of launches and counters ---- */
#define PRIOR_PART       0.9     /* expected mean / bound: most kernels come near the bound */
#define PRIOR_SD         0.35    /* prior standard deviation of a mean, in bounds */
#define PROFILE_SD       0.25    /* prior standard deviation of other functions; largest for the first ones */
#define PARTS_SD         0.1     /* expected deviation between nodes of a configuration, in bounds, ... */
#define PARTS_SD_WEIGHT  2.0     /* ... which counts as so many nodes */
#define PARTS_SD_MIN     0.005
#define PROFILE_FROM     0.05    /* minimum share of a sample for which a function gets a column */
#define BOUND_SLACK      1.02
#define BOUND_MIN        1e-5    /* a single warp on the whole GPU */
#define IDLE_SD          0.002   /* standard deviation of occupancy while no launch is known to run */
#define SCALE_MIN        1e-4    /* minimum scale of row variances: launches differ by at least 1 % */
#define DRIFT_TIME_NS    4e9     /* time in which a kernel's mean drifts by the spread of its launches */
#define NOISE            0.03    /* relative noise of a sample's count */
#define OVERLAPPED       0.1     /* share of a launch's time; with more overlap, active cycles are shared */
#define OVERLAPPED_MARGIN 2.0    /* factor of the variance of overlapping launches, whose mutual effect varies */
#define CLOCKS_NS        INT64_C(112000) /* maximum offset between the clocks of launches and samples */
#define SEARCH_US        96.0            /* largest offset searched in the first block, ... */
#define SEARCH_PPM       48.0            /* ... and largest drift; also their standard deviations; ... */
#define SEARCH_STEP      16.0            /* ... step of the coarse search for both */
#define BEGIN_ROUNDS     6               /* joins and estimates of the first block; half as many if samples get finer */
#define CLOCK_SD_US      16.0            /* step of the offset, or of the drift in WINDOW_NS, per estimate */
#define CLOCK_POOLED_US  4.0             /* largest step of both if nodes of graphs share columns */
#define CLOCK_DRIFT_US   500.0           /* drift in the first WINDOW_NS: crystals drift by 20 to 50 ppm */
/* ---- time and cost ---- */
#define WINDOW_NS        INT64_C(10000000000)  /* age at which rows are dropped */
#define UTILIZATION_NS   INT64_C(120000000000) /* the same for the rare samples with utilization */
#define BLOCK_NS         INT64_C(250000000)    /* samples joined at once; minimum time between estimates */
#define BEGIN_NS         INT64_C(750000000)    /* longer first block with launches, by this time, ... */
#define BEGIN_MANY_NS    INT64_C(1250000000)   /* ... or by this time with more than BEGIN_FEW regressors */
#define FRESH            4                     /* one in FRESH rows must be new before the next estimate, ... */
#define COST_MAX         0.05                  /* ... which may use this share of one core */
#define CUBE_NS          0.3                   /* estimated cost of an estimate: CUBE_NS x columns^3 */
#define SCORE_NS         0.5     /* estimated cost of an entry's score for one value */
#define DEAR_NS          INT64_C(500000000)    /* an estimate that costs more than this delay is repeated less */
/* ---- errors ---- */
#define OCC_CLUSTERS     32      /* groups of rows with errors assumed to be independent */
#define PHASES           8       /* phases of a launch; residuals in the same phase are correlated */
#define LEVERAGE_MAX     0.75
/* The part of the cluster-robust variance that counts: the larger of two variances is biased. */
#define CLUSTERED        0.5
#define ALONE_MAX        0.98    /* maximum leverage of the rows in which a kernel runs alone */
#define ERROR_MIN        0.001   /* minimum standard error of a value and of a row's count */
#define ERROR_MAX        0.024   /* maximum standard error of a reported mean, ... */
#define ROUGH_ERROR_MAX  0.1     /* ... of a mean that is evidence only, ... */
#define DIRECT_ERROR_MAX 0.05    /* ... and of the value of a single launch */
#define CORRELATED       0.3     /* correlation above which means without values are reported as a group */
#define BALANCE_NS       INT64_C(50000000) /* observations of blocks: few edges cut launches */
#define BALANCE_EDGE     0.4     /* standard deviation of the operations cut by an observation's edges */
#define BALANCE_PART     0.1     /* this share of the blocks makes rows without operations evidence, ... */
#define BALANCE_ERROR    0.02    /* ... if the error of other work's blocks there is at most this share */
#define BALANCE_RIDGE    1e-9    /* relative; kinds that always come together share the blocks */
#define CLOCK_ERROR_US   4.0     /* error of the clocks, in addition to the uncertainty of their offset */
#define INTERVALS        3       /* minimum number of samples during a launch that is read directly */
#define COVERED          0.75    /* minimum share of a launch's time with samples; counter sets take turns */
