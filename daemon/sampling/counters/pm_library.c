/* See pm_library.h. */
#include "pm_library.h"

#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* NULL, or the name of a function that the library lacks. */
static const char *bind_functions(struct occ_pm_library *library)
{
    static const char *const names[] = {OCC_CUPTI_PM(OCC_CUPTI_NAME) NULL};
    size_t n = sizeof names / sizeof names[0] - 1;
    const char *missing = occ_cupti_host_bind(&library->cupti, &library->host);
    return missing ? missing : names[occ_library_bind(library->cupti.handle, names, n, &library->pm)];
}

enum occ_source_state occ_pm_bind(const char *path, const char *offered, struct occ_pm_library *library,
                                  struct occ_error *err)
{
    const char *given = path ? path : secure_getenv("OCCTRACE_CUPTI");
    struct occ_cupti_search search = {.configured = given ? given : "", .offered = offered};
    char reason[OCC_CUPTI_REASON_BYTES] = "";
    while (occ_cupti_find(&search, &library->cupti, reason)) {
        const char *missing = bind_functions(library);
        if (!missing)
            return OCC_SOURCE_OK;
        occ_cupti_refuse(reason, "%.150s (version %u) lacks %s", library->cupti.path, library->cupti.version,
                         missing);
    }
    (void)occ_fail(err, OCC_E_NOT_FOUND, "%s", reason[0] ? reason : "no libcupti was found");
    return OCC_SOURCE_NO_LIBRARY;
}

/* True if this process has a capability to read counters. Root in a container may lack both. */
static bool is_privileged(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {{0}};
    return syscall(SYS_capget, &header, caps) == 0 &&
           ((caps[CAP_TO_INDEX(CAP_PERFMON)].effective & CAP_TO_MASK(CAP_PERFMON)) ||
            (caps[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN)));
}

enum occ_source_state occ_pm_fail(const struct occ_pm_library *library, uint32_t result, const char *what,
                                  struct occ_error *err)
{
    static const struct {
        uint32_t result;
        enum occ_source_state state;
    } states[] = {
        {OCC_CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, OCC_SOURCE_NO_PERMISSION},
        {OCC_CUPTI_ERROR_HARDWARE_BUSY, OCC_SOURCE_BUSY},
        /* Enable returns it if sampling is enabled already */
        {OCC_CUPTI_ERROR_INVALID_OPERATION, OCC_SOURCE_BUSY},
        {OCC_CUPTI_ERROR_NOT_SUPPORTED, OCC_SOURCE_NOT_SUPPORTED},
        {OCC_CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED, OCC_SOURCE_NOT_SUPPORTED},
        {OCC_CUPTI_ERROR_VIRTUALIZED_DEVICE, OCC_SOURCE_NOT_SUPPORTED},
        {OCC_CUPTI_ERROR_VIRTUALIZED_DEVICE_PRIVILEGES, OCC_SOURCE_NOT_SUPPORTED},
        {OCC_CUPTI_ERROR_CONFIDENTIAL_COMPUTING, OCC_SOURCE_NOT_SUPPORTED},
        {OCC_CUPTI_ERROR_CRYPTO_MINING_DEVICE, OCC_SOURCE_NOT_SUPPORTED},
        {OCC_CUPTI_ERROR_MIG_DEVICE, OCC_SOURCE_NOT_SUPPORTED},
        {OCC_CUPTI_ERROR_WSL_DEVICE, OCC_SOURCE_NOT_SUPPORTED},
        {OCC_CUPTI_ERROR_NOT_INITIALIZED, OCC_SOURCE_NO_DRIVER},
        {OCC_CUPTI_ERROR_INVALID_DEVICE, OCC_SOURCE_LOST},
    };
    (void)occ_fail(err, OCC_E_IO, "%s: %s (%u)", what, occ_cupti_result_text(&library->cupti, result),
                   result);
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (states[i].result == result)
            return states[i].state;
    /* The library often reports only "unknown" if the driver refuses. If this process has the privilege, the
     * kernel or the hypervisor does not pass the counters. */
    if (result == OCC_CUPTI_ERROR_UNKNOWN)
        return is_privileged() ? OCC_SOURCE_NOT_PASSED : OCC_SOURCE_NO_PERMISSION;
    return OCC_SOURCE_FAILED;
}

uint32_t occ_pm_initialize(const struct occ_pm_library *library)
{
    static pthread_mutex_t initializing = PTHREAD_MUTEX_INITIALIZER;
    struct occ_params_none p = {.size = sizeof p};
    (void)pthread_mutex_lock(&initializing);
    uint32_t result = library->host.initialize(&p);
    (void)pthread_mutex_unlock(&initializing);
    return result;
}

/* Text about the first negative answer of cuptiProfilerDeviceSupported(); NULL: none. */
static const char *find_obstacle(const struct occ_params_supported *p)
{
    const struct {
        uint32_t level;
        const char *text;
    } answers[] = {
        {p->vgpu, "the vGPU: its host does not allow profiling"},
        {p->confidential_computing, "confidential computing"},
        {p->wsl, "WSL"},
        {p->crypto_mining, "a model for crypto mining"},
        {p->sli, "SLI"},
        {p->architecture, "the GPU's architecture"},
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (answers[i].level == OCC_PROFILER_UNSUPPORTED || answers[i].level == OCC_PROFILER_DISABLED)
            return answers[i].text;
    return NULL;
}

enum occ_source_state occ_pm_check_support(const struct occ_pm_library *library, uint32_t ordinal,
                                           struct occ_error *err)
{
    struct occ_params_supported p = {
        .size = OCC_SUPPORTED_SIZE, .device = (int32_t)ordinal, .api = OCC_PROFILER_API_PM_SAMPLING};
    uint32_t result = library->pm.supported(&p);
    const char *obstacle = result == OCC_CUPTI_SUCCESS ? find_obstacle(&p) : NULL;
    if (!obstacle)
        return OCC_SOURCE_OK;
    (void)occ_fail(err, OCC_E_INVALID, "CUPTI names what rules it out: %s", obstacle);
    return OCC_SOURCE_NOT_SUPPORTED;
}

enum occ_source_state occ_pm_configure(const struct occ_pm_library *library, const char *chip,
                                       const struct occ_cupti_image *availability,
                                       const struct occ_counter_set *set, struct occ_cupti_host *host,
                                       struct occ_error *err)
{
    *host = (struct occ_cupti_host){.call = &library->host, .metrics = {set->metric, set->n}};
    uint32_t result = occ_cupti_host_open(host, OCC_PROFILER_TYPE_PM_SAMPLING, chip, availability);
    if (result != OCC_CUPTI_SUCCESS) {
        enum occ_source_state state = occ_pm_fail(library, result, "counters of this chip", err);
        return state == OCC_SOURCE_NOT_PASSED ? OCC_SOURCE_FAILED
                                              : state; /* the host library does not call the driver */
    }
    if (host->passes == 1)
        return OCC_SOURCE_OK;
    (void)occ_fail(err, OCC_E_INVALID, "the counters need %zu passes on %s", host->passes, chip);
    occ_cupti_host_close(host);
    return OCC_SOURCE_NOT_SUPPORTED;
}
