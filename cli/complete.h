/* Shell completion from the tables of options.h. The scripts of cli/completion/ call "PROGRAM --complete
 * WORD...", an option that --help does not list. The words are the program's arguments up to the word at the
 * cursor, which may be empty. */
#pragma once

#include <stdio.h>

#include "options.h"

/* Prints the completions of the last of `words` (NULL-terminated), one per line: the word, then a tab and its
 * meaning if known. Special lines: ":files": the shell completes file names; ":program N": word N (from 0)
 * and the words after it belong to another program. `commands`: NULL-terminated; NULL: the program has no
 * commands. */
void cli_complete(FILE *out, const struct cli_command *program, const struct cli_command *const *commands,
                  char *const *words);
