/* The tables of options.h as --help, from which scripts/gen-man makes the man pages; usage errors. One thread
 * (stdio). */
#pragma once

#include <stdio.h>

#include "options.h"

/* Flushes stdout before a line on stderr, so that their order holds. The first error is kept. */
void cli_flush_stdout(void);
/* errno of the first failed flush; 0: none failed. */
int cli_stdout_errno(void);

/* Prints words of `text` up to the end or an empty line, wrapped at column 80 or the end of a narrower
 * screen, each line but the first with `indent` blanks before it; `at` is the column where the first line
 * starts. Returns what follows the paragraph. */
const char *cli_print_wrapped(FILE *out, const char *text, int at, int indent);

/* The whole --help text, at most 80 columns wide. */
void cli_print_help(FILE *out, const struct cli_command *command, const struct cli_command *const *commands);

/* "occq top: MESSAGE" and "Try 'occq top --help'." on stderr; returns CLI_EXIT_USAGE. */
int cli_usage_error(const struct cli_command *command, const struct occ_error *err);
