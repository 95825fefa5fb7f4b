/*
 * --exact: which launch a measured range was. The range profiler gives the ranges of a session (one between its start and its
 * stop, in one context) in the order of execution and without names; activity records give launches with their times. Kernels run one
 * after the other meanwhile, so the records of the context that began during the session, in the order of their starts, are the
 * ranges, if and only if there are as many. If there are not, none of that session has a value: nothing is guessed.
 *
 * A session waits OCC_PAIRS_ROUNDS rounds for records that are late. If meanwhile records were lost of which nobody knows when
 * they began, it has no values: what is left of a graph's kernels could be as many as its one range.
 * Values are added up by shape and minute, and said in a MEASURED record for each: after a round at first, then after ever
 * more, up to OCC_PAIRS_MOST_PAUSE, since the ring's log is never made free again.
 * Memory is bounded: what does not fit has no value, and is counted.
 * Threads: the helper only.
 */
#ifndef OCC_INJECTOR_EXACT_PAIRS_H
#define OCC_INJECTOR_EXACT_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/ring_abi.h"

#define OCC_PAIRS_MOST_RANGES  512u
#define OCC_PAIRS_MOST_RECORDS (1u << 18) /* 8 MiB, touched as they are used */
#define OCC_PAIRS_MOST_SUMS    (1u << 13)
#define OCC_PAIRS_ROUNDS       2u
#define OCC_PAIRS_MOST_PAUSE   60u
#define OCC_PAIRS_NO_SHAPE     UINT32_MAX

/* Counters of one range: warps, SMs and blocks summed over cycles. */
struct occ_range_counts {
    double warps_active; /* sm__warps_active.sum */
    double sms_active;   /* sm__cycles_active.sum */
    double cycles;       /* sm__cycles_elapsed.max */
    double blocks;       /* sm__ctas_active.sum */
};

/* What one session gave. Made where the session ended; freed by whoever settles it, with munmap(2). */
struct occ_session {
    struct occ_session *next;
    uint32_t context;
    uint32_t rounds; /* waited */
    uint64_t began_ns, ended_ns;
    uint64_t lost; /* at most the pairs' `lost` when it began */
    uint32_t ranges;
    struct occ_range_counts counts[OCC_PAIRS_MOST_RANGES];
};

struct occ_pairs_record {
    uint64_t start_ns, duration_ns;
    uint32_t context;
    uint32_t shape; /* OCC_PAIRS_NO_SHAPE: the ring did not take it */
};

struct occ_pairs {
    struct occ_pairs_record *records; /* NULL: not in use */
    uint32_t n;
    struct occ_session *first, **last; /* sessions that wait, oldest first */
    struct occ_record_measured *sums;  /* hashed by shape and minute; without launches: free */
    uint32_t n_sums;
    uint32_t pause, paused; /* rounds between two times that sums are said, and since the last */
    uint64_t measured;      /* launches that got a value, ever */
    uint64_t launches;      /* records seen, ever */
    uint64_t lost;          /* records without times, ever; counted by whoever loses them */
};

/* Takes one record; its `head` is filled there. False: it was not taken. */
typedef bool occ_pairs_sink(void *context, struct occ_record_measured *record);

/* False: no memory. */
bool occ_pairs_init(struct occ_pairs *pairs);
void occ_pairs_add_record(struct occ_pairs *pairs, const struct occ_pairs_record *record);
/* Takes the session. */
void occ_pairs_add_session(struct occ_pairs *pairs, struct occ_session *session);
/* Once a round; `all`: no more records will come, and all is said. */
void occ_pairs_settle(struct occ_pairs *pairs, bool all, occ_pairs_sink *sink, void *context);

#endif
