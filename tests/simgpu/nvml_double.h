/* Devices of the NVML double, for nvml.c and nvml_processes.c. */
#pragma once

#include "cupti_pm.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define NVML_API __attribute__((visibility("default")))

enum { MOST_DEVICES = 16, UUID_TEXT_BYTES = 41 };

/* X(NAME, number, text) */
#define RESULTS(X)                                                                                           \
    X(SUCCESS, 0, "success")                                                                                 \
    X(UNINITIALIZED, 1, "not initialized")                                                                   \
    X(INVALID_ARGUMENT, 2, "invalid argument")                                                               \
    X(NOT_SUPPORTED, 3, "not supported by this device")                                                      \
    X(NO_PERMISSION, 4, "insufficient permissions")                                                          \
    X(NOT_FOUND, 6, "not found")                                                                             \
    X(INSUFFICIENT_SIZE, 7, "insufficient size")                                                             \
    X(ARGUMENT_VERSION_MISMATCH, 25, "another version of the structure")                                     \
    X(MEMORY, 20, "no memory")                                                                               \
    X(UNKNOWN, 999, "nothing was counted")

enum result {
#define X(name, number, text) name = number,
    RESULTS(X)
#undef X
};

struct device {
    const struct sim_gpu *gpu; /* NULL: no device */
    uint8_t uuid[SIM_UUID_BYTES];
    struct sim_tail *tail; /* opened at the first sample */
    uint64_t looked_ns;
    double warps, active, elapsed; /* cycles since the first sample, over all SMs */
    struct {
        uint64_t read_ns; /* last reading; 0: none */
        double active, elapsed, mj;
    } energy;
};

struct nvml_state {
    pthread_mutex_t lock; /* guards the members */
    bool initialized;
    struct device devices[MOST_DEVICES];
};
extern struct nvml_state sim_nvml;

/* "GPU-12345678-1234-1234-1234-123456789abc", or another prefix of three letters. */
void sim_nvml_write_uuid(const char *prefix, const uint8_t *uuid, char text[UUID_TEXT_BYTES]);
/* true for a handle of a device, under the lock. */
bool sim_nvml_knows(const struct device *device);
