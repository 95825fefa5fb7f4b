/* --all-users: a command for each history DIR/OWNER/history.db. One thread. */
#pragma once

#include "command.h"
#include "options.h"

/* Checks the command's other options against --all-users; `args` is a struct cli_list_args. Returns
 * OCC_E_INVALID if an option excludes --all-users. */
int cli_check_all_users(const struct cli_command *command, const struct cli_args *args,
                        struct occ_error *err);

/* Names the owner of the lines below the table and of the notes that follow, until the next call. NULL: they
 * belong to no owner. */
void cli_speak_of(const struct cli_output *output, const char *owner);

/* Joins exit statuses of owners: a failure or wrong usage has priority, then any answer. */
int cli_join_owners(int result, int status);
/* Notes the number of histories that the user may not read. */
void cli_note_closed(const struct cli_command *command, const struct cli_args *args,
                     const struct cli_owners *owners);

/* Lets the command answer for all histories (run_all), or prints one table of all histories (if the command
 * merges owners, struct cli_command) or one answer per owner under the owner's name. Notes the number of
 * unreadable histories last. Returns the exit status: CLI_EXIT_NOTHING if no history has an answer. */
int cli_run_for_all(const struct cli_command *command, struct cli_args *args);
