/* The connections that each uid makes: every uid may make so many a second, and a burst; the daemon closes
 * the others at once. A uid that floods the socket spends its own allowance only. The table is bounded: a new
 * uid takes the place of the uid that owes least. Pure; one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/collect/share.h"

#define OCC_ARRIVALS_UIDS 256
#define OCC_ARRIVALS_COST_NS                                                                                 \
    INT64_C(250000) /* 4000 connections a second, and OCC_SHARE_BURST_NS at once: 800 */

struct occ_arrivals {
    struct {
        uint32_t uid;
        struct occ_share share;
    } of[OCC_ARRIVALS_UIDS];
    size_t n;
};

/* Whether a connection that this uid makes now is within the uid's allowance, which then is charged. */
bool occ_arrivals_admit(struct occ_arrivals *arrivals, uint32_t uid, int64_t now_ns);
