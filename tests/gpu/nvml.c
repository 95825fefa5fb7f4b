/* See nvml.h. Names and numbers are those of NVML's public reference. */
#include "nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/sampling/counters/gpus.h"
#include "support/text.h"

enum { CLOCK_SM = 1, UUID_TEXT_BYTES = 80 };

struct gpu_nvml {
    void *device;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_uuid)(const char *uuid, void **device);
    int (*clock)(void *device, int kind, unsigned int *mhz);
    int (*clock_most)(void *device, int kind, unsigned int *mhz);
    int (*reasons)(void *device, unsigned long long *bits);
};

/* The first existing symbol of a slot is bound; drivers before 535 have only the older name. */
static const struct {
    size_t slot;
    const char *symbol;
} symbols[] = {
    {offsetof(struct gpu_nvml, init), "nvmlInit_v2"},
    {offsetof(struct gpu_nvml, shutdown), "nvmlShutdown"},
    {offsetof(struct gpu_nvml, by_uuid), "nvmlDeviceGetHandleByUUID"},
    {offsetof(struct gpu_nvml, clock), "nvmlDeviceGetClockInfo"},
    {offsetof(struct gpu_nvml, clock_most), "nvmlDeviceGetMaxClockInfo"},
    {offsetof(struct gpu_nvml, reasons), "nvmlDeviceGetCurrentClocksThrottleReasons"},
    {offsetof(struct gpu_nvml, reasons), "nvmlDeviceGetCurrentClocksEventReasons"},
};

static int bind_library(struct gpu_nvml *nvml, struct occ_error *err)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        return occ_fail(err, OCC_E_NOT_FOUND, "no NVML: %s", dlerror());
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(library, symbols[i].symbol);
        if (address)
            memcpy((char *)nvml + symbols[i].slot, &address, sizeof address);
    }
    if (!nvml->init || !nvml->shutdown || !nvml->by_uuid || !nvml->clock || !nvml->clock_most ||
        !nvml->reasons)
        return occ_fail(err, OCC_E_VERSION, "this NVML lacks functions");
    return 0;
}

/* "GPU-12345678-1234-1234-1234-123456789abc" */
static void uuid_text(const uint8_t uuid[16], char text[UUID_TEXT_BYTES])
{
    char hex[33];
    occ_hex_encode(uuid, 16, hex);
    (void)snprintf(text, UUID_TEXT_BYTES, "GPU-%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
                   hex + 20);
}

static int find_device(struct gpu_nvml *nvml, struct occ_error *err)
{
    struct occ_gpu_found gpu;
    size_t n = 0;
    char uuid[UUID_TEXT_BYTES];
    if (occ_gpus_find(&gpu, 1, &n, err) != OCC_SOURCE_OK || n == 0)
        return occ_fail(err, OCC_E_NOT_FOUND, "no CUDA device");
    uuid_text(gpu.uuid, uuid);
    int code = nvml->by_uuid(uuid, &nvml->device);
    return code == 0 ? 0 : occ_fail(err, OCC_E_NOT_FOUND, "NVML does not know %s (error %d)", uuid, code);
}

int gpu_nvml_open(struct gpu_nvml **ret_nvml, struct occ_error *err)
{
    struct gpu_nvml *nvml = calloc(1, sizeof *nvml);
    if (!nvml)
        return occ_fail(err, OCC_E_NO_MEMORY, "no memory");
    int code = bind_library(nvml, err);
    if (code != 0) {
        free(nvml);
        return code;
    }
    int failed = nvml->init();
    if (failed != 0) {
        free(nvml);
        return occ_fail(err, OCC_E_IO, "NVML does not start (error %d)", failed);
    }
    code = find_device(nvml, err);
    if (code != 0) {
        gpu_nvml_close(nvml);
        return code;
    }
    *ret_nvml = nvml;
    return 0;
}

double gpu_nvml_sm_clock(const struct gpu_nvml *nvml)
{
    unsigned int mhz = 0;
    return nvml->clock(nvml->device, CLOCK_SM, &mhz) == 0 ? (double)mhz : (double)NAN;
}

double gpu_nvml_sm_clock_most(const struct gpu_nvml *nvml)
{
    unsigned int mhz = 0;
    return nvml->clock_most(nvml->device, CLOCK_SM, &mhz) == 0 ? (double)mhz : (double)NAN;
}

uint64_t gpu_nvml_clock_reasons(const struct gpu_nvml *nvml)
{
    unsigned long long bits = 0;
    return nvml->reasons(nvml->device, &bits) == 0 ? bits : 0;
}

void gpu_nvml_close(struct gpu_nvml *nvml)
{
    if (!nvml)
        return;
    (void)nvml->shutdown();
    free(nvml);
}
