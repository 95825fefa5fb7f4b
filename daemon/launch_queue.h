/* Launches on their way to a GPU's attribution, bounded. A zeroed struct is empty. One thread at a time. */
#ifndef OCC_DAEMON_LAUNCH_QUEUE_H
#define OCC_DAEMON_LAUNCH_QUEUE_H

#include "attribution/attribution.h"

struct occ_launch_queue {
    struct occ_attribution_launch *items;
    size_t n, allocated;
};

/* Appends one. False: no memory, or `max` are there. */
bool occ_launch_queue_add(struct occ_launch_queue *queue, const struct occ_attribution_launch *launch,
                          size_t max);

/* Sorts `more` by start and merges it into `queue`, which is in that order; empties `more`. Returns how many, the latest
 * ones, were dropped for lack of memory or because `max` are there. */
size_t occ_launch_queue_merge(struct occ_launch_queue *queue, struct occ_launch_queue *more, size_t max);

/* Removes the first n. */
void occ_launch_queue_remove(struct occ_launch_queue *queue, size_t n);

#endif
