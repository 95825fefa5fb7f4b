/*
 * The parts of occ_advise(). Each adviser changes one parameter of the launch and offers the change; the
 * model decides whether it gains. Internal to the model; any thread.
 */
#ifndef OCC_OCCUPANCY_ADVISER_H
#define OCC_OCCUPANCY_ADVISER_H

#include "advice.h"
#include "model.h"

struct adviser {
    const struct occ_device *device;
    const struct occ_launch *launch;
    const struct occ_result *result; /* of the launch as it is */
    struct occ_advice *list;
    size_t max;
    size_t count;
};

/* Adds a change to the list if the model finds a gain. `change` has kind, launch, values and cost; the
 * results before and after are filled in. */
bool occ_adviser_offer(struct adviser *a, const struct occ_advice *change);

/* Registers, shared memory, carve-out, barriers: advice_resources.c. */
void occ_advise_resources(struct adviser *a);

#endif
