/* Limits new connections by owner: each has a rate and a burst; the daemon closes further connections at
 * once. The table is bounded: a new owner replaces the owner with the least debt. Pure; one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/collect/share.h"

#define OCC_ARRIVALS_OWNERS     256
#define OCC_ARRIVALS_NAME_BYTES 80 /* size of the name in struct occ_owner */
/* 4000 connections a second, and a burst of OCC_SHARE_BURST_NS: 800 */
#define OCC_ARRIVALS_COST_NS INT64_C(250000)

struct occ_arrivals {
    struct {
        char owner[OCC_ARRIVALS_NAME_BYTES];
        struct occ_share share;
    } of[OCC_ARRIVALS_OWNERS];
    size_t n;
};

/* true if a new connection of this owner (the name in a struct occ_owner) is within the allowance, which is
 * then charged. */
bool occ_arrivals_admit(struct occ_arrivals *arrivals, const char *owner, int64_t now_ns);
