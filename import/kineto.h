/* The Kineto reader over any source of bytes (files: kineto.c; memory: tests and the fuzzer). */
#ifndef OCC_IMPORT_KINETO_H
#define OCC_IMPORT_KINETO_H

#include "readers.h"

struct occ_kineto_input {
    /* At most `size` bytes; *ret_n 0: the end. */
    int (*read)(struct occ_kineto_input *input, unsigned char *data, size_t size, size_t *ret_n,
                struct occ_error *err);
    int (*rewind)(struct occ_kineto_input *input, struct occ_error *err);
    uint64_t done, total; /* for the progress bar */
};

int occ_kineto_read(struct occ_kineto_input *input, struct occ_import_sink *sink, struct occ_error *err);

#endif
