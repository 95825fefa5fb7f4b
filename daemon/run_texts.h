/* The texts of a run's row that a daemon owns, malloc'ed; the row's other strings belong to somebody else. */
#ifndef OCC_DAEMON_RUN_TEXTS_H
#define OCC_DAEMON_RUN_TEXTS_H

#include "store/store.h"

/* Sets the text of a PROCESS record's key to a copy of `value`, cut to its limit and fit for a terminal.
 * Ignores unknown keys (of a newer minor version) and a session that is not 32 hexadecimal digits. */
int occ_run_texts_set(struct occ_run *row, const char *key, const char *value, struct occ_error *err);

void occ_run_texts_free(struct occ_run *row);

#endif
