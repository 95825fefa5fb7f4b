/* The labels and runs of a history, for messages about words that name none. One thread. */
#pragma once

#include "store/store.h"

/* True if the label of a run matches `label`, as --label does. */
bool history_has_label(struct occ_store *store, const char *label);

enum { HISTORY_KNOWN_BYTES = 448 };
/* Formats "; did you mean 'new'?; labels: old, new; runs: 1 to 6 (occq runs)"; `word`: a text that is similar
 * to a label, or to a label behind "KEY:". Labels are the newest. Returns `text`, safe to print. */
const char *history_known_text(struct occ_store *store, const char *word, char text[HISTORY_KNOWN_BYTES]);
