/*
 * The compute processes on each GPU, by NVML, which needs no privilege for this. A GPU with MIG counts as its
 * instances. NVML has the pids of the machine's first pid namespace.
 *
 * NVML may take seconds and may block: call it from a thread. It stays initialised until the lister is
 * closed: with the last user of the driver's state gone, the next one would wait for the GPUs to start. Not
 * run on a GPU yet. One thread at a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "support/error.h"

#define OCC_GPU_PROCESSES_MAX 1024
#define OCC_GPU_NAME_BYTES    96 /* NVML_DEVICE_UUID_V2_BUFFER_SIZE */

struct occ_gpu_process {
    char gpu[OCC_GPU_NAME_BYTES]; /* NVML's UUID: "GPU-..." or "MIG-..." */
    int32_t pid;
};

struct occ_gpu_processes {
    struct occ_gpu_process rows[OCC_GPU_PROCESSES_MAX];
    size_t n;
    size_t dropped;         /* processes beyond OCC_GPU_PROCESSES_MAX, or without a valid pid */
    unsigned int n_refused; /* GPUs and instances without a list of processes from NVML */
};

struct occ_gpu_lister;

/* `path`: NULL: libnvidia-ml.so.1. */
int occ_gpu_lister_open(const char *path, struct occ_gpu_lister **ret_lister, struct occ_error *err);
int occ_gpu_lister_list(struct occ_gpu_lister *lister, struct occ_gpu_processes *ret_processes,
                        struct occ_error *err);
/* NULL is allowed. */
void occ_gpu_lister_close(struct occ_gpu_lister *lister);
