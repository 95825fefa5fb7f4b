/* Periods of reduced recording in a run. One thread. */
#pragma once

#include "producers.h"

/* The recording level of the program changes at `at_ns`: ends the current period and, at a reduced level,
 * begins a new one, in the store and in the run's holes. After an error the same call may be repeated. */
int occ_periods_change(struct occ_producer *producer, enum occ_level level, int64_t at_ns, const char *reason,
                       struct occ_store *store, struct occ_error *err);
