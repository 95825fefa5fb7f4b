/* Parts of the Nsight Systems reader (nsys.c): nsys_names.c, nsys_devices.c, nsys_facts.c. Internal to
 * import/. One thread. */
#ifndef OCC_IMPORT_NSYS_PARTS_H
#define OCC_IMPORT_NSYS_PARTS_H

#include "nsys_db.h"
#include "sink.h"

/* ---- names: table StringIds, with a cache ---- */

struct occ_nsys_names;

int occ_nsys_names_new(struct occ_nsys_db *d, struct occ_nsys_names **ret_names);
/* NULL is fine. */
void occ_nsys_names_free(struct occ_nsys_names *names);

/* The text of an id; valid until the next call. *ret_bytes 0: none, SIZE_MAX: too long for a name. */
int occ_nsys_names_find(struct occ_nsys_names *names, int64_t id, const char **ret_text, size_t *ret_bytes);

/*
 * ---- the GPU of a launch ----
 *
 * A launch has its process and the CUDA ordinal of the GPU in that process. TARGET_INFO_CUDA_DEVICE (2023 and
 * later) maps it to a GPU and the SMs that the process may use (a MIG slice has fewer); without it,
 * TARGET_INFO_GPU's own ordinals do.
 */

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

/* ---- facts about the recording ---- */

/* 1: CUDA graphs were recorded whole, without their kernels; 0: not; negative: damaged. */
int occ_nsys_has_whole_graphs(struct occ_nsys_db *d);

/* Fills version, host and times; program and rank where `process` (globalPid) is the only one, 0: not so.
 * Adds what the file lacks to missing_fields. */
int occ_nsys_facts_read(struct occ_nsys_db *d, int64_t process, struct occ_import_recording *recording);

/* Appends to missing_fields. */
void occ_nsys_add_missing(struct occ_import_recording *recording, const char *text);

#endif
