/* Token bucket for the loop's time. The caller charges work with k times its duration: over time the work
 * uses at most 1/k of the time; a burst is free. Work waits while its debt exceeds the burst. Times are
 * monotonic; zeroed: no debt. Pure; one thread. */
#pragma once

#include <stdint.h>

#define OCC_SHARE_BURST_NS INT64_C(200000000)

struct occ_share {
    int64_t debt_until_ns; /* time at which the debt is repaid */
};

static inline void occ_share_charge(struct occ_share *share, int64_t now_ns, int64_t cost_ns)
{
    share->debt_until_ns = (share->debt_until_ns > now_ns ? share->debt_until_ns : now_ns) + cost_ns;
}

/* Time to wait before more work; 0: none. */
static inline int64_t occ_share_wait_ns(const struct occ_share *share, int64_t now_ns)
{
    int64_t debt_ns = share->debt_until_ns - now_ns;
    return debt_ns > OCC_SHARE_BURST_NS ? debt_ns - OCC_SHARE_BURST_NS : 0;
}
