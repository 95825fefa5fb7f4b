/* The summary at the end of a run, on stderr. One thread (stdio). */
#ifndef OCC_OCCTRACE_SUMMARY_H
#define OCC_OCCTRACE_SUMMARY_H

#include <stdbool.h>

#include "store/store.h"

/* `db`: as the hint names it; "": the user's own. `was_killed`: a signal ended the program. */
void summary_print(const struct occ_runs *runs, const char *db, bool was_killed);

#endif
