/*
 * NVML (libnvidia-ml), opened at run time. Functions come in groups, since older libraries lack some: a
 * caller binds only the groups that it needs.
 *
 * Declarations: NVML's public API reference. Uses libc only, allocates nothing, prints nothing. Threads: any,
 * one for each struct.
 */
#pragma once

#define OCC_NVML_SUCCESS           0
#define OCC_NVML_NOT_SUPPORTED     3
#define OCC_NVML_NO_PERMISSION     4
#define OCC_NVML_NOT_FOUND         6 /* also for a MIG slice */
#define OCC_NVML_INSUFFICIENT_SIZE 7
#define OCC_NVML_NO_DRIVER         9
#define OCC_NVML_LOST              15
#define OCC_NVML_RESET_REQUIRED    16

#define OCC_NVML_GPM_VERSION      1
#define OCC_NVML_GPM_SM_UTIL      2
#define OCC_NVML_GPM_SM_OCCUPANCY 3

/* nvmlProcessInfo_v2_t */
struct occ_nvml_process {
    unsigned int pid;
    unsigned long long memory;
    unsigned int gpu_instance, compute_instance;
};

struct occ_nvml_gpm_metric {
    unsigned int id;
    int result;
    double value;
    struct {
        char *short_name, *long_name, *unit;
    } info;
};

/* nvmlGpmMetricsGet_t, version 1 */
struct occ_nvml_gpm_get {
    unsigned int version, n;
    void *sample1, *sample2;
    struct occ_nvml_gpm_metric metrics[512]; /* enough for any version */
};

struct occ_nvml_gpm_support {
    unsigned int version, supported;
};

/* Group "library": every caller needs it. */
struct occ_nvml {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error)(int result);
};

/* Group "processes": the GPUs and their compute processes. */
struct occ_nvml_processes {
    int (*count)(unsigned int *n);
    int (*handle)(unsigned int index, void **device);
    int (*uuid)(void *device, char *text, unsigned int size);
    int (*processes)(void *device, unsigned int *n, struct occ_nvml_process *infos);
    int (*mig_mode)(void *device, unsigned int *current, unsigned int *pending);
    int (*mig_count)(void *device, unsigned int *n);
    int (*mig_handle)(void *device, unsigned int index, void **instance);
};

/* Group "GPM": utilisation between two readings (Hopper and newer). */
struct occ_nvml_gpm {
    int (*handle)(const char *uuid, void **device);
    int (*support)(void *device, struct occ_nvml_gpm_support *support);
    int (*sample_alloc)(void **sample);
    int (*sample_free)(void *sample);
    int (*sample_get)(void *device, void *sample);
    int (*metrics_get)(struct occ_nvml_gpm_get *get);
};

/* Group "energy": millijoules of a GPU since the driver was loaded (Volta and newer; no instance of MIG). */
struct occ_nvml_energy {
    int (*handle)(const char *uuid, void **device);
    int (*total)(void *device, unsigned long long *millijoules);
};

/* Opens the library at `path` (NULL: libnvidia-ml.so.1) for good. NULL: not found, and `reason` is the
 * loader's text, valid until the thread's next dlopen(3). */
void *occ_nvml_open(const char *path, const char **ret_reason);

/* Each fills the group from an open library. Returns NULL, or the name of the first missing function. */
const char *occ_nvml_bind(void *library, struct occ_nvml *ret_nvml);
const char *occ_nvml_bind_processes(void *library, struct occ_nvml_processes *ret_processes);
const char *occ_nvml_bind_gpm(void *library, struct occ_nvml_gpm *ret_gpm);
const char *occ_nvml_bind_energy(void *library, struct occ_nvml_energy *ret_energy);

/* The library's text for a result code, never NULL. */
const char *occ_nvml_result_text(const struct occ_nvml *nvml, int result);
