/*
 * Which GPU a launch of a Nsight Systems export ran on. A launch says its process and the CUDA ordinal that this process
 * knows the GPU by. TARGET_INFO_CUDA_DEVICE says what GPU that is (2023 and later), with the SMs that the process may use
 * (a MIG slice has fewer); without it, TARGET_INFO_GPU's own ordinals do. One thread.
 */
#ifndef OCC_IMPORT_NSYS_DEVICES_H
#define OCC_IMPORT_NSYS_DEVICES_H

#include "nsys_db.h"
#include "occupancy/occupancy.h"
#include "sink.h"

struct occ_nsys_devices;

/* `named`, `named_gpu`: what the user says of GPUs that the file does not describe; NULL: nothing. */
int occ_nsys_devices_read(struct occ_nsys_db *d, const struct occ_device *named, const char *named_gpu,
                          struct occ_nsys_devices **ret_devices);
/* NULL is fine. */
void occ_nsys_devices_free(struct occ_nsys_devices *devices);

/* The sink's number of the GPU behind an ordinal, made known to the sink before its first use. `process` is the launch's
 * globalPid, 0: unknown. *ret_found false: the file does not say which GPU it is. OCC_E_INVALID: the GPU is named without
 * what the model needs. */
int occ_nsys_devices_find(struct occ_nsys_devices *devices, struct occ_import_sink *sink, int64_t process,
                          int64_t ordinal, uint64_t *ret_number, bool *ret_found, struct occ_error *err);

/* Parts of a "serialized global id": hardware and virtual machine in the upper 16 bits, process id, thread id. */
static inline int64_t occ_nsys_machine_of(int64_t global)
{
    return global >> 48 & 0xffff;
}
static inline int64_t occ_nsys_pid_of(int64_t global)
{
    return global >> 24 & 0xffffff;
}

#endif
