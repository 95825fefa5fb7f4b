/*
 * A double of libnvidia-ml.so.1: its start, and the functions of NVML's GPM that the sampler uses: occupancy
 * and activity of a whole simulated device between two samples, over all processes (segments.h). H200 has
 * GPM, the others do not. A counter of energy is made up from the activity.
 *
 * It needs no driver: the devices are from OCCSIM_GPU. A sample covers the time until LAG_NS ago.
 * Names, numbers and layouts are from NVML's public reference; the toolkit has no header of NVML.
 *
 * Threads: any, under sim_nvml.lock.
 */
#include "nvml_double.h"

#include "env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LAG_NS  UINT64_C(5000000)
#define VERSION 1 /* version of the structures here */

enum metric { SM_UTIL = 2, SM_OCCUPANCY = 3 };

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

struct nvml_state sim_nvml = {.lock = PTHREAD_MUTEX_INITIALIZER};

NVML_API enum result nvmlInit_v2(void);
NVML_API enum result nvmlShutdown(void);
NVML_API const char *nvmlErrorString(enum result result);
NVML_API enum result nvmlDeviceGetHandleByUUID(const char *uuid, struct device **device);
NVML_API enum result nvmlGpmQueryDeviceSupport(struct device *device, struct gpm_support *support);
NVML_API enum result nvmlGpmSampleAlloc(struct look **sample);
NVML_API enum result nvmlGpmSampleFree(struct look *sample);
NVML_API enum result nvmlGpmSampleGet(struct device *device, struct look *sample);
NVML_API enum result nvmlGpmMetricsGet(struct gpm_get *get);
NVML_API enum result nvmlDeviceGetTotalEnergyConsumption(struct device *device, unsigned long long *energy);

/* ---- devices ---- */

enum result nvmlInit_v2(void)
{
    pthread_mutex_lock(&sim_nvml.lock);
    sim_nvml.initialized = true;
    for (uint32_t i = 0; i < MOST_DEVICES; i++) {
        sim_nvml.devices[i].gpu = sim_gpu_listed(sim_env()->gpu, i);
        if (sim_nvml.devices[i].gpu)
            sim_gpu_uuid(sim_nvml.devices[i].gpu, i, sim_nvml.devices[i].uuid);
    }
    pthread_mutex_unlock(&sim_nvml.lock);
    return SUCCESS;
}

enum result nvmlShutdown(void)
{
    pthread_mutex_lock(&sim_nvml.lock);
    for (uint32_t i = 0; i < MOST_DEVICES; i++) {
        sim_tail_close(sim_nvml.devices[i].tail);
        sim_nvml.devices[i] = (struct device){0};
    }
    bool was = sim_nvml.initialized;
    sim_nvml.initialized = false;
    pthread_mutex_unlock(&sim_nvml.lock);
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

void sim_nvml_write_uuid(const char *prefix, const uint8_t *uuid, char text[UUID_TEXT_BYTES])
{
    size_t used = (size_t)snprintf(text, UUID_TEXT_BYTES, "%.3s", prefix);
    for (size_t i = 0; i < SIM_UUID_BYTES; i++) {
        bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        used += (size_t)snprintf(text + used, UUID_TEXT_BYTES - used, dash ? "-%02x" : "%02x", uuid[i]);
    }
}

enum result nvmlDeviceGetHandleByUUID(const char *uuid, struct device **device)
{
    char text[UUID_TEXT_BYTES];
    enum result result = !sim_nvml.initialized ? UNINITIALIZED
                         : !uuid || !device    ? INVALID_ARGUMENT
                                               : NOT_FOUND;
    pthread_mutex_lock(&sim_nvml.lock);
    for (size_t i = 0; result == NOT_FOUND && i < MOST_DEVICES && sim_nvml.devices[i].gpu; i++) {
        sim_nvml_write_uuid("GPU", sim_nvml.devices[i].uuid, text);
        if (strcmp(text, uuid) != 0)
            continue;
        *device = &sim_nvml.devices[i];
        result = SUCCESS;
    }
    pthread_mutex_unlock(&sim_nvml.lock);
    return result;
}

bool sim_nvml_knows(const struct device *device)
{
    size_t i = 0;
    while (i < MOST_DEVICES && device != &sim_nvml.devices[i])
        i++;
    return sim_nvml.initialized && i < MOST_DEVICES && device->gpu;
}

/* ---- GPM ---- */

static bool has_gpm(const struct sim_gpu *gpu)
{
    return sim_gpu_limit(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 9;
}

enum result nvmlGpmQueryDeviceSupport(struct device *device, struct gpm_support *support)
{
    enum result result = SUCCESS;
    pthread_mutex_lock(&sim_nvml.lock);
    if (!sim_nvml_knows(device) || !support)
        result = INVALID_ARGUMENT;
    else if (support->version != VERSION)
        result = ARGUMENT_VERSION_MISMATCH;
    else
        support->supported = has_gpm(device->gpu) && *sim_env()->counters;
    pthread_mutex_unlock(&sim_nvml.lock);
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

/* ---- energy ---- */

/* Made up: 100 W, and up to 400 W more in proportion to the active SMs, since the first reading on. */
#define IDLE_MW   100e3
#define ACTIVE_MW 400e3

static void add_energy(struct device *device)
{
    uint64_t now_ns = realtime_ns();
    double seconds = device->energy.read_ns ? (double)(now_ns - device->energy.read_ns) * 1e-9 : 0;
    double elapsed = device->elapsed - device->energy.elapsed;
    double active = elapsed > 0 ? (device->active - device->energy.active) / elapsed : 0;
    device->energy.mj += seconds * (IDLE_MW + ACTIVE_MW * active);
    device->energy.read_ns = now_ns;
    device->energy.active = device->active;
    device->energy.elapsed = device->elapsed;
}

static bool has_energy(const struct sim_gpu *gpu)
{
    return sim_gpu_limit(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 7;
}

/* Volta and newer; a GPU that is divided by MIG has none. */
enum result nvmlDeviceGetTotalEnergyConsumption(struct device *device, unsigned long long *energy)
{
    enum result fault = (enum result)sim_fault(SIM_FAULT_ENERGY);
    if (fault != SUCCESS)
        return fault;
    pthread_mutex_lock(&sim_nvml.lock);
    enum result result = !sim_nvml.initialized                        ? UNINITIALIZED
                         : !energy || !sim_nvml_knows(device)         ? INVALID_ARGUMENT
                         : sim_env()->mig || !has_energy(device->gpu) ? NOT_SUPPORTED
                         : *sim_env()->counters                       ? count_locked(device)
                                                                      : SUCCESS;
    if (result == SUCCESS) {
        add_energy(device);
        *energy = (unsigned long long)device->energy.mj;
    }
    pthread_mutex_unlock(&sim_nvml.lock);
    return result;
}

/* ---- GPM samples ---- */

enum result nvmlGpmSampleGet(struct device *device, struct look *sample)
{
    enum result fault = (enum result)sim_fault(SIM_FAULT_GPM);
    if (fault != SUCCESS)
        return fault;
    pthread_mutex_lock(&sim_nvml.lock);
    enum result result = sim_nvml_knows(device) && sample ? SUCCESS : INVALID_ARGUMENT;
    if (result == SUCCESS)
        result = has_gpm(device->gpu) ? count_locked(device) : NOT_SUPPORTED;
    if (result == SUCCESS)
        *sample = (struct look){device, device->warps, device->active, device->elapsed};
    pthread_mutex_unlock(&sim_nvml.lock);
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
