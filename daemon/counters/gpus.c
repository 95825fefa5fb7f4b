/* See gpus.h. The driver API is bound at run time; the library stays open, since cuInit cannot be undone. */
#include "gpus.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* CUdevice_attribute and CUresult of the public cuda.h. */
#define ATTRIBUTE_WARP_SIZE          10
#define ATTRIBUTE_SM_COUNT           16
#define ATTRIBUTE_MAX_THREADS_PER_SM 39
#define ATTRIBUTE_CC_MAJOR           75
#define ERROR_NO_DEVICE              100

struct driver {
    int (*init)(unsigned int flags);
    int (*get_count)(int *count);
    int (*get_device)(int *device, int ordinal);
    int (*get_uuid)(void *uuid, int device);
    int (*get_attribute)(int *value, int attribute, int device);
};

static const struct {
    const char *symbol;
    size_t slot;
} symbols[] = {
    {"cuInit", offsetof(struct driver, init)},
    {"cuDeviceGetCount", offsetof(struct driver, get_count)},
    {"cuDeviceGet", offsetof(struct driver, get_device)},
    {"cuDeviceGetUuid_v2", offsetof(struct driver, get_uuid)},
    {"cuDeviceGetAttribute", offsetof(struct driver, get_attribute)},
};

static enum occ_source_state start_driver(struct driver *driver, int *ret_count, struct occ_error *err)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        (void)occ_fail(err, OCC_E_NOT_FOUND, "no CUDA driver: %s", dlerror());
        return OCC_SOURCE_NO_DRIVER;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(library, symbols[i].symbol);
        if (!address) {
            (void)occ_fail(err, OCC_E_NOT_FOUND, "the CUDA driver has no %s", symbols[i].symbol);
            return OCC_SOURCE_NO_DRIVER;
        }
        memcpy((char *)driver + symbols[i].slot, &address, sizeof address);
    }
    *ret_count = 0;
    int code = driver->init(0);
    if (code == 0)
        code = driver->get_count(ret_count);
    if (code == 0 || code == ERROR_NO_DEVICE)
        return OCC_SOURCE_OK;
    (void)occ_fail(err, OCC_E_IO, "the CUDA driver fails to start (error %d)", code);
    return OCC_SOURCE_NO_DRIVER;
}

enum occ_source_state occ_gpus_start_driver(struct occ_error *err)
{
    struct driver driver;
    int count;
    return start_driver(&driver, &count, err);
}

static bool describe(const struct driver *driver, int ordinal, struct occ_gpu_found *gpu)
{
    int device = 0, sms = 0, threads = 0, warp = 0, major = 0;
    *gpu = (struct occ_gpu_found){.ordinal = (uint32_t)ordinal};
    if (driver->get_device(&device, ordinal) != 0 || driver->get_uuid(gpu->uuid, device) != 0 ||
        driver->get_attribute(&sms, ATTRIBUTE_SM_COUNT, device) != 0 ||
        driver->get_attribute(&threads, ATTRIBUTE_MAX_THREADS_PER_SM, device) != 0 ||
        driver->get_attribute(&warp, ATTRIBUTE_WARP_SIZE, device) != 0 ||
        driver->get_attribute(&major, ATTRIBUTE_CC_MAJOR, device) != 0 || sms <= 0 || warp <= 0 ||
        threads < warp || major <= 0)
        return false;
    gpu->sm_count = (uint32_t)sms;
    gpu->max_warps_per_sm = (uint32_t)(threads / warp);
    gpu->cc_major = (uint32_t)major;
    return true;
}

enum occ_source_state occ_gpus_find(struct occ_gpu_found *gpus, size_t max, size_t *ret_n,
                                    struct occ_error *err)
{
    struct driver driver;
    int count;
    *ret_n = 0;
    enum occ_source_state state = start_driver(&driver, &count, err);
    if (state != OCC_SOURCE_OK)
        return state;
    for (int i = 0; i < count && *ret_n < max; i++)
        if (describe(&driver, i, &gpus[*ret_n]))
            ++*ret_n;
    return OCC_SOURCE_OK;
}
