/* See nvml.h. */
#include "nvml.h"

#include <assert.h>
#include <dlfcn.h>

#include "library.h"

#define COUNT(names) (sizeof names / sizeof *names)

/* Same order as the structs. The second version of the process list has had one layout in all drivers; the
 * third version was longer for a while (535.43 to 535.86). */
static const char *const library_names[] = {"nvmlInit_v2", "nvmlShutdown", "nvmlErrorString"};
static const char *const process_names[] = {
    "nvmlDeviceGetCount_v2",
    "nvmlDeviceGetHandleByIndex_v2",
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetComputeRunningProcesses_v2",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetMaxMigDeviceCount",
    "nvmlDeviceGetMigDeviceHandleByIndex",
};
static const char *const gpm_names[] = {"nvmlDeviceGetHandleByUUID", "nvmlGpmQueryDeviceSupport",
                                        "nvmlGpmSampleAlloc",        "nvmlGpmSampleFree",
                                        "nvmlGpmSampleGet",          "nvmlGpmMetricsGet"};
static const char *const energy_names[] = {"nvmlDeviceGetHandleByUUID",
                                           "nvmlDeviceGetTotalEnergyConsumption"};
static_assert(sizeof(struct occ_nvml_process) == 24, "as in NVML");
static_assert(sizeof(struct occ_nvml) == COUNT(library_names) * sizeof(void *), "a name for each function");
static_assert(sizeof(struct occ_nvml_processes) == COUNT(process_names) * sizeof(void *),
              "a name for each function");
static_assert(sizeof(struct occ_nvml_gpm) == COUNT(gpm_names) * sizeof(void *), "a name for each function");
static_assert(sizeof(struct occ_nvml_energy) == COUNT(energy_names) * sizeof(void *),
              "a name for each function");

void *occ_nvml_open(const char *path, const char **ret_reason)
{
    /* NODELETE: bound functions stay valid for the life of the process */
    void *library = dlopen(path ? path : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    *ret_reason = library ? NULL : dlerror();
    return library;
}

static const char *bind_names(void *library, const char *const *names, size_t n, void *calls)
{
    size_t missing = occ_library_bind(library, names, n, calls);
    return missing < n ? names[missing] : NULL;
}

const char *occ_nvml_bind(void *library, struct occ_nvml *ret_nvml)
{
    return bind_names(library, library_names, COUNT(library_names), ret_nvml);
}

const char *occ_nvml_bind_processes(void *library, struct occ_nvml_processes *ret_processes)
{
    return bind_names(library, process_names, COUNT(process_names), ret_processes);
}

const char *occ_nvml_bind_gpm(void *library, struct occ_nvml_gpm *ret_gpm)
{
    return bind_names(library, gpm_names, COUNT(gpm_names), ret_gpm);
}

const char *occ_nvml_bind_energy(void *library, struct occ_nvml_energy *ret_energy)
{
    return bind_names(library, energy_names, COUNT(energy_names), ret_energy);
}

const char *occ_nvml_result_text(const struct occ_nvml *nvml, int result)
{
    const char *text = nvml->error(result);
    return text ? text : "unknown error";
}
