/* --all-users: a command for each history DIR/OWNER/history.db. One thread. */
#pragma once

#include "options.h"

/* Checks the other options of a command with --all-users; `args` is a struct cli_list_args. OCC_E_INVALID: an
 * option excludes --all-users. */
int cli_check_all_users(const struct cli_command *command, const struct cli_args *args,
                        struct occ_error *err);

/* One table of all histories (struct cli_command, merges_owners), or an answer under each owner's name.
 * Unreadable histories are named last. Returns the exit status: CLI_EXIT_NOTHING if no history has an answer.
 */
int cli_run_for_all(const struct cli_command *command, struct cli_args *args);
