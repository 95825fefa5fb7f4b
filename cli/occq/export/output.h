/* A file that is there whole or not at all, compressed as its name says. One thread. */
#ifndef OCC_EXPORT_OUTPUT_H
#define OCC_EXPORT_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "support/error.h"

struct export_output {
    FILE *out;
    char *path;      /* of the file that it becomes; NULL: stdout */
    char *temporary; /* its name until then; NULL: `path` is no regular file */
    bool is_named;   /* it has that name; else none */
    int fd;          /* of the file, beside `out` */
};

/* `path` NULL: stdout. Names that end in ".gz" and ".zst" are compressed. A database is not replaced. */
int export_output_open(const char *path, struct export_output *ret_output, struct occ_error *err);
/* Completes the file and gives it its name; what was there before is replaced. */
int export_output_finish(struct export_output *output, struct occ_error *err);
/* After a failure: nothing is left. After export_output_finish() this does nothing. */
void export_output_abandon(struct export_output *output);

#endif
