/* Records of a ring's log (ring/ring_abi.h) on their way into the history and the producer's tables. One
 * thread. */
#pragma once

#include "producers.h"

#define OCC_LOG_RECORDS_BROKEN 1

/*
 * Takes at most `budget` records and subtracts their number from it; sets it to 0 at `until_ns` (monotonic).
 * 0: the log is empty for now or the budget is used up; OCC_LOG_RECORDS_BROKEN: the ring is broken or a
 * record is invalid (`err` has the reason); otherwise the store's error, and the next call takes the same
 * record again.
 */
int occ_log_records_take(struct occ_producer *producer, struct occ_store *store, size_t *budget,
                         int64_t until_ns, struct occ_error *err);
