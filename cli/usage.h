/* Prints the tables of options.h as --help, the source of the man pages (scripts/gen-man), and usage errors.
 * One thread (stdio). */
#pragma once

#include <stdio.h>

#include "options.h"

/* Flushes stdout before a line on stderr, to keep their order. Records the first error. */
void cli_flush_stdout(void);
/* Returns errno of the first failed flush; 0: none failed. */
int cli_stdout_errno(void);

/* Prints words of `text` up to its end or an empty line, wrapped at column 80 or at the end of a narrower
 * screen; each line except the first begins with `indent` blanks; `at` is the column where the first line
 * starts. Returns the text after the paragraph. */
const char *cli_print_wrapped(FILE *out, const char *text, int at, int indent);

/* Prints the whole --help text, at most 80 columns wide. */
void cli_print_help(FILE *out, const struct cli_command *command, const struct cli_command *const *commands);

/* Prints "occq top: MESSAGE" and "Try 'occq top --help'." on stderr. Returns CLI_EXIT_USAGE. */
int cli_usage_error(const struct cli_command *command, const struct occ_error *err);
