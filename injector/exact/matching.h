/*
 * Range matching: which launch a measured range was. The range profiler gives the ranges of a session (from
 * its start to its stop, in one context) in the order of execution and without names; activity records give
 * launches with their times. Kernels run one after the other meanwhile, so the launches of that context that
 * began during the session, in the order of their starts, are the ranges, if and only if there are as many.
 * If not, no launch of the session has a value: nothing is guessed.
 *
 * A session waits OCC_MATCHING_ROUNDS rounds for late records. If records of unknown time were lost meanwhile
 * it has no values: what is left of a graph's kernels could be as many as its one range. Values are summed by
 * launch configuration and minute and written as MEASURED records: after one round at first, then after ever
 * more, up to OCC_MATCHING_MAX_PAUSE, since the ring's log is never freed. Memory is bounded: what does not
 * fit has no value.
 *
 * Threads: the helper only, but occ_session_new() and _free().
 */
#pragma once

#include "exact.h"

#define OCC_SESSION_MAX_RANGES    512u
#define OCC_MATCHING_MAX_LAUNCHES (1u << 18) /* 6 MiB, touched as they are used */
#define OCC_MATCHING_MAX_SUMS     (1u << 13)
#define OCC_MATCHING_ROUNDS       2u
#define OCC_MATCHING_MAX_PAUSE    60u

/* Counters of one range: warps, SMs and blocks summed over cycles. */
struct occ_range_counts {
    double warps_active; /* sm__warps_active.sum */
    double sms_active;   /* sm__cycles_active.sum */
    double cycles;       /* sm__cycles_elapsed.max */
    double blocks;       /* sm__ctas_active.sum */
};

struct occ_session {
    struct occ_session *next;
    uint32_t context;
    uint32_t rounds; /* waited */
    uint64_t began_ns, ended_ns;
    uint64_t lost; /* at most the matching's `lost` when the session began */
    uint32_t ranges;
    struct occ_range_counts counts[OCC_SESSION_MAX_RANGES];
};

struct occ_matching {
    struct occ_exact_launch *recent; /* not matched yet */
    uint32_t n;
    struct occ_session *first, **last; /* sessions that wait, oldest first */
    struct occ_record_measured *sums;  /* hashed by configuration and minute; without launches: free */
    uint32_t n_sums;
    uint32_t pause, paused; /* rounds between two times that sums are written, and since the last */
    bool is_full;           /* the log has no room for sums */
    uint64_t measured;      /* launches that got a value, ever */
    uint64_t launches;      /* seen, ever */
    uint64_t lost;          /* launches of unknown time, ever */
};

/* Zeroed, from mmap(2); NULL: no memory. */
struct occ_session *occ_session_new(void);
void occ_session_free(struct occ_session *session);

/* False: no memory. */
bool occ_matching_init(struct occ_matching *matching);
void occ_matching_add_launch(struct occ_matching *matching, const struct occ_exact_launch *launch);
/* Takes the session. */
void occ_matching_add_session(struct occ_matching *matching, struct occ_session *session);
/* Once a round. is_last: no launch will follow, all sessions are settled and all sums written. */
void occ_matching_run(struct occ_matching *matching, bool is_last, occ_exact_sink *sink, void *context);
