/* How often programs and clients of each user were refused, by cause. The table is bounded: a new user takes
 * the place of the one with the fewest. Pure; one thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "support/refusals.h"

#define OCC_REFUSALS_USERS 256

struct occ_refusals {
    uint64_t all[OCC_REFUSAL_COUNT]; /* of all users */
    struct occ_refusals_of {
        uint32_t uid;
        uint64_t n, by[OCC_REFUSAL_COUNT];
    } of[OCC_REFUSALS_USERS];
    size_t n;
};

void occ_refusals_count(struct occ_refusals *refusals, uint32_t uid, enum occ_refusal cause);

/* OCC_REFUSAL_COUNT numbers of this user. NULL: none are known. */
const uint64_t *occ_refusals_by(const struct occ_refusals *refusals, uint32_t uid);
