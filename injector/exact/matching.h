/*
 * Range matching: which launch a measured range was. The range profiler gives the ranges of a session (from
 * its start to its stop, in one context) in the order of execution and without names. Kernels run one after
 * the other meanwhile and launch calls do not overlap, so the calls that certainly launched, in their order,
 * are the ranges, if there are as many. If not, no launch of the session has a value: nothing is guessed.
 * Certain is a call that returned, was not refused, and was made while no stream was captured.
 *
 * An activity record is the launch of the call whose correlation it has. While the range profiler has a
 * session, CUPTI 13.0.1 returns records without times (measured on an H100): such a launch starts when it was
 * called, which is before its kernel starts, and lasts as long as gpu__time_duration says. Records may come
 * long before or after the session's end. Each call's value is used once.
 *
 * Values are summed by launch configuration and minute and written as MEASURED records: after one round at
 * first, then after ever more, up to OCC_MATCHING_MAX_PAUSE, since the ring's log is never freed. Memory is
 * bounded: launches that do not fit have no value.
 *
 * Threads: the helper only, but occ_session_new() and _free().
 */
#pragma once

#include "exact.h"

#define OCC_SESSION_MAX_RANGES    512u
#define OCC_MATCHING_MAX_LAUNCHES (1u << 18) /* 12 MiB, and 14 MiB of values, touched as they are used */
#define OCC_MATCHING_MAX_SUMS     (1u << 13)
#define OCC_MATCHING_MAX_PAUSE    60u

/* Counters of one range: warps, SMs and blocks summed over cycles. */
struct occ_range_counts {
    double warps_active; /* sm__warps_active.sum */
    double sms_active;   /* sm__cycles_active.sum */
    double cycles;       /* sm__cycles_elapsed.max */
    double blocks;       /* sm__ctas_active.sum */
    double ns;           /* gpu__time_duration.sum */
};

/* A call that launches one kernel. */
struct occ_session_call {
    uint64_t start_ns; /* CLOCK_REALTIME when it was called */
    uint32_t correlation;
    bool has_returned, is_refused; /* refused: there is no kernel */
    bool may_be_captured;          /* a stream was being captured */
};

struct occ_session {
    struct occ_session *next;
    bool is_unpaired; /* calls overlapped, a launch is not among them, or counters are missing: no values */
    uint32_t n, ranges;
    struct occ_session_call calls[OCC_SESSION_MAX_RANGES]; /* n, in their order */
    struct occ_range_counts counts[OCC_SESSION_MAX_RANGES];
};

/* The value of one call. */
struct occ_call_value {
    uint32_t correlation;
    enum { OCC_VALUE_NONE, OCC_VALUE_MEASURED, OCC_VALUE_UNKNOWN } state; /* UNKNOWN: not known, or used */
    uint64_t start_ns;
    struct occ_range_counts counts;
};

struct occ_matching {
    struct occ_exact_launch *waiting; /* for the value of their calls, n */
    uint32_t n;
    struct occ_call_value *values;    /* by correlation modulo OCC_MATCHING_MAX_LAUNCHES, the newest */
    struct occ_record_measured *sums; /* hashed by configuration and minute; without launches: free */
    uint32_t n_sums;
    uint32_t pause, paused; /* rounds between two times that sums are written, and since the last */
    bool is_full;           /* the log has no room for sums */
    uint64_t ranges;        /* paired with a call, ever */
    uint64_t unpaired;      /* ranges of sessions without values, ever */
    uint64_t dropped;       /* launches and values that had to make room before they met, ever */
    uint64_t measured;      /* launches that got a value, ever */
    uint64_t launches;      /* seen, ever */
    uint64_t by_call;       /* launches with the times of their call, ever */
    uint64_t forgotten[OCC_LOSS_COUNT]; /* launches without times that were given up, not yet reported */
};

/* Zeroed, from mmap(2); NULL: no memory. */
struct occ_session *occ_session_new(void);
void occ_session_free(struct occ_session *session);

/* False: no memory. */
bool occ_matching_init(struct occ_matching *matching);
/* False: a graph's kernel, which is not kept. */
bool occ_matching_add_launch(struct occ_matching *matching, const struct occ_exact_launch *launch);
/* Takes the session. */
void occ_matching_add_session(struct occ_matching *matching, struct occ_session *session);
/* Once a round. is_last: no launch will follow, none is kept and all sums are written. */
void occ_matching_run(struct occ_matching *matching, bool is_last, const struct occ_exact_sink *sink);
