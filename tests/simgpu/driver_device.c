/*
 * Devices: enumeration, attributes, identity. Answers from constant tables; any thread.
 */
#include "driver.h"

#include <stdio.h>
#include <string.h>

static CUresult device_of(CUdevice ordinal, struct sim_device **ret)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    *ret = sim_device_at(ordinal);
    return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetCount(int *count)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = sim_device_count();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    struct sim_device *found;
    CUresult result = device_of(ordinal, &found);
    if (!result && !device)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *device = ordinal;
    return result;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
    struct sim_device *device;
    CUresult result = device_of(dev, &device);
    if (result)
        return result;
    if (!name || len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)len, "%s", device->gpu->title);
    return CUDA_SUCCESS;
}

/* A made-up but stable identity: "occsim", the model and the ordinal. */
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    struct sim_device *device;
    CUresult result = device_of(dev, &device);
    if (result)
        return result;
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    sim_gpu_uuid(device->gpu, (uint32_t)device->ordinal, (uint8_t *)uuid->bytes);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice dev)
{
    struct sim_device *device;
    CUresult result = device_of(dev, &device);
    if (!result && !bytes)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *bytes = device->gpu->memory_bytes;
    return result;
}

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    struct sim_device *device;
    CUresult result = device_of(dev, &device);
    if (result)
        return result;
    if (!pi || (int)attrib <= 0 || attrib >= CU_DEVICE_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (attrib == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
        *pi = device->ordinal + 1;
    else if (attrib == CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID)
        *pi = device->ordinal;
    else if (!sim_gpu_attribute(device->gpu, (int)attrib, pi))
        *pi = 0; /* a feature that the simulation lacks */
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
    struct sim_device *device;
    CUresult result = device_of(dev, &device);
    if (!result && (!major || !minor))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result)
        return result;
    *major = (int)device->sm / 10;
    *minor = (int)device->sm % 10;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    struct sim_device *device;
    CUresult result = device_of(dev, &device);
    if (result)
        return result;
    if (!pciBusId || len < 13)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(pciBusId, (size_t)len, "0000:%02X:00.0", (unsigned)device->ordinal + 1);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    if (!dev || !pciBusId)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < sim_device_count(); i++) {
        char text[16];
        cuDeviceGetPCIBusId(text, sizeof text, i);
        if (strcasecmp(text, pciBusId) == 0) {
            *dev = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    struct sim_device *device;
    CUresult result = device_of(dev, &device);
    if (!result)
        result = device_of(peerDev, &device);
    if (!result && !canAccessPeer)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *canAccessPeer = 0;
    return result;
}
