/* See gpus.h. The driver API is bound at run time; the library stays open, since cuInit cannot be undone. */
#include "gpus.h"
#include "cupti/driver_text.h"
#include "cupti/library.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdbool.h>

/* CUdevice_attribute and CUresult of the public cuda.h. */
#define ATTRIBUTE_WARP_SIZE          10
#define ATTRIBUTE_SM_COUNT           16
#define ATTRIBUTE_MAX_THREADS_PER_SM 39
#define ATTRIBUTE_CC_MAJOR           75
#define ATTRIBUTE_CC_MINOR           76

struct driver {
    int (*init)(unsigned int flags);
    int (*get_count)(int *count);
    int (*get_device)(int *device, int ordinal);
    int (*get_uuid)(void *uuid, int device);
    int (*get_attribute)(int *value, int attribute, int device);
    int (*get_name)(char *name, int bytes, int device);
    int (*get_version)(int *version);
};

/* Same order as struct driver. */
static const char *const names[] = {
    "cuInit",          "cuDeviceGetCount",  "cuDeviceGet", "cuDeviceGetUuid_v2", "cuDeviceGetAttribute",
    "cuDeviceGetName", "cuDriverGetVersion"};
#define CALLS (sizeof names / sizeof names[0])
static_assert(sizeof(struct driver) == CALLS * sizeof(void *), "a name for each call");

/* Loads the driver; *ret_result is cuInit's result. */
static enum occ_source_state start_driver(struct driver *driver, int *ret_result, int *ret_count,
                                          struct occ_error *err)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        (void)occ_fail(err, OCC_E_NOT_FOUND, "no CUDA driver: %s", dlerror());
        return OCC_SOURCE_NO_DRIVER;
    }
    size_t missing = occ_library_bind(library, names, CALLS, driver);
    if (missing < CALLS) {
        (void)occ_fail(err, OCC_E_NOT_FOUND, "the CUDA driver has no %s", names[missing]);
        return OCC_SOURCE_NO_DRIVER;
    }
    *ret_count = 0;
    *ret_result = driver->init(0);
    if (*ret_result == 0)
        *ret_result = driver->get_count(ret_count);
    return OCC_SOURCE_OK;
}

static bool describe(const struct driver *driver, int ordinal, struct occ_gpu_found *gpu)
{
    int device = 0, sms = 0, threads = 0, warp = 0, major = 0, minor = 0;
    *gpu = (struct occ_gpu_found){.ordinal = (uint32_t)ordinal};
    if (driver->get_device(&device, ordinal) != 0 || driver->get_uuid(gpu->uuid, device) != 0 ||
        driver->get_attribute(&sms, ATTRIBUTE_SM_COUNT, device) != 0 ||
        driver->get_attribute(&threads, ATTRIBUTE_MAX_THREADS_PER_SM, device) != 0 ||
        driver->get_attribute(&warp, ATTRIBUTE_WARP_SIZE, device) != 0 ||
        driver->get_attribute(&major, ATTRIBUTE_CC_MAJOR, device) != 0 ||
        driver->get_attribute(&minor, ATTRIBUTE_CC_MINOR, device) != 0 ||
        driver->get_name(gpu->name, sizeof gpu->name, device) != 0 || sms <= 0 || warp <= 0 ||
        threads < warp || major <= 0 || minor < 0)
        return false;
    gpu->name[sizeof gpu->name - 1] = '\0';
    gpu->sm_count = (uint32_t)sms;
    gpu->max_warps_per_sm = (uint32_t)(threads / warp);
    gpu->warp_size = (uint32_t)warp;
    gpu->cc_major = (uint32_t)major;
    gpu->cc_minor = (uint32_t)minor;
    return true;
}

enum occ_source_state occ_gpus_find(struct occ_gpu_found *gpus, size_t max, size_t *ret_n,
                                    struct occ_error *err)
{
    struct driver driver;
    int result, count;
    char text[OCC_DRIVER_TEXT_BYTES];
    *ret_n = 0;
    enum occ_source_state state = start_driver(&driver, &result, &count, err);
    if (state != OCC_SOURCE_OK || result == OCC_DRIVER_NO_DEVICE)
        return state;
    occ_driver_text(result, text);
    if (result != 0) {
        (void)occ_fail(err, OCC_E_IO, "%s", text);
        return OCC_SOURCE_NO_DRIVER;
    }
    for (int i = 0; i < count && *ret_n < max; i++)
        if (describe(&driver, i, &gpus[*ret_n]))
            ++*ret_n;
    return OCC_SOURCE_OK;
}

bool occ_gpus_ask_driver(struct occ_driver_answer *ret_answer)
{
    struct driver driver;
    struct occ_driver_answer *a = ret_answer;
    *a = (struct occ_driver_answer){.version = 0};
    if (start_driver(&driver, &a->result, &a->gpus, NULL) != OCC_SOURCE_OK)
        return false;
    if (a->result == 0 && a->gpus == 0)
        a->result = OCC_DRIVER_NO_DEVICE;
    return driver.get_version(&a->version) == 0; /* needs no GPU */
}
