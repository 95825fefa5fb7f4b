/* Limits new connections by uid: each uid has a rate and a burst; the daemon closes further connections at
 * once. A uid that floods the socket spends only its own allowance. The table is bounded: a new uid replaces
 * the uid with the least debt. Pure; one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/collect/share.h"

#define OCC_ARRIVALS_UIDS 256
/* 4000 connections a second, and a burst of OCC_SHARE_BURST_NS: 800 */
#define OCC_ARRIVALS_COST_NS INT64_C(250000)

struct occ_arrivals {
    struct {
        uint32_t uid;
        struct occ_share share;
    } of[OCC_ARRIVALS_UIDS];
    size_t n;
};

/* true if a new connection of this uid is within its allowance, which is then charged. */
bool occ_arrivals_admit(struct occ_arrivals *arrivals, uint32_t uid, int64_t now_ns);
