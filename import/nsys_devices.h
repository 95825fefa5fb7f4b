/*
 * The GPU of a launch in an export of Nsight Systems. A launch has its process and the CUDA ordinal of the
 * GPU in that process. TARGET_INFO_CUDA_DEVICE (2023 and later) maps it to a GPU and the SMs that the process
 * may use (a MIG slice has fewer); without it, TARGET_INFO_GPU's own ordinals do. One thread.
 */
#ifndef OCC_IMPORT_NSYS_DEVICES_H
#define OCC_IMPORT_NSYS_DEVICES_H

#include "nsys_db.h"
#include "sink.h"

struct occ_nsys_devices;

/* The caller frees *ret_devices also after a failure. */
int occ_nsys_devices_read(struct occ_nsys_db *d, struct occ_import_sink *sink,
                          struct occ_nsys_devices **ret_devices);
/* NULL is fine. */
void occ_nsys_devices_free(struct occ_nsys_devices *devices);

/* 1: the sink knows the GPU as *ret_number; 0: the file does not describe it; OCC_E_INVALID: the file lacks
 * what the model needs of it. `process` is the launch's globalPid, 0: unknown. */
int occ_nsys_devices_find(struct occ_nsys_devices *devices, int64_t process, int64_t ordinal,
                          uint64_t *ret_number);

/* Parts of a "serialized global id": hardware and virtual machine in the upper 16 bits, process id, thread
 * id. */
static inline int64_t occ_nsys_machine_of(int64_t global)
{
    return global >> 48 & 0xffff;
}
static inline int64_t occ_nsys_pid_of(int64_t global)
{
    return global >> 24 & 0xffffff;
}

#endif
