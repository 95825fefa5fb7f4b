/* Shell completion out of the tables of options.h. The scripts of cli/completion/ call "PROGRAM --complete
 * WORD...", which the help does not list: the words behind the program's name, up to and with the one at the
 * cursor, which may be empty. */
#pragma once

#include <stdio.h>

#include "options.h"

/* Prints what the last of `words` (NULL-terminated) may become, a line each: the word, and behind a tab what
 * it means if that is known. Instead of words: ":files", names of files; ":program N", word N (from 0) and
 * what follows are another program's. `commands`: of a program that has any, NULL-terminated; else NULL. */
void cli_complete(FILE *out, const struct cli_command *program, const struct cli_command *const *commands,
                  char *const *words);
