/* See gpu_processes.h. Declarations: NVML's public API reference. */
#include "gpu_processes.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NVML_SUCCESS           0
#define NVML_INSUFFICIENT_SIZE 7
#define GPUS_MAX               64
#define INSTANCES_MAX          64 /* of one GPU */
#define MORE                   8  /* places for processes that begin between two calls */
#define TRIES                  4

/* nvmlProcessInfo_v2_t */
struct process_info {
    unsigned int pid;
    unsigned long long memory;
    unsigned int gpu_instance, compute_instance;
};
static_assert(sizeof(struct process_info) == 24, "as in NVML");

struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error)(int result);
    int (*count)(unsigned int *n);
    int (*handle)(unsigned int index, void **device);
    int (*uuid)(void *device, char *text, unsigned int size);
    int (*processes)(void *device, unsigned int *n, struct process_info *infos);
    int (*mig_mode)(void *device, unsigned int *current, unsigned int *pending);
    int (*mig_count)(void *device, unsigned int *n);
    int (*mig_handle)(void *device, unsigned int index, void **instance);
};

/* Same order as struct nvml. The second version of the process list has had one layout in all drivers; the
 * third one was longer for a while (535.43 to 535.86). */
static const char *const names[] = {
    "nvmlInit_v2",
    "nvmlShutdown",
    "nvmlErrorString",
    "nvmlDeviceGetCount_v2",
    "nvmlDeviceGetHandleByIndex_v2",
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetComputeRunningProcesses_v2",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetMaxMigDeviceCount",
    "nvmlDeviceGetMigDeviceHandleByIndex",
};
#define CALLS (sizeof names / sizeof *names)
static_assert(sizeof(struct nvml) == CALLS * sizeof(void *), "a name for each call");

struct occ_gpu_lister {
    struct nvml nvml;
    struct process_info infos[OCC_GPU_PROCESSES_MAX + MORE];
};

static int fail(const struct occ_gpu_lister *l, int result, const char *what, struct occ_error *err)
{
    const char *text = l->nvml.error(result);
    return occ_fail(err, OCC_E_IO, "NVML, %s: %s", what, text ? text : "unknown error");
}

int occ_gpu_lister_open(const char *path, struct occ_gpu_lister **ret_lister, struct occ_error *err)
{
    void *calls[CALLS];
    void *library = dlopen(path ? path : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        return occ_fail(err, OCC_E_NOT_FOUND, "no NVML: %s", dlerror());
    for (size_t i = 0; i < CALLS; i++)
        if (!(calls[i] = dlsym(library, names[i])))
            return occ_fail(err, OCC_E_VERSION, "NVML lacks %s", names[i]);
    struct occ_gpu_lister *l = calloc(1, sizeof *l);
    if (!l)
        return occ_no_memory(err);
    memcpy(&l->nvml, calls, sizeof calls);
    int result = l->nvml.init();
    if (result == NVML_SUCCESS) {
        *ret_lister = l;
        return 0;
    }
    (void)fail(l, result, "start", err);
    free(l);
    return OCC_E_IO;
}

void occ_gpu_lister_close(struct occ_gpu_lister *lister)
{
    if (lister)
        (void)lister->nvml.shutdown();
    free(lister);
}

/* Fills infos with at most OCC_GPU_PROCESSES_MAX + MORE processes. */
static int get_processes(struct occ_gpu_lister *l, void *device, unsigned int *ret_n)
{
    unsigned int max = sizeof l->infos / sizeof *l->infos, n = 0;
    int result = l->nvml.processes(device, &n, NULL); /* asks for the number */
    for (int i = 0; result == NVML_INSUFFICIENT_SIZE && i < TRIES; i++) {
        n = n > max - MORE ? max : n + MORE;
        result = l->nvml.processes(device, &n, l->infos);
    }
    *ret_n = result == NVML_SUCCESS ? n : 0;
    return result;
}

/* A GPU, or an instance of one. One that refuses is counted. */
static void add_device(struct occ_gpu_lister *l, void *device, struct occ_gpu_processes *p)
{
    char gpu[OCC_GPU_NAME_BYTES] = "";
    unsigned int n = 0;
    if (l->nvml.uuid(device, gpu, sizeof gpu) != NVML_SUCCESS ||
        get_processes(l, device, &n) != NVML_SUCCESS) {
        p->n_refused++;
        return;
    }
    gpu[sizeof gpu - 1] = '\0';
    for (unsigned int i = 0; i < n; i++) {
        if (l->infos[i].pid == 0 || l->infos[i].pid > INT32_MAX || p->n == OCC_GPU_PROCESSES_MAX) {
            p->dropped++;
            continue;
        }
        struct occ_gpu_process *row = &p->rows[p->n++];
        memcpy(row->gpu, gpu, sizeof row->gpu);
        row->pid = (int32_t)l->infos[i].pid;
    }
}

/* false: the GPU has no MIG, or it is off. */
static bool add_instances(struct occ_gpu_lister *l, void *device, struct occ_gpu_processes *p)
{
    unsigned int current = 0, pending = 0, n = 0;
    void *instance = NULL;
    if (l->nvml.mig_mode(device, &current, &pending) != NVML_SUCCESS || !current ||
        l->nvml.mig_count(device, &n) != NVML_SUCCESS)
        return false;
    for (unsigned int i = 0; i < n && i < INSTANCES_MAX; i++)
        if (l->nvml.mig_handle(device, i, &instance) == NVML_SUCCESS) /* NOT_FOUND: a free place */
            add_device(l, instance, p);
    return true;
}

int occ_gpu_lister_list(struct occ_gpu_lister *l, struct occ_gpu_processes *ret_processes,
                        struct occ_error *err)
{
    struct occ_gpu_processes *p = ret_processes;
    unsigned int n = 0;
    void *device = NULL;
    p->n = p->dropped = p->n_refused = 0;
    int result = l->nvml.count(&n);
    if (result != NVML_SUCCESS)
        return fail(l, result, "number of GPUs", err);
    for (unsigned int i = 0; i < n && i < GPUS_MAX; i++)
        if (l->nvml.handle(i, &device) != NVML_SUCCESS)
            p->n_refused++;
        else if (!add_instances(l, device, p))
            add_device(l, device, p);
    return 0;
}
