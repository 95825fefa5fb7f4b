/* Number of refused programs and clients by owner (user, container or pod) and cause. The table is bounded: a
 * new owner replaces the one with the lowest count. Pure; one thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "support/refusals.h"

#define OCC_REFUSALS_OWNERS     256
#define OCC_REFUSALS_NAME_BYTES 80 /* size of the name in struct occ_owner */

struct occ_refusals {
    uint64_t all[OCC_REFUSAL_COUNT]; /* sums over all owners */
    struct occ_refusals_of {
        char owner[OCC_REFUSALS_NAME_BYTES];
        uint64_t n, by[OCC_REFUSAL_COUNT];
    } of[OCC_REFUSALS_OWNERS];
    size_t n;
};

/* `owner`: the name in a struct occ_owner. */
void occ_refusals_count(struct occ_refusals *refusals, const char *owner, enum occ_refusal cause);
/* Counts a refusal of a peer whose control groups are unknown. `uid`: the user; a subordinate uid counts for
 * its owner. */
void occ_refusals_count_uid(struct occ_refusals *refusals, uint32_t uid, enum occ_refusal cause);

/* OCC_REFUSAL_COUNT numbers of this owner. NULL: none are recorded. */
const uint64_t *occ_refusals_by(const struct occ_refusals *refusals, const char *owner);
