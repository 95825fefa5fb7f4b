/*
 * Notes (cli_note() in command.h) while several histories are asked: with the name of their owner, and behind
 * the answer. One thread.
 */
#pragma once

#include "options.h"

/* Later notes name this owner; NULL: there is only one history. */
void cli_notes_of(const char *owner);
/* Keeps notes until cli_notes_release(), and lets cli_nothing() count owners. */
void cli_notes_hold(void);
/* Prints the kept notes: equal reasons for an empty answer as one line with the number of owners, then the
 * other notes. */
void cli_notes_release(const struct cli_command *command);
