/* An output file that exists either complete or not at all, compressed according to its name. One thread. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "support/error.h"

struct cli_file {
    FILE *out;
    char *path;      /* final name; NULL: stdout */
    char *temporary; /* temporary name until cli_file_finish(); NULL: `path` is not a regular file */
    bool is_named;   /* the file has the temporary name; false: it has no name yet (O_TMPFILE) */
    int fd;          /* second descriptor of the file, valid after `out` is closed */
};

/* True if the name, without ".gz" or ".zst", ends in `end`. */
bool cli_file_ends_in(const char *path, const char *end);
/* Opens an output file. `path` NULL: stdout; "-" is refused. Files named ".gz" and ".zst" are compressed;
 * names of other compressions are refused. Refuses to replace a database: see cli_check_output(). */
int cli_file_open(const char *path, struct cli_file *ret_output, struct occ_error *err);
/* Completes the file and gives it its name; an existing file is replaced. */
int cli_file_finish(struct cli_file *output, struct occ_error *err);
/* Removes the incomplete file after a failure. Has no effect after cli_file_finish(). */
void cli_file_abandon(struct cli_file *output);
