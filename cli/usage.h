/* Help for people, and what is said about wrong usage, from the tables of options.h. One thread (stdio). */
#ifndef OCC_CLI_USAGE_H
#define OCC_CLI_USAGE_H

#include <stdio.h>

#include "options.h"

/* Flushes stdout before something is said on stderr, so that their order holds. The first error is kept. */
void cli_flush_stdout(void);
/* errno of the first failed flush; 0: none failed. */
int cli_stdout_errno(void);

/* The whole --help text, at most 80 columns wide. `commands`: those of a program (NULL-terminated), or NULL. */
void cli_print_help(FILE *out, const struct cli_command *command, const struct cli_command *const *commands);

/* "-d, --db FILE" as the help shows it; returns buffer. */
const char *cli_option_synopsis(const struct cli_option *option, char *buffer, size_t size);

/* "occq top: MESSAGE" and "Try 'occq top --help'." on stderr; returns CLI_EXIT_USAGE. */
int cli_usage_error(const struct cli_command *command, const struct occ_error *err);

/* "occq: MESSAGE" on stderr; returns CLI_EXIT_FAILURE. */
int cli_failure(const struct cli_command *command, const struct occ_error *err);

#endif
