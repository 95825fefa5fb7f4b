/* The Nsight Systems reader over an open connection (files: nsys.c; memory: tests and the fuzzer). */
#ifndef OCC_IMPORT_NSYS_H
#define OCC_IMPORT_NSYS_H

#include "readers.h"

struct sqlite3;

/* `db` belongs to the caller and is made harmless here: nothing of its schema runs, nothing is written. */
int occ_nsys_read(struct sqlite3 *db, const struct occ_device *gpu, const char *gpu_name,
                  struct occ_import_sink *sink, struct occ_error *err);

#endif
