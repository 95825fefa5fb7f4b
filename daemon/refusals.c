/* See refusals.h. No global state. */
#include "refusals.h"

/* The place of this user; else a free one; else that of the user with the fewest. */
static size_t find(const struct occ_refusals *r, uint32_t uid)
{
    size_t least = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (r->of[i].uid == uid)
            return i;
        if (r->of[i].n < r->of[least].n)
            least = i;
    }
    return r->n < OCC_REFUSALS_USERS ? r->n : least;
}

void occ_refusals_count(struct occ_refusals *r, uint32_t uid, enum occ_refusal cause)
{
    size_t i = find(r, uid);
    if (i == r->n)
        r->n++;
    if (r->of[i].uid != uid)
        r->of[i] = (struct occ_refusals_of){.uid = uid};
    r->of[i].n++;
    r->of[i].by[cause]++;
    r->all[cause]++;
}

const uint64_t *occ_refusals_by(const struct occ_refusals *r, uint32_t uid)
{
    size_t i = find(r, uid);
    return i < r->n && r->of[i].uid == uid ? r->of[i].by : NULL;
}
