/* The summary at the end of a run, on stderr. One thread (stdio). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

/* Number of runs that the session has in the history, and of those that have no end yet. */
int summary_count(struct occ_store *store, const char *session, uint64_t *ret_runs, uint64_t *ret_open,
                  struct occ_error *err);

/* Whether a run's process is there, or may be (0: its id is not known). */
bool summary_is_alive(int64_t pid);

/* Prints its runs. `db`: as the hint names it; "": the user's own. `was_killed`: a signal ended it. */
int summary_print(struct occ_store *store, const char *session, const char *db, bool was_killed,
                  struct occ_error *err);
