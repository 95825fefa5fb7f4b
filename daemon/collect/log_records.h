/* From a ring's log (ring/ring_abi.h) into the history and the producer's tables. One thread. */
#pragma once

#include "producers.h"

#define OCC_LOG_RECORDS_BROKEN 1

/*
 * Takes at most `budget` records (it counts down; 0 when `until_ns`, monotonic, has come). 0: the log is
 * empty for now or the budget is used up; OCC_LOG_RECORDS_BROKEN: the ring is broken or a record is
 * impossible (`err` has the reason); else the store's error, and the record is taken again by the next call.
 */
int occ_log_records_take(struct occ_producer *producer, struct occ_store *store, size_t *budget,
                         int64_t until_ns, struct occ_error *err);
