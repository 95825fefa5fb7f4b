/* The readers: each takes one recording from `path` and gives what it finds to the sink. 0 or a negative code, with
 * the file and the position (byte of the uncompressed JSON, row of the table) in the message. */
#ifndef OCC_IMPORT_READERS_H
#define OCC_IMPORT_READERS_H

#include "occupancy/occupancy.h"
#include "sink.h"

/* Chrome-trace JSON of the PyTorch profiler (Kineto), plain or gzip. `gpu`: device to take for recordings without
 * deviceProperties (occ_device_from_name); NULL: none was named. */
int occ_import_read_kineto(const char *path, const struct occ_device *gpu, const char *gpu_name,
                           struct occ_import_sink *sink, struct occ_error *err);

/* SQLite export of Nsight Systems. */
int occ_import_read_nsys(const char *path, const struct occ_device *gpu, const char *gpu_name,
                         struct occ_import_sink *sink, struct occ_error *err);

#endif
