/* A file that is there whole or not at all, compressed by its name. One thread. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "support/error.h"

struct cli_file {
    FILE *out;
    char *path;      /* of the file that it becomes; NULL: stdout */
    char *temporary; /* its name until then; NULL: `path` is no regular file */
    bool is_named;   /* it has that name; else none */
    int fd;          /* of the file, beside `out` */
};

/* Whether the name ends so, without ".gz" or ".zst". */
bool cli_file_ends_in(const char *path, const char *end);
/* `path` NULL: stdout; "-" is refused. Names that end in ".gz" and ".zst" are compressed, those of other
 * compressions refused. Of a database nothing is replaced: see cli_check_output(). */
int cli_file_open(const char *path, struct cli_file *ret_output, struct occ_error *err);
/* Completes the file and gives it its name; what was there before is replaced. */
int cli_file_finish(struct cli_file *output, struct occ_error *err);
/* After a failure: nothing is left. After cli_file_finish() this does nothing. */
void cli_file_abandon(struct cli_file *output);
