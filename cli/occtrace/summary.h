/* The summary at the end of a run, on stderr. One thread (stdio). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

/* Counts the session's runs in the history, and the runs without an end. */
int summary_count(struct occ_store *store, const char *session, uint64_t *ret_runs, uint64_t *ret_open,
                  struct occ_error *err);

/* True if a run's process may still exist; always true for pid 0 (unknown). */
bool summary_is_alive(int64_t pid);

/* Prints the session's runs. `db`: the history as printed in the hint; "": occq's default. `was_killed`: a
 * signal ended the program. */
int summary_print(struct occ_store *store, const char *session_id, const char *db, bool was_killed,
                  struct occ_error *err);
