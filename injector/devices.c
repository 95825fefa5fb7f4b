/*
 * See devices.h. The driver's functions used here are public, need no context, and exist in every driver that
 * a supported libcupti runs on. Attribute numbers are those of CUdevice_attribute in cuda.h, which never
 * change.
 */
#include "devices.h"
#include "cupti/library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

struct driver {
    int (*get)(int *device, int ordinal);
    int (*get_name)(char *name, int bytes, int device);
    int (*get_uuid)(uint8_t uuid[16], int device);
    int (*get_attribute)(int *value, int attribute, int device);
    int (*get_memory)(size_t *bytes, int device);
    int (*get_version)(int *version);
};

/* Same order as struct driver. */
static const char *const driver_names[] = {"cuDeviceGet",         "cuDeviceGetName",
                                           "cuDeviceGetUuid_v2",  "cuDeviceGetAttribute",
                                           "cuDeviceTotalMem_v2", "cuDriverGetVersion"};
#define DRIVER_CALLS (sizeof driver_names / sizeof driver_names[0])
static_assert(sizeof(struct driver) == DRIVER_CALLS * sizeof(void *), "a name for each call");

static const struct {
    size_t offset;
    int attribute;
} attributes[] = {
    {offsetof(struct occ_record_device, cc_major), 75},
    {offsetof(struct occ_record_device, cc_minor), 76},
    {offsetof(struct occ_record_device, sm_count), 16},
    {offsetof(struct occ_record_device, warp_size), 10},
    {offsetof(struct occ_record_device, max_threads_per_block), 1},
    {offsetof(struct occ_record_device, max_threads_per_sm), 39},
    {offsetof(struct occ_record_device, max_blocks_per_sm), 106},
    {offsetof(struct occ_record_device, registers_per_block), 12},
    {offsetof(struct occ_record_device, registers_per_sm), 82},
    {offsetof(struct occ_record_device, smem_per_block_bytes), 8},
    {offsetof(struct occ_record_device, smem_per_block_optin_bytes), 97},
    {offsetof(struct occ_record_device, smem_per_sm_bytes), 81},
    {offsetof(struct occ_record_device, smem_reserved_per_block_bytes), 111},
    {offsetof(struct occ_record_device, clock_khz), 13},
};

static bool find_driver(struct driver *driver)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (!library) {
        (void)dlerror();
        return false;
    }
    size_t bound = occ_library_bind(library, driver_names, DRIVER_CALLS, driver);
    (void)dlclose(library); /* the program's own reference keeps the library loaded */
    return bound == DRIVER_CALLS;
}

static void read_attributes(const struct driver *driver, int device, struct occ_record_device *record)
{
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        int value = 0;
        if (driver->get_attribute(&value, attributes[i].attribute, device) != 0 || value < 0)
            value = 0;
        memcpy((char *)record + attributes[i].offset, &value, sizeof(uint32_t));
    }
}

static void read_driver(struct occ_record_device *record)
{
    struct driver driver;
    int device = 0, version = 0;
    size_t memory = 0;
    if (!find_driver(&driver) || driver.get(&device, (int)record->ordinal) != 0)
        return;
    if (driver.get_name(record->name, (int)sizeof record->name, device) != 0)
        record->name[0] = '\0';
    record->name[sizeof record->name - 1] = '\0';
    if (driver.get_uuid(record->uuid, device) != 0)
        memset(record->uuid, 0, sizeof record->uuid);
    if (driver.get_memory(&memory, device) == 0)
        record->memory_bytes = memory;
    if (driver.get_version(&version) == 0 && version > 0)
        record->driver_version = (uint32_t)version;
    read_attributes(&driver, device, record);
}

uint32_t occ_devices_id(struct occ_devices *devices, struct occ_ring_producer *ring, uint32_t ordinal)
{
    if (ordinal >= OCC_LOG_MAX_DEVICES)
        return OCC_DEVICES_FULL;
    if (devices->id_plus_1[ordinal] != 0)
        return devices->id_plus_1[ordinal] - 1;
    struct occ_record_device record = {
        .record.type = OCC_RECORD_DEVICE, .id = devices->count, .ordinal = ordinal};
    read_driver(&record);
    if (!occ_ring_log(ring, &record.record, sizeof record, NULL, 0))
        return OCC_DEVICES_FULL;
    devices->id_plus_1[ordinal] = ++devices->count;
    return devices->count - 1;
}
