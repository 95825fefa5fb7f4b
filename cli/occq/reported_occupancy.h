/* The achieved occupancy that a recording itself reports, compared with ours, and why the two differ. Pure.
 */
#ifndef OCC_OCCQ_REPORTED_OCCUPANCY_H
#define OCC_OCCQ_REPORTED_OCCUPANCY_H

#include "store/store.h"

/*
 * Kineto's "est. achieved occupancy %" is an estimate from the configuration, not measured:
 *   min(blocks / SMs, its own blocks per SM) x threads per block / maximum threads per SM,
 * in whole percent; blocks that need more shared memory than a kernel has without opting in count as
 * impossible, 0 %. (Source: the values in public recordings, which this reproduces.) Returns the reason for a
 * difference; "" if the reported value is the expected one within its rounding.
 */
const char *reported_difference(const struct occ_config_row *row);

/* Our value nearest to it in meaning: theoretical occupancy, or for less than a wave expected_elapsed. NaN:
 * not analysed. */
double reported_expected(const struct occ_config_row *row);

#endif
