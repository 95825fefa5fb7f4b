/* A share of the loop's time: work is charged with what it took, times a price. Who has used more than his
 * share waits until he has paid; short bursts are free. With price P the share is 1/P of the time. Times are
 * monotonic; zeroed: nothing is owed. Pure; one thread. */
#pragma once

#include <stdint.h>

#define OCC_SHARE_BURST_NS INT64_C(200000000)

struct occ_share {
    int64_t paid_ns; /* when all that was used will be paid */
};

static inline void occ_share_charge(struct occ_share *share, int64_t now_ns, int64_t cost_ns)
{
    share->paid_ns = (share->paid_ns > now_ns ? share->paid_ns : now_ns) + cost_ns;
}

/* How long to wait before more is used; 0: go on. */
static inline int64_t occ_share_wait_ns(const struct occ_share *share, int64_t now_ns)
{
    int64_t owed_ns = share->paid_ns - now_ns;
    return owed_ns > OCC_SHARE_BURST_NS ? owed_ns - OCC_SHARE_BURST_NS : 0;
}
