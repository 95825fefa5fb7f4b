/* The summary at the end of a run, on stderr. One thread (stdio). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

/* Number of runs that the session has in the history. */
int summary_count(struct occ_store *store, const char *session, uint64_t *ret_runs, struct occ_error *err);

/* Prints its runs. `db`: as the hint names it; "": the user's own. `was_killed`: a signal ended the program.
 */
int summary_print(struct occ_store *store, const char *session, const char *db, bool was_killed,
                  struct occ_error *err);
