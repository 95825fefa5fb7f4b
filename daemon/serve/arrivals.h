/* Limits new connections by user: each user has a rate and a burst; the daemon closes further connections at
 * once. A user who floods the socket, also from subordinate uids, spends only that user's allowance. The
 * table is bounded: a new uid replaces the uid with the least debt. Pure; one thread. */
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

/* true if a new connection of this user is within the allowance, which is then charged. `uid` is the owner of
 * a subordinate uid. */
bool occ_arrivals_admit(struct occ_arrivals *arrivals, uint32_t uid, int64_t now_ns);
