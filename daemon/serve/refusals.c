/* See refusals.h. No global state. */
#include "refusals.h"

#include <stdio.h>
#include <string.h>

/* Index of this owner's entry; else of a free entry; else of the entry with the lowest count. */
static size_t find(const struct occ_refusals *r, const char *owner)
{
    size_t least = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (strcmp(r->of[i].owner, owner) == 0)
            return i;
        if (r->of[i].n < r->of[least].n)
            least = i;
    }
    return r->n < OCC_REFUSALS_OWNERS ? r->n : least;
}

void occ_refusals_count(struct occ_refusals *r, const char *owner, enum occ_refusal cause)
{
    size_t i = find(r, owner);
    if (i == r->n)
        r->n++;
    if (strcmp(r->of[i].owner, owner) != 0) {
        r->of[i] = (struct occ_refusals_of){.n = 0};
        (void)snprintf(r->of[i].owner, sizeof r->of[i].owner, "%s", owner);
    }
    r->of[i].n++;
    r->of[i].by[cause]++;
    r->all[cause]++;
}

void occ_refusals_count_uid(struct occ_refusals *r, uint32_t uid, enum occ_refusal cause)
{
    char owner[OCC_REFUSALS_NAME_BYTES];
    (void)snprintf(owner, sizeof owner, "u%u", uid);
    occ_refusals_count(r, owner, cause);
}

const uint64_t *occ_refusals_by(const struct occ_refusals *r, const char *owner)
{
    size_t i = find(r, owner);
    return i < r->n && strcmp(r->of[i].owner, owner) == 0 ? r->of[i].by : NULL;
}
