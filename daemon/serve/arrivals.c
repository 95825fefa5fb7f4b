/* See arrivals.h. No global state. */
#include "arrivals.h"

#include <stdio.h>
#include <string.h>

static struct occ_share *share_of(struct occ_arrivals *arrivals, const char *owner)
{
    size_t least = 0;
    for (size_t i = 0; i < arrivals->n; i++) {
        if (strcmp(arrivals->of[i].owner, owner) == 0)
            return &arrivals->of[i].share;
        if (arrivals->of[i].share.debt_until_ns < arrivals->of[least].share.debt_until_ns)
            least = i;
    }
    size_t place = arrivals->n < OCC_ARRIVALS_OWNERS ? arrivals->n++ : least;
    (void)snprintf(arrivals->of[place].owner, sizeof arrivals->of[place].owner, "%s", owner);
    arrivals->of[place].share = (struct occ_share){0};
    return &arrivals->of[place].share;
}

bool occ_arrivals_admit(struct occ_arrivals *arrivals, const char *owner, int64_t now_ns)
{
    struct occ_share *share = share_of(arrivals, owner);
    if (occ_share_wait_ns(share, now_ns) > 0)
        return false;
    occ_share_charge(share, now_ns, OCC_ARRIVALS_COST_NS);
    return true;
}
