/*
 * The compute processes of the NVML double, from the file OCCSIM_PROCESSES: a line "DEVICE PID [INSTANCE]"
 * for each, read at each call. With OCCSIM_MIG each device is divided into so many instances. Names, numbers
 * and layouts are from NVML's public reference.
 *
 * Threads: any, under sim_nvml.lock.
 */
#include "nvml_double.h"

#include "env.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST_INSTANCES = 7, MOST_PROCESSES = 4096 };
#define NONE 0xffffffffu

/* nvmlProcessInfo_v2_t */
struct process {
    unsigned int pid;
    unsigned long long memory;
    unsigned int gpu_instance, compute_instance;
};

/* The address is the handle of an instance. */
static struct device instances[MOST_DEVICES][MOST_INSTANCES];

NVML_API enum result nvmlDeviceGetCount_v2(unsigned int *count);
NVML_API enum result nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct device **device);
NVML_API enum result nvmlDeviceGetUUID(struct device *device, char *text, unsigned int size);
NVML_API enum result nvmlDeviceGetComputeRunningProcesses_v2(struct device *device, unsigned int *count,
                                                             struct process *processes);
NVML_API enum result nvmlDeviceGetMigMode(struct device *device, unsigned int *current,
                                          unsigned int *pending);
NVML_API enum result nvmlDeviceGetMaxMigDeviceCount(struct device *device, unsigned int *count);
NVML_API enum result nvmlDeviceGetMigDeviceHandleByIndex(struct device *device, unsigned int index,
                                                         struct device **instance);

static unsigned int count_devices(void)
{
    unsigned int n = 0;
    while (n < MOST_DEVICES && sim_nvml.devices[n].gpu)
        n++;
    return n;
}

/* Device and instance of a handle; *ret_instance NONE: a device. */
static bool find(const struct device *handle, unsigned int *ret_device, unsigned int *ret_instance)
{
    *ret_instance = NONE;
    for (unsigned int i = 0; i < count_devices(); i++) {
        *ret_device = i;
        if (handle == &sim_nvml.devices[i])
            return true;
        for (unsigned int k = 0; k < sim_env()->mig; k++)
            if (handle == &instances[i][k]) {
                *ret_instance = k;
                return true;
            }
    }
    return false;
}

static enum result check(bool is_valid)
{
    return !sim_nvml.initialized ? UNINITIALIZED : is_valid ? SUCCESS : INVALID_ARGUMENT;
}

static enum result unlock(enum result result)
{
    pthread_mutex_unlock(&sim_nvml.lock);
    return result;
}

enum result nvmlDeviceGetCount_v2(unsigned int *count)
{
    pthread_mutex_lock(&sim_nvml.lock);
    enum result result = check(count != NULL);
    if (result == SUCCESS)
        *count = count_devices();
    return unlock(result);
}

enum result nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct device **device)
{
    pthread_mutex_lock(&sim_nvml.lock);
    enum result result = check(device && index < count_devices());
    if (result == SUCCESS)
        *device = &sim_nvml.devices[index];
    return unlock(result);
}

enum result nvmlDeviceGetUUID(struct device *device, char *text, unsigned int size)
{
    unsigned int at = 0, instance = NONE;
    char uuid[UUID_TEXT_BYTES];
    uint8_t bytes[SIM_UUID_BYTES];
    pthread_mutex_lock(&sim_nvml.lock);
    enum result result = check(text && find(device, &at, &instance));
    if (result == SUCCESS && size < sizeof uuid)
        result = INSUFFICIENT_SIZE;
    if (result == SUCCESS) {
        memcpy(bytes, sim_nvml.devices[at].uuid, sizeof bytes);
        if (instance != NONE)
            bytes[SIM_UUID_BYTES - 1] = (uint8_t)(bytes[SIM_UUID_BYTES - 1] + 1 + instance);
        sim_nvml_write_uuid(instance == NONE ? "GPU" : "MIG", bytes, uuid);
        memcpy(text, uuid, sizeof uuid);
    }
    return unlock(result);
}

static unsigned int read_processes(unsigned int device, unsigned int instance, struct process *rows)
{
    unsigned int n = 0, of_device, of_instance;
    char line[128];
    FILE *file = fopen(sim_env()->processes, "re");
    while (file && n < MOST_PROCESSES && fgets(line, sizeof line, file)) {
        struct process row = {.memory = 1u << 20, .gpu_instance = NONE, .compute_instance = NONE};
        of_instance = 0;
        if (sscanf(line, "%u %u %u", &of_device, &row.pid, &of_instance) < 2 || of_device != device)
            continue;
        if (sim_env()->mig) {
            row.gpu_instance = of_instance;
            row.compute_instance = 0;
        }
        if (instance == NONE || instance == of_instance)
            rows[n++] = row;
    }
    if (file)
        (void)fclose(file);
    return n;
}

enum result nvmlDeviceGetComputeRunningProcesses_v2(struct device *device, unsigned int *count,
                                                    struct process *processes)
{
    static struct process rows[MOST_PROCESSES];
    unsigned int at = 0, instance = NONE;
    pthread_mutex_lock(&sim_nvml.lock);
    enum result result = check(count && (processes || *count == 0) && find(device, &at, &instance));
    if (result == SUCCESS && sim_env()->mig && instance == NONE && geteuid() != 0)
        result = NO_PERMISSION;
    if (result == SUCCESS) {
        unsigned int n = read_processes(at, instance, rows), room = *count;
        *count = n;
        if (n > room)
            result = INSUFFICIENT_SIZE;
        else if (n > 0)
            memcpy(processes, rows, n * sizeof *rows);
    }
    return unlock(result);
}

enum result nvmlDeviceGetMigMode(struct device *device, unsigned int *current, unsigned int *pending)
{
    pthread_mutex_lock(&sim_nvml.lock);
    enum result result = check(current && pending && sim_nvml_knows(device));
    if (result == SUCCESS && sim_gpu_limit(device->gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 8)
        result = NOT_SUPPORTED;
    if (result == SUCCESS)
        *current = *pending = sim_env()->mig > 0;
    return unlock(result);
}

enum result nvmlDeviceGetMaxMigDeviceCount(struct device *device, unsigned int *count)
{
    pthread_mutex_lock(&sim_nvml.lock);
    enum result result = check(count && sim_nvml_knows(device));
    if (result == SUCCESS)
        *count = MOST_INSTANCES;
    return unlock(result);
}

enum result nvmlDeviceGetMigDeviceHandleByIndex(struct device *device, unsigned int index,
                                                struct device **instance)
{
    unsigned int at = 0, none = NONE;
    pthread_mutex_lock(&sim_nvml.lock);
    enum result result =
        check(instance && index < MOST_INSTANCES && sim_nvml_knows(device) && find(device, &at, &none));
    if (result == SUCCESS && index >= sim_env()->mig)
        result = NOT_FOUND;
    if (result == SUCCESS)
        *instance = &instances[at][index];
    return unlock(result);
}
