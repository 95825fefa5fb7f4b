/* Busy time and use of the GPUs, for columns of a list of runs: the numbers of `occq top --run N`. A run is
 * asked when its row is printed, so that the cost depends on the printed rows. One thread; the state is the
 * process's, since getters have no context. */
#pragma once

#include "cli/values.h"
#include "store/store.h"

/* Lets the getters ask this history. */
void run_use_begin(struct occ_store *store);
/* Ends the questions. Returns the first error of a getter. */
int run_use_end(struct occ_error *err);

/* Getters for columns with the SQL expression "run_id". Before run_use_begin() they return no value.
 * busy_text: "99.8%", "~99.8%" from a part of the launches, "<=99.8%" if overlap is not known,
 * ">=99.8%" if launches were lost. number: the
 * column's `index` is one of RUN_USE_BUSY ... */
cli_getter run_use_busy_text, run_use_number, run_use_is_maximum, run_use_is_minimum;
enum { RUN_USE_BUSY, RUN_USE_USED, RUN_USE_READ };
