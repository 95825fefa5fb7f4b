/*
 * Common functions of the sample programs: the driver opened at run time, error checks, the embedded device
 * code, the count of launches. Samples are small programs: an error ends them with one line on stderr.
 *
 * The driver is opened with dlopen, so a sample builds and starts without a driver. Call its functions
 * through `cu`: cu.cuMemAlloc(...). cuda.h renames some functions to their newer versions (cuMemAlloc is
 * cuMemAlloc_v2); the fields of `cu` and the loaded symbols have the new names too.
 *
 * Exit codes: 0 ok, 1 a CUDA call or a check of results failed, 2 usage, 77 no CUDA driver or no device.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

enum { SAMPLE_FAILED = 1, SAMPLE_USAGE = 2, SAMPLE_NO_DEVICE = 77 };

/* All driver functions that the samples use. */
#define SAMPLE_FUNCTIONS(X)                                                                                  \
    X(cuInit)                                                                                                \
    X(cuGetErrorString)                                                                                      \
    X(cuDeviceGetCount)                                                                                      \
    X(cuDeviceGet)                                                                                           \
    X(cuDeviceGetName)                                                                                       \
    X(cuDeviceGetAttribute)                                                                                  \
    X(cuDevicePrimaryCtxRetain)                                                                              \
    X(cuDevicePrimaryCtxRelease)                                                                             \
    X(cuCtxSetCurrent)                                                                                       \
    X(cuCtxSynchronize)                                                                                      \
    X(cuModuleLoadData)                                                                                      \
    X(cuModuleUnload)                                                                                        \
    X(cuModuleGetFunction)                                                                                   \
    X(cuFuncGetAttribute)                                                                                    \
    X(cuFuncSetAttribute)                                                                                    \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                           \
    X(cuMemAlloc)                                                                                            \
    X(cuMemFree)                                                                                             \
    X(cuMemsetD32Async)                                                                                      \
    X(cuMemcpyHtoD)                                                                                          \
    X(cuMemcpyDtoH)                                                                                          \
    X(cuStreamCreate)                                                                                        \
    X(cuStreamDestroy)                                                                                       \
    X(cuStreamSynchronize)                                                                                   \
    X(cuStreamWaitEvent)                                                                                     \
    X(cuStreamBeginCapture)                                                                                  \
    X(cuStreamEndCapture)                                                                                    \
    X(cuEventCreate)                                                                                         \
    X(cuEventRecord)                                                                                         \
    X(cuEventDestroy)                                                                                        \
    X(cuGraphInstantiateWithFlags)                                                                           \
    X(cuGraphLaunch)                                                                                         \
    X(cuGraphExecDestroy)                                                                                    \
    X(cuGraphDestroy)                                                                                        \
    X(cuLaunchKernel)                                                                                        \
    X(cuLaunchKernelEx)

struct sample_driver {
#define X(name) __typeof__(&name) name;
    SAMPLE_FUNCTIONS(X)
#undef X
};

/* sample_open() fills it. */
extern struct sample_driver cu;

struct sample_device {
    CUdevice handle;
    CUcontext context;
    char name[256];
    int cc; /* major * 10 + minor */
    int sm_count;
    int smem_per_sm_bytes;
    int smem_optin_bytes; /* maximum of one block */
    int smem_reserved_bytes;
    bool simulated; /* a simulated device, by its name: it schedules kernels but computes nothing */
};

/* Ends the program with a line on stderr unless `call`, a CUresult, is CUDA_SUCCESS. */
#define CHECK(call) sample_check((call), #call, __FILE__, __LINE__)
void sample_check(CUresult result, const char *call, const char *file, int line);

/* Opens the driver, the first device and its primary context, which becomes current. Without a driver or a
 * device: one line on stderr and exit 77. */
void sample_open(struct sample_device *device);
/* Opens the device with this number, from 0. */
void sample_open_number(struct sample_device *device, int number);
void sample_close(struct sample_device *device);
int sample_attribute(const struct sample_device *device, CUdevice_attribute attribute);

/* Loads device code that the build embeds: `extern const unsigned char NAME_image[]`. */
CUmodule sample_load(const void *image);
CUfunction sample_kernel(CUmodule module, const char *name);
/* Permits `bytes` of dynamic shared memory; needed above 48 KB. */
void sample_permit_smem(CUfunction kernel, unsigned bytes);

struct sample_shape {
    unsigned grid[3], block[3];
    unsigned smem_bytes; /* dynamic */
};
/* Launches a kernel and counts the launch. Any thread. */
void sample_launch(CUfunction kernel, const struct sample_shape *shape, CUstream stream, void **arguments);

/* Counts launches without sample_launch(): graph replays, another process. Any thread. */
void sample_count(uint64_t launches);
uint64_t sample_counted(void);
/* Prints the last line of every sample: "launches: N". Call it once, at the end; fails if stdout cannot be
 * written. */
int sample_finish(void);

/* An option of a sample: `--name`, or `--name ARGUMENT`. Exactly one of flag, number and text is set. */
struct sample_option {
    const char *name;     /* "--steps"; NULL ends the table */
    const char *argument; /* name of the argument in the help; NULL: a flag */
    const char *help;
    bool *flag;
    uint64_t *number;
    uint64_t min, max; /* bounds of number */
    const char **text;
};
/* Sets the options' values. --help prints the options and ends the program; an unknown option or a value out
 * of range ends it with exit code 2. */
void sample_parse(char **argv, const char *about, const struct sample_option *options);

__attribute__((noreturn, format(printf, 2, 3))) void sample_die(int code, const char *format, ...);

/* Returns repeatable pseudo-random numbers (splitmix64). */
uint64_t sample_random(uint64_t *state);
