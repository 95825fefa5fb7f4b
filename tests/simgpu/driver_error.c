/*
 * Names and texts of results. Constant; any thread.
 *
 * driver_errors.inc is made from cuda.h's enumeration: X(name). The texts are our own words, for the results
 * that the simulation can give; the others are described by their name.
 */
#include "driver.h"

struct text {
    CUresult result;
    const char *text;
};

static const struct text texts[] = {
    {CUDA_SUCCESS, "no error"},
    {CUDA_ERROR_INVALID_VALUE, "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "the driver is not initialised"},
    {CUDA_ERROR_NO_DEVICE, "no CUDA device"},
    {CUDA_ERROR_INVALID_DEVICE, "no such device"},
    {CUDA_ERROR_INVALID_IMAGE, "not a kernel image, or a damaged one"},
    {CUDA_ERROR_INVALID_CONTEXT, "no such context, or none is current"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image for this device"},
    {CUDA_ERROR_FILE_NOT_FOUND, "file not found"},
    {CUDA_ERROR_INVALID_HANDLE, "not a handle of this kind"},
    {CUDA_ERROR_ILLEGAL_STATE, "not possible in this state"},
    {CUDA_ERROR_NOT_FOUND, "name not found"},
    {CUDA_ERROR_NOT_READY, "not finished yet"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "the launch asks for more than an SM has"},
    {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks for a cooperative launch"},
    {CUDA_ERROR_NOT_SUPPORTED, "not supported by the simulated device"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "the system's driver does not match"},
    {CUDA_ERROR_INVALID_CLUSTER_SIZE, "cluster size not possible"},
};

static const char *name_of(CUresult error)
{
    switch (error) {
#define X(name)                                                                                              \
    case name:                                                                                               \
        return #name;
#include "driver_errors.inc"
#undef X
    }
    return NULL;
}

CUresult cuGetErrorName(CUresult error, const char **pStr)
{
    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = name_of(error);
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **pStr)
{
    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = name_of(error);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i].result == error)
            *pStr = texts[i].text;
    }
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
