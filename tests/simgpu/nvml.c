/*
 * A double of libnvidia-ml.so.1 with the functions of NVML's GPM that the sampler uses: occupancy and
 * activity of a whole simulated device between two samples, over all processes (segments.h). H200 has GPM,
 * the others do not.
 *
 * It needs no driver: the devices are from OCCSIM_GPU. A sample covers the time until LAG_NS ago.
 * Names, numbers and layouts are from NVML's public reference; the toolkit has no header of NVML.
 *
 * Threads: any, under `lock`.
 */
#include "cupti_pm.h"

#include "env.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NVML_API __attribute__((visibility("default")))
#define LAG_NS   UINT64_C(5000000)
#define VERSION  1 /* version of the structures here */

enum { MOST_DEVICES = 16, UUID_TEXT_BYTES = 41 };

enum metric { SM_UTIL = 2, SM_OCCUPANCY = 3 };

/* X(NAME, number, text) */
#define RESULTS(X)                                                                                           \
    X(SUCCESS, 0, "success")                                                                                 \
    X(UNINITIALIZED, 1, "not initialized")                                                                   \
    X(INVALID_ARGUMENT, 2, "invalid argument")                                                               \
    X(NOT_SUPPORTED, 3, "not supported by this device")                                                      \
    X(NO_PERMISSION, 4, "insufficient permissions")                                                          \
    X(NOT_FOUND, 6, "not found")                                                                             \
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
};

/* A GPM sample: the device's counts at that time. */
struct look {
    const struct device *device;
    double warps, active, elapsed;
};

struct gpm_metric {
    unsigned int id;
    enum result result;
    double value;
    struct {
        char *short_name, *long_name, *unit;
    } info;
};

struct gpm_get {
    unsigned int version, n;
    struct look *sample1, *sample2;
    struct gpm_metric metrics[];
};

struct gpm_support {
    unsigned int version, supported;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialized;
static struct device devices[MOST_DEVICES];

NVML_API enum result nvmlInit_v2(void);
NVML_API enum result nvmlShutdown(void);
NVML_API const char *nvmlErrorString(enum result result);
NVML_API enum result nvmlDeviceGetHandleByUUID(const char *uuid, struct device **device);
NVML_API enum result nvmlGpmQueryDeviceSupport(struct device *device, struct gpm_support *support);
NVML_API enum result nvmlGpmSampleAlloc(struct look **sample);
NVML_API enum result nvmlGpmSampleFree(struct look *sample);
NVML_API enum result nvmlGpmSampleGet(struct device *device, struct look *sample);
NVML_API enum result nvmlGpmMetricsGet(struct gpm_get *get);

/* ---- devices ---- */

enum result nvmlInit_v2(void)
{
    pthread_mutex_lock(&lock);
    initialized = true;
    for (uint32_t i = 0; i < MOST_DEVICES; i++) {
        devices[i].gpu = sim_gpu_listed(sim_env()->gpu, i);
        if (devices[i].gpu)
            sim_gpu_uuid(devices[i].gpu, i, devices[i].uuid);
    }
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

enum result nvmlShutdown(void)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < MOST_DEVICES; i++) {
        sim_tail_close(devices[i].tail);
        devices[i] = (struct device){0};
    }
    bool was = initialized;
    initialized = false;
    pthread_mutex_unlock(&lock);
    return was ? SUCCESS : UNINITIALIZED;
}

const char *nvmlErrorString(enum result result)
{
    switch (result) {
#define X(name, number, text)                                                                                \
    case name:                                                                                               \
        return text;
        RESULTS(X)
#undef X
    default:
        return "no such result";
    }
}

/* "GPU-12345678-1234-1234-1234-123456789abc" */
static void write_uuid(const uint8_t *uuid, char text[UUID_TEXT_BYTES])
{
    size_t used = (size_t)snprintf(text, UUID_TEXT_BYTES, "GPU");
    for (size_t i = 0; i < SIM_UUID_BYTES; i++) {
        bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        used += (size_t)snprintf(text + used, UUID_TEXT_BYTES - used, dash ? "-%02x" : "%02x", uuid[i]);
    }
}

