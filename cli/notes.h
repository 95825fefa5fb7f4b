/*
 * Notes (cli_note() in command.h) for queries of several histories: with the owner's name, printed after the
 * answer. One thread.
 */
#pragma once

#include "options.h"

/* Sets the owner that later notes name; NULL: there is only one history. */
void cli_notes_of(const char *owner);
/* Keeps notes until cli_notes_release(), and lets cli_nothing() count owners. */
void cli_notes_hold(void);
/* Prints the kept notes: equal reasons for an empty answer as one line with the number of owners, then the
 * other notes. */
void cli_notes_release(const struct cli_command *command);
