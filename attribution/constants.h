/* Every number of the attribution that is neither a unit nor in a formula: limits, which bound memory and
 * hostile input, and what was tuned, with bench_attribution and tests ("Guards" in test_attribution.c). */
#pragma once

/* clang-format off */
/* ---- limits ---- */
#define REGRESSORS_MAX   8192
#define WAITING_MAX      262144                /* samples and launches that wait, ... */
#define BEGIN_MAX        16384                 /* ... of which the first are not waited for */
#define WATERMARK_NS     INT64_C(2000000000)
#define SAMPLE_NS_MAX    INT64_C(60000000000)
#define TIME_MAX         (INT64_MAX / 2)       /* ns since the epoch: sums do not overflow */
#define LAUNCH_NS_MAX    INT64_C(86400000000000)
#define OCC_RUNNING_MAX  4096                  /* launches in one sample */
#define OCC_ENTRIES_MAX  4096                  /* of one row */
#define OCC_PAST_NS      INT64_C(100000000)    /* in so much older rows become one, ... */
#define OCC_PAST_COUNT   4096                  /* ... the last of which are kept */
#define LATE_MAX         64                    /* late launches at once: of more, the past is dropped */
#define ROWS_BYTES       ((size_t)1408 << 10)  /* of memory for rows, ... */
#define ROWS_BYTES_EACH  ((size_t)24 << 10)    /* ... and for each regressor */
#define MEANS_MAX        1500.0                /* columns of means ... */
#define PROFILES_MAX     450.0                 /* ... from which on regressors' other functions have none */
/* ---- what launches and counters are like ---- */
#define PRIOR_PART       0.9     /* of the bound: most kernels come near it */
#define PRIOR_SD         0.35    /* of a mean, in bounds */
#define PROFILE_SD       0.25    /* of a regressor's other functions: the first ones most */
#define PROFILE_FROM     0.05    /* of a sample: functions that have less of every row have no own columns */
#define BOUND_SLACK      1.02
#define BOUND_MIN        1e-5    /* a warp of all that a GPU has */
#define IDLE_SD          0.002   /* of occupancy while nothing is known to run */
#define SCALE_MIN        1e-4    /* of rows' variances: launches differ by a hundredth at least */
#define DRIFT_TIME_NS    4e9     /* in which kernels drift by as much as their launches differ */
#define SPREAD_MAX       0.18    /* by which a configuration's launches differ: more is others' work */
#define NOISE            0.03    /* of a sample's count, relative */
#define OVERLAPPED       0.1     /* of a launch's time: then its active cycles are not its own, ... */
#define OVERLAPPED_MARGIN 2.0    /* ... and what it takes from others changes: a factor of its variance */
#define CLOCKS_NS        INT64_C(64000)  /* by which launches' and samples' differ at most */
#define BEGIN_ROUNDS     6               /* until an offset is found; half of it for finer samples */
#define CLOCK_SD_US      16.0            /* by which they drift apart between estimates, or in WINDOW_NS */
/* ---- when ---- */
#define WINDOW_NS        INT64_C(10000000000)  /* of rows: a change of behaviour is forgotten after it */
#define UTILIZATION_NS   INT64_C(120000000000) /* the same of the rare samples of utilization */
#define BLOCK_NS         INT64_C(250000000)    /* joined at once; between estimates at least */
#define BEGIN_NS         INT64_C(750000000)    /* the first one with launches is longer by this */
#define FRESH            4                     /* an estimate is due for one in so many rows, ... */
#define COST_MAX         0.05                  /* ... that may take this part of a core, at ... */
#define CUBE_NS          0.3                   /* ... so much for a column's cube */
#define DEAR_NS          INT64_C(500000000)    /* due so late: its like begin with two, not BEGIN_ROUNDS */
/* ---- errors ---- */
#define OCC_CLUSTERS     32      /* of rows whose errors are taken to be independent */
#define PHASES           8       /* of a launch, in which residuals are alike */
#define LEVERAGE_MAX     0.75
#define ERROR_MIN        0.001   /* of values, and of rows' counts */
#define ERROR_MAX        0.024   /* a mean that is less certain is withheld, ... */
#define DIRECT_ERROR_MAX 0.05    /* ... and a single launch's value */
#define CORRELATED       0.3     /* means without values that are reported as one */
#define CLOCK_ERROR_US   4.0     /* of the clocks, beside what their offset is uncertain */
#define UNTOLD           0.13    /* by which launches without values differ from those that have one */
#define ABOVE            3.0     /* standard errors; others' work may be so many times what shows of it */
#define BLOCKS_LAST      10.0    /* times as long as launches', at most: blocks of others */
#define UNTRACED_SD      0.4     /* of what is counted while nothing runs */
#define INTERVALS        3       /* samples that a launch lasts which is read directly */
#define COVERED          0.75    /* of its time, by samples; other counter sets have had their turns */
