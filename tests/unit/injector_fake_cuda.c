/*
 * A fake libcuda.so.1: the driver functions that the guest calls, each with distinct answers, so that a test
 * can tell from an answer which function was called.
 */
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* fake_cuda_gate: read end of a pipe from which cuInit reads a byte before it returns; -1: cuInit does not
 * wait. */
EXPORT extern _Atomic int fake_cuda_gate, fake_cuda_is_inside, fake_cuda_policy, fake_cuda_forks;
_Atomic int fake_cuda_gate = -1, fake_cuda_is_inside, fake_cuda_policy = -1, fake_cuda_forks;

/* Starts a child, like the driver, which starts a helper for device files. */
static void fork_once(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    (void)waitpid(child, NULL, 0);
}

EXPORT int cuInit(unsigned int flags);
EXPORT int cuInit(unsigned int flags)
{
    char byte;
    (void)flags;
    atomic_store(&fake_cuda_policy, sched_getscheduler(0));
    atomic_store(&fake_cuda_is_inside, 1);
    if (atomic_load(&fake_cuda_forks))
        fork_once();
    if (atomic_load(&fake_cuda_gate) >= 0) {
        (void)!read(atomic_load(&fake_cuda_gate), &byte, 1);
        (void)poll(NULL, 0, 20); /* stands for the driver's remaining work */
    }
    atomic_store(&fake_cuda_is_inside, 0);
    return 100; /* CUDA_ERROR_NO_DEVICE */
}

EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuDeviceGetCount(int *count)
{
    *count = 0;
    return 0;
}

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
    return device < 100 || attribute == 106; /* 106 stands for an attribute that an older driver lacks */
}