enum result nvmlDeviceGetHandleByUUID(const char *uuid, struct device **device)
{
    char text[UUID_TEXT_BYTES];
    enum result result = !initialized ? UNINITIALIZED : !uuid || !device ? INVALID_ARGUMENT : NOT_FOUND;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; result == NOT_FOUND && i < MOST_DEVICES && devices[i].gpu; i++) {
        write_uuid(devices[i].uuid, text);
        if (strcmp(text, uuid) != 0)
            continue;
        *device = &devices[i];
        result = SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static bool known_locked(const struct device *device)
{
    size_t i = 0;
    while (i < MOST_DEVICES && device != &devices[i])
        i++;
    return initialized && i < MOST_DEVICES && device->gpu;
}

/* ---- GPM ---- */

static bool has_gpm(const struct sim_gpu *gpu)
{
    return sim_gpu_limit(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 9;
}

enum result nvmlGpmQueryDeviceSupport(struct device *device, struct gpm_support *support)
{
    enum result result = SUCCESS;
    pthread_mutex_lock(&lock);
    if (!known_locked(device) || !support)
        result = INVALID_ARGUMENT;
    else if (support->version != VERSION)
        result = ARGUMENT_VERSION_MISMATCH;
    else
        support->supported = has_gpm(device->gpu) && *sim_env()->counters;
    pthread_mutex_unlock(&lock);
    return result;
}

enum result nvmlGpmSampleAlloc(struct look **sample)
{
    if (!sample)
        return INVALID_ARGUMENT;
    *sample = calloc(1, sizeof **sample);
    return *sample ? SUCCESS : MEMORY;
}

enum result nvmlGpmSampleFree(struct look *sample)
{
    free(sample);
    return sample ? SUCCESS : INVALID_ARGUMENT;
}

static uint64_t realtime_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* Counts until LAG_NS ago. */
static enum result count_locked(struct device *device)
{
    double values[SIM_METRICS];
    uint64_t until_ns = realtime_ns() - LAG_NS;
    if (!device->tail) {
        device->tail = sim_tail_open(device->gpu, device->uuid);
        device->looked_ns = until_ns;
    }
    if (!device->tail)
        return MEMORY;
    sim_tail_read(device->tail);
    if (until_ns <= device->looked_ns)
        return SUCCESS;
    sim_tail_sum(device->tail, device->looked_ns, until_ns, values);
    device->looked_ns = until_ns;
    double sms = sim_gpu_limit(device->gpu, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    device->warps += values[SIM_METRIC_WARPS];
    device->active += values[SIM_METRIC_ACTIVE];
    device->elapsed += values[SIM_METRIC_ELAPSED] * sms;
    return SUCCESS;
}

enum result nvmlGpmSampleGet(struct device *device, struct look *sample)
{
    enum result fault = (enum result)sim_fault(SIM_FAULT_GPM);
    if (fault != SUCCESS)
        return fault;
    pthread_mutex_lock(&lock);
    enum result result = known_locked(device) && sample ? SUCCESS : INVALID_ARGUMENT;
    if (result == SUCCESS)
        result = has_gpm(device->gpu) ? count_locked(device) : NOT_SUPPORTED;
    if (result == SUCCESS)
        *sample = (struct look){device, device->warps, device->active, device->elapsed};
    pthread_mutex_unlock(&lock);
    return result;
}

/* Computes a metric in percent. */
static void evaluate(const struct look *before, const struct look *after, struct gpm_metric *metric)
{
    double elapsed = after->elapsed - before->elapsed;
    double warps =
        sim_gpu_limit(after->device->gpu, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / 32.0;
    metric->result = elapsed > 0 ? SUCCESS : UNKNOWN;
    if (elapsed <= 0)
        return;
    if (metric->id == SM_UTIL)
        metric->value = 100 * (after->active - before->active) / elapsed;
    else if (metric->id == SM_OCCUPANCY)
        metric->value = 100 * (after->warps - before->warps) / (elapsed * warps);
    else
        metric->result = NOT_SUPPORTED;
}

enum result nvmlGpmMetricsGet(struct gpm_get *get)
{
    if (!get || !get->sample1 || !get->sample2)
        return INVALID_ARGUMENT;
    if (get->version != VERSION)
        return ARGUMENT_VERSION_MISMATCH;
    const struct look *before = get->sample1, *after = get->sample2;
    if (!before->device || before->device != after->device)
        return INVALID_ARGUMENT;
    for (unsigned int i = 0; i < get->n; i++)
        evaluate(before, after, &get->metrics[i]);
    return SUCCESS;
}
