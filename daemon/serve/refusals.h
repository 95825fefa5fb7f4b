/* How often programs and clients of each owner were refused, by cause: of a user, a container or a pod. The
 * table is bounded: a new owner takes the place of the one with the fewest. Pure; one thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "support/refusals.h"

#define OCC_REFUSALS_OWNERS     256
#define OCC_REFUSALS_NAME_BYTES 80 /* as a struct occ_owner has */

struct occ_refusals {
    uint64_t all[OCC_REFUSAL_COUNT]; /* of all owners */
    struct occ_refusals_of {
        char owner[OCC_REFUSALS_NAME_BYTES];
        uint64_t n, by[OCC_REFUSAL_COUNT];
    } of[OCC_REFUSALS_OWNERS];
    size_t n;
};

/* `owner`: as a struct occ_owner names it. */
void occ_refusals_count(struct occ_refusals *refusals, const char *owner, enum occ_refusal cause);
/* Of a peer whose control groups are not known: of the user that the kernel names. */
void occ_refusals_count_uid(struct occ_refusals *refusals, uint32_t uid, enum occ_refusal cause);

/* OCC_REFUSAL_COUNT numbers of this owner. NULL: none are known. */
const uint64_t *occ_refusals_by(const struct occ_refusals *refusals, const char *owner);
