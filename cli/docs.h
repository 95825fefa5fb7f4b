/*
 * Man pages (man(7) macros) and shell completion, written from the tables of options.h. What they write is committed
 * in docs/man and cli/completion; a test compares. One thread (stdio).
 */
#ifndef OCC_CLI_DOCUMENT_H
#define OCC_CLI_DOCUMENT_H

#include <stdio.h>

#include "options.h"

/* "occq-top.1": the page of `command`. `commands`: those of a program, or NULL. */
void document_man(FILE *out, const struct cli_command *command, const struct cli_command *const *commands,
                  const char *version);

/* Completion for bash: occq with its commands; occtrace, which hands over to the program's own. */
void document_bash_occq(FILE *out, const struct cli_command *program,
                        const struct cli_command *const *commands);
void document_bash_occtrace(FILE *out, const struct cli_command *program);

#endif
