/* The Nsight Systems reader over an open connection (files: nsys.c; memory: tests and the fuzzer). */
#ifndef OCC_IMPORT_NSYS_H
#define OCC_IMPORT_NSYS_H

#include "readers.h"

struct sqlite3;

/* `db` stays the caller's and is restricted to reading: nothing of its schema runs. */
int occ_nsys_read(struct sqlite3 *db, struct occ_import_sink *sink, struct occ_error *err);

#endif
