/* See gpu_processes.h. */
#include "gpu_processes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cupti/nvml.h"

#define GPUS_MAX      64
#define INSTANCES_MAX 64 /* of one GPU */
#define MORE          8  /* room for processes that begin between two calls */
#define TRIES         4

struct occ_gpu_lister {
    struct occ_nvml nvml;
    struct occ_nvml_processes gpus;
    struct occ_nvml_process infos[OCC_GPU_PROCESSES_MAX + MORE];
};

static int fail(const struct occ_gpu_lister *l, int result, const char *what, struct occ_error *err)
{
    return occ_fail(err, OCC_E_IO, "NVML, %s: %s", what, occ_nvml_result_text(&l->nvml, result));
}

int occ_gpu_lister_open(const char *path, struct occ_gpu_lister **ret_lister, struct occ_error *err)
{
    const char *reason;
    void *library = occ_nvml_open(path, &reason);
    if (!library)
        return occ_fail(err, OCC_E_NOT_FOUND, "no NVML: %s", reason);
    struct occ_gpu_lister *l = calloc(1, sizeof *l);
    if (!l)
        return occ_no_memory(err);
    const char *missing = occ_nvml_bind(library, &l->nvml);
    if (!missing)
        missing = occ_nvml_bind_processes(library, &l->gpus);
    if (missing) {
        free(l);
        return occ_fail(err, OCC_E_VERSION, "NVML lacks %s", missing);
    }
    int result = l->nvml.init();
    if (result == OCC_NVML_SUCCESS) {
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
    int result = l->gpus.processes(device, &n, NULL); /* without a buffer NVML returns the number */
    for (int i = 0; result == OCC_NVML_INSUFFICIENT_SIZE && i < TRIES; i++) {
        n = n > max - MORE ? max : n + MORE;
        result = l->gpus.processes(device, &n, l->infos);
    }
    *ret_n = result == OCC_NVML_SUCCESS ? n : 0;
    return result;
}

/* A GPU, or an instance of one. One that refuses is counted. */
static void add_device(struct occ_gpu_lister *l, void *device, struct occ_gpu_processes *p)
{
    char gpu[OCC_GPU_NAME_BYTES] = "";
    unsigned int n = 0;
    if (l->gpus.uuid(device, gpu, sizeof gpu) != OCC_NVML_SUCCESS ||
        get_processes(l, device, &n) != OCC_NVML_SUCCESS) {
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

/* False: the GPU has no MIG, MIG is off, or NVML does not tell the number of instances. */
static bool add_instances(struct occ_gpu_lister *l, void *device, struct occ_gpu_processes *p)
{
    unsigned int current = 0, pending = 0, n = 0;
    void *instance = NULL;
    if (l->gpus.mig_mode(device, &current, &pending) != OCC_NVML_SUCCESS || !current ||
        l->gpus.mig_count(device, &n) != OCC_NVML_SUCCESS)
        return false;
    for (unsigned int i = 0; i < n && i < INSTANCES_MAX; i++)
        if (l->gpus.mig_handle(device, i, &instance) ==
            OCC_NVML_SUCCESS) /* NOT_FOUND: no instance has this index */
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
    int result = l->gpus.count(&n);
    if (result != OCC_NVML_SUCCESS)
        return fail(l, result, "number of GPUs", err);
    for (unsigned int i = 0; i < n && i < GPUS_MAX; i++)
        if (l->gpus.handle(i, &device) != OCC_NVML_SUCCESS)
            p->n_refused++;
        else if (!add_instances(l, device, p))
            add_device(l, device, p);
    return 0;
}
