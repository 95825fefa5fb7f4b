/*
 * Notes (cli_note() in command.h) while several histories are asked: with the name of their owner, and behind
 * the answer. One thread.
 */
#pragma once

#include "options.h"

/* From here on notes are of this owner's history; NULL: there is but one. */
void cli_notes_of(const char *owner);
/* From here to cli_notes_release() notes are kept, and cli_nothing() counts owners. */
void cli_notes_hold(void);
/* Prints them: equal reasons for nothing as one line with the number of owners, then the others. */
void cli_notes_release(const struct cli_command *command);
