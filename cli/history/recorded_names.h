/* Recorded names for the shell's completion: kernels, labels and runs of the history that the arguments name.
 * One thread. */
#pragma once

#include "cli/complete.h"

/* Maximum number of names, the newest first. */
#define RECORDED_NAMES_MAX 200
/* The process ends silently after this time: a person waits for the completion. */
#define RECORDED_TIME_MS 1000

/* Lists names, as cli_list_recorded; nothing for questions to a warehouse, another node or all owners. */
void recorded_list(const struct cli_recorded_question *question);
