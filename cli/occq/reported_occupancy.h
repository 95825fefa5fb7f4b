/* What a recording claims of achieved occupancy, beside what we find, and why the two differ. Pure. */
#ifndef OCC_CLI_CLAIM_H
#define OCC_CLI_CLAIM_H

#include "store/store.h"

/*
 * Kineto's "est. achieved occupancy %" is an estimate from the configuration, nothing measured:
 *   min(blocks / SMs, blocks per SM that it thinks are possible) x threads per block / most threads of an SM,
 * in whole percent; blocks that need more shared memory than a kernel has without opting in count as impossible, 0 %.
 * (Source: the numbers of public recordings, which this reproduces.) The reason in words, into `buffer`; "" if the
 * claim is the occupancy that we expect, too, within its rounding.
 */
const char *cli_claim_reason(const struct occ_shape_row *row, char *buffer, size_t size);

/* Our number that the claim is nearest to in meaning: theoretical occupancy, or for less than a wave the expected
 * one of all SMs. NaN: not analysed. */
double cli_claim_ours(const struct occ_shape_row *row);

#endif
