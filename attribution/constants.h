/*
 * Every number of the attribution that is neither a unit nor in a formula: limits, which bound memory and
 * hostile input, and what was tuned. Tests of test_attribution.c that fail when one is 5 times as much (+) or
 * a fifth (-):
 *
 *   PRIOR_PART +, PRIOR_SD -, PROFILE_SD +, PROFILE_FROM +: repeated_steps_do_not_lead_the_clock_astray
 *   COMMON_SD +, PROFILE_FROM -, CLOCK_SD_US -, BEGIN_ROUNDS -: another_clock_is_found
 *   WINDOW_NS +: a_change_is_forgotten_within_seconds
 *   UTILIZATION_NS +: a_change_of_utilization_is_forgotten
 *   UTILIZATION_NS -: utilization_is_kept_for_a_while
 *   BOUND_SLACK +: more_than_a_configuration_allows_withholds_values
 *   BOUND_SLACK -: short_launches_are_regressed
 *   IDLE_SD -, SCALE_MIN +, UNTRACED_SD -: background_that_idle_time_shows_withholds_values
 *   UNTRACED_SD +, ERROR_MAX -: a_little_background_has_a_place_in_the_error
 *   SPREAD_MAX -: launches_that_differ_a_little_have_values
 *   SPREAD_MAX +, NOISE +, INTERVALS +, COVERED +, DIRECT_ERROR_MAX -: long_launches_are_read_one_by_one
 *   INTERVALS -: stragglers_are_not_read_for_all
 *   OVERLAPPED -: a_short_overlap_leaves_achieved
 *   OVERLAPPED +: a_longer_overlap_withholds_achieved
 *
 * The others are judged by bench_attribution alone.
 */
#ifndef OCC_ATTRIBUTION_CONSTANTS_H
#define OCC_ATTRIBUTION_CONSTANTS_H

/* clang-format off */

/* ---- limits ---- */
#define REGRESSORS_MAX   8192
#define LAUNCHES_MAX     262144                /* that wait */
#define SAMPLES_MAX      262144                /* that wait */
#define LATE_MAX         4096u                 /* launches that wait */
#define WATERMARK_NS     INT64_C(2000000000)
#define SAMPLE_NS_MAX    INT64_C(60000000000)
#define LAUNCH_NS_MAX    INT64_C(86400000000000)
#define RATIO_MAX        1.25                  /* what counters can count, with room for noise ... */
#define BLOCKS_MAX       64.0                  /* ... and of blocks per SM */
#define OCC_PARTS_MAX    2048                  /* launches in one sample */
#define OCC_ENTRIES_MAX  4096                  /* of one row */
#define OCC_SECONDS_MAX  256                   /* that nobody took */
#define OCC_PAST_MAX     4096                  /* bins of ... */
#define OCC_PAST_NS      INT64_C(100000000)    /* ... so much */
#define ROWS_BYTES       ((size_t)1536 << 10)  /* of memory for rows, ... */
#define ROWS_BYTES_EACH  ((size_t)24 << 10)    /* ... and for each regressor */
#define MEANS_MAX        1500.0                /* columns of means ... */
#define PROFILES_MAX     450.0                 /* ... from which on profiles have none */
#define SWEEP_NS         INT64_C(1000000000)   /* between searches for regressors without use */

/* ---- what launches and counters are like ---- */
#define PRIOR_PART       0.9     /* of the bound: most kernels come near it */
#define PRIOR_SD         0.35    /* of a mean, in bounds */
#define PROFILE_SD       0.15    /* of a launch's profile, by degree */
#define COMMON_SD        0.3     /* of the profile that all have in common */
#define PROFILE_FROM     0.2     /* samples that a launch with a profile of its own lasts */
#define BOUND_SLACK      1.02
#define IDLE_SD          0.002   /* of occupancy while nothing is known to run */
#define FIRST_SCALE      0.01    /* of rows' variances: launches differ by a tenth ... */
#define SCALE_MIN        1e-4    /* ... and at least by a hundredth */
#define FLOOR            1e-3    /* of a row's standard deviation */
#define EDGE_NS          400.0   /* by which times of launches jitter */
#define IDLE_EDGE_NS     5000.0  /* the same for samples in which nothing runs */
#define SPREAD_MAX       0.25    /* by which launches of a configuration differ at most */
#define NOISE            0.03    /* of a sample's count, relative */
#define OVERLAPPED       0.1     /* of a launch's time: then its active cycles are not its own */

/* ---- clocks ---- */
#define CLOCKS_NS        INT64_C(64000)  /* by which launches' and samples' differ at most */
#define CLOCK_SD_US      16.0            /* by which they drift apart between estimates, or in ... */
#define DRIFT_NS         1e10            /* ... so much time */
#define DIRECT_EDGE_NS   8000.0          /* by which they may be beside each other still */
#define BEGIN_ENTRIES    64              /* of rows, for a first estimate ... */
#define BEGIN_ROUNDS     4               /* ... that is made so often */

/* ---- when ---- */
#define WINDOW_NS        INT64_C(10000000000)  /* of rows: a change of behaviour is forgotten after it */
#define UTILIZATION_NS   INT64_C(120000000000) /* the same of the rare samples of utilization */
#define BLOCK_NS         INT64_C(250000000)    /* of samples that are joined at once */
#define FRESH            4                     /* a new estimate needs one in so many rows to be new ... */
#define COST_MAX         0.05                  /* ... and may take this part of a core, at ... */
#define CUBE_NS          0.3                   /* ... so much for a column's cube */

/* ---- errors ---- */
#define OCC_CLUSTERS     32      /* of rows whose errors are taken to be independent */
#define PHASES           8       /* of a launch, in which residuals are alike */
#define LEVERAGE_MAX     0.75
#define PRIOR_SHARE      0.25    /* of the prior's variance: above, too little was measured */
#define OVERLAPPED_MARGIN 4.0    /* of variances: what launches take from each other changes as they run */
#define ERROR_MIN        0.001
#define ERROR_MAX        0.026   /* a mean that is less certain is withheld, ... */
#define DIRECT_ERROR_MAX 0.036   /* ... and a single launch's value */
#define CORRELATED       0.3     /* means without values that are reported as one */
#define GROUP_SHARE      1e-3    /* of launch time: shorter ones are not worth a group */
#define COMMON_PART      0.5     /* of how residuals vary together: what that does to means */
#define ABOVE            3.0     /* standard errors above what a configuration allows: others' work */
#define UNTRACED_SD      0.4     /* of what is counted while nothing runs */

/* ---- direct ---- */
#define INTERVALS        3       /* samples that a launch lasts which is read directly */
#define COVERED          0.9     /* of its time, by samples */
#define LATE_COVERED     0.75    /* of one reported late: other counter sets have had their turns */

/* clang-format on */

#endif
