/* Shell completion from the tables of options.h. The scripts of cli/completion/ call "PROGRAM --complete
 * WORD...", an option that --help does not list. The words are the program's arguments up to the word at the
 * cursor, which may be empty. */
#pragma once

#include <stdio.h>

#include "options.h"

/* Names in a history. */
enum cli_recorded { CLI_RECORDED_KERNELS, CLI_RECORDED_LABELS, CLI_RECORDED_RUNS };

/* A question for recorded names that begin with `begun`. `take` gets each name, and a text about it or NULL.
 */
struct cli_recorded_question {
    enum cli_recorded what;
    const struct cli_command *command;
    char *const *words; /* the command's arguments */
    const char *begun;
    void (*take)(void *context, const char *name, const char *about);
    void *context;
};
/* Names are texts of traced programs: `take` refuses names that a shell script could take for something else.
 * Silent after any failure. */
typedef void cli_list_recorded(const struct cli_recorded_question *question);

/* Prints the completions of the last of `words` (NULL-terminated), one per line: the word, then a tab and its
 * meaning if known. Special lines: ":files": the shell completes file names; ":program N": word N (from 0)
 * and the words after it belong to another program. `commands`: NULL-terminated; NULL: the program has no
 * commands. `list`: lists recorded names; NULL: the program has none. */
void cli_complete(FILE *out, const struct cli_command *program, const struct cli_command *const *commands,
                  char *const *words, cli_list_recorded *list);
