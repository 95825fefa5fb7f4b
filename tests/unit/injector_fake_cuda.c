/*
 * A libcuda.so.1 of the test's own: the questions that the guest asks of a driver, answered so that each
 * answer tells which question it was.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuDriverGetVersion(int *version);
EXPORT int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

EXPORT int cuDeviceGet(int *device, int ordinal);
EXPORT int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal + 100;
    return 0;
}

EXPORT int cuDeviceGetName(char *name, int bytes, int device);
EXPORT int cuDeviceGetName(char *name, int bytes, int device)
{
    (void)snprintf(name, (size_t)bytes, "device %d (simulated)", device);
    return 0;
}

EXPORT int cuDeviceGetUuid_v2(uint8_t uuid[16], int device);
EXPORT int cuDeviceGetUuid_v2(uint8_t uuid[16], int device)
{
    memset(uuid, device, 16);
    return 0;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device);
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)80 << 30;
    return 0;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = 1000 + attribute;
    return device < 100 || attribute == 106; /* one that an older driver does not know */
}
