/* The readers: each reads the recording at `path` into the sink. Messages have the file and the position
 * (byte of the uncompressed JSON, row of the table). */
#ifndef OCC_IMPORT_READERS_H
#define OCC_IMPORT_READERS_H

#include "sink.h"

/* Chrome-trace JSON of the PyTorch profiler (Kineto), plain or gzip. */
int occ_import_read_kineto(const char *path, struct occ_import_sink *sink, struct occ_error *err);

/* SQLite export of Nsight Systems. */
int occ_import_read_nsys(const char *path, struct occ_import_sink *sink, struct occ_error *err);

#endif
