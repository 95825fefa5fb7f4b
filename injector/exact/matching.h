/*
 * Matches measured ranges with launches. The range profiler returns the ranges of a session (from its start
 * to its stop, in one context) in the order of execution and without names. During a session kernels run one
 * after the other and launch calls do not overlap. If the session has as many ranges as certain calls, range
 * i belongs to certain call i; otherwise no launch of the session has a value: nothing is guessed. A call is
 * certain if it returned, was not refused, and was made while no stream was captured.
 *
 * An activity record belongs to the call with the same correlation. During a session CUPTI 13.0.1 returns
 * records without times (measured on an H100): such a launch starts at the time of its call, which is before
 * its kernel starts, and lasts for its gpu__time_duration. Records may arrive long before or after the
 * session's end. Each call's value is used once.
 *
 * Values are summed by launch configuration and minute and written as MEASURED records. The pause between two
 * writes grows from one round to OCC_MATCHING_MAX_PAUSE, since the ring's log is never freed; a full table of
 * sums is written at once. Memory is bounded: launches that do not fit have no value.
 *
 * Threads: the helper only, except occ_session_new() and _free().
 */
#pragma once

#include "exact.h"

#define OCC_SESSION_MAX_RANGES    512u
#define OCC_MATCHING_MAX_LAUNCHES (1u << 18) /* 12 MiB, and 14 MiB of values; allocated on first use */
#define OCC_MATCHING_MAX_SUMS     (1u << 13)
#define OCC_MATCHING_MAX_PAUSE    60u

/* Counters of one range: warps, SMs and blocks, summed over cycles. */
struct occ_range_counts {
    double warps_active; /* sm__warps_active.sum */
    double sms_active;   /* sm__cycles_active.sum */
    double cycles;       /* sm__cycles_elapsed.max */
    double blocks;       /* sm__ctas_active.sum */
    double ns;           /* gpu__time_duration.sum */
};

/* A call that launches one kernel. */
struct occ_session_call {
    uint64_t start_ns; /* CLOCK_REALTIME at the call */
    uint32_t correlation;
    bool has_returned, is_refused; /* refused: the driver launched no kernel */
    bool may_be_captured;          /* a stream was being captured */
};

struct occ_session {
    struct occ_session *next;
    bool is_unpaired; /* no values: calls overlapped, a launch has no call, or counters are missing */
    uint32_t n, ranges;
    struct occ_session_call calls[OCC_SESSION_MAX_RANGES]; /* n calls in their order */
    struct occ_range_counts counts[OCC_SESSION_MAX_RANGES];
};

/* The value of one call. */
struct occ_call_value {
    uint32_t correlation;
    enum { OCC_VALUE_NONE, OCC_VALUE_MEASURED, OCC_VALUE_UNKNOWN } state; /* UNKNOWN: not measured, or used */
    uint64_t start_ns;
    struct occ_range_counts counts;
};

struct occ_matching {
    struct occ_exact_launch *waiting; /* n launches waiting for their calls' values */
    uint32_t n;
    struct occ_call_value *values;    /* index: correlation modulo OCC_MATCHING_MAX_LAUNCHES */
    struct occ_record_measured *sums; /* hash table by configuration and minute; launches == 0: free entry */
    uint32_t n_sums;
    uint32_t pause, paused;             /* rounds between two writes of sums, rounds since the last write */
    bool is_full;                       /* the log has no room for sums */
    uint64_t ranges;                    /* ranges matched with a call, since the start */
    uint64_t unpaired;                  /* ranges of sessions without values, since the start */
    uint64_t dropped;                   /* launches and values discarded unmatched, since the start */
    uint64_t measured;                  /* launches with a written value, since the start */
    uint64_t launches;                  /* all launches, since the start */
    uint64_t by_call;                   /* launches with times from their call and counter, since the start */
    uint64_t forgotten[OCC_LOSS_COUNT]; /* launches given up without times, not yet reported */
};

/* Returns a zeroed session from mmap(2); NULL: no memory. */
struct occ_session *occ_session_new(void);
void occ_session_free(struct occ_session *session);

/* Allocates the tables. Returns false without memory. */
bool occ_matching_init(struct occ_matching *matching);
/* Stores the launch. Returns false for a kernel of a graph, which is not kept. */
bool occ_matching_add_launch(struct occ_matching *matching, const struct occ_exact_launch *launch);
/* Stores the values of the session's calls and frees the session. */
void occ_matching_add_session(struct occ_matching *matching, struct occ_session *session);
/* Settles launches and writes sums; called once a round. is_last: no launch follows; keeps no launch and
 * writes all sums. */
void occ_matching_run(struct occ_matching *matching, bool is_last, const struct occ_exact_sink *sink);
