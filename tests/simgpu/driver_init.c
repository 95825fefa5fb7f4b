/*
 * The driver's beginning: cuInit with the injected library, devices, the lock, handles, interned names, the
 * hook.
 *
 * Threads: all. cuInit runs once; a second thread waits for it, the injected library may call back into the
 * driver from within it. A child that was forked after cuInit gets CUDA_ERROR_NOT_INITIALIZED from
 * everything, as from the real driver; one that was forked before starts afresh.
 */
#include "driver.h"

#include "clock.h"
#include "env.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SIM_EXPORT __attribute__((visibility("default")))

enum state { STATE_NEW, STATE_STARTING, STATE_READY, STATE_FAILED, STATE_FORKED };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static _Atomic int state = STATE_NEW;
static pthread_t starter;
static CUresult start_result;
static struct sim_device devices[SIM_MAX_DEVICES];
static int device_count;

void sim_lock(void)
{
    pthread_mutex_lock(&lock);
}

void sim_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void sim_wait_locked(void)
{
    pthread_cond_wait(&changed, &lock);
}

void sim_wake_all(void)
{
    pthread_cond_broadcast(&changed);
}

/* ---- handles and names ---- */

void *sim_handle(const void *handle, enum sim_type type)
{
    enum sim_type found;
    if (!handle || (uintptr_t)handle < 4096)
        return NULL;
    memcpy(&found, handle, sizeof found);
    return found == type ? (void *)(uintptr_t)handle : NULL;
}

uint64_t sim_hash(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return hash;
}

struct name {
    struct name *next;
    char text[];
};

const char *sim_intern_locked(const char *text)
{
    static struct name *names[1024];
    struct name **head = &names[sim_hash(text) % (sizeof names / sizeof *names)];
    for (struct name *n = *head; n; n = n->next) {
        if (strcmp(n->text, text) == 0)
            return n->text;
    }
    size_t bytes = strlen(text) + 1;
    struct name *n = malloc(sizeof *n + bytes);
    if (!n)
        return NULL;
    memcpy(n->text, text, bytes);
    n->next = *head;
    *head = n;
    return n->text;
}

/* ---- devices ---- */

static bool add_device(const char *key, size_t length)
{
    struct sim_device *device = &devices[device_count];
    device->gpu = sim_gpu_find(key, length);
    if (!device->gpu || device_count == SIM_MAX_DEVICES)
        return false;
    device->ordinal = device_count;
    device->sm = sim_gpu_limit(device->gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                 sim_gpu_limit(device->gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    device->timeline = sim_timeline_new();
    device_count += device->timeline != NULL;
    return device->timeline != NULL;
}

static CUresult add_devices(void)
{
    for (const char *key = sim_env()->gpu; *key;) {
        size_t length = strcspn(key, ",");
        if (!add_device(key, length)) {
            sim_complain("OCCSIM_GPU: \"%.*s\" is not t4, a100 or h200, or there are too many", (int)length,
                         key);
            return CUDA_ERROR_NO_DEVICE;
        }
        key += length + (key[length] == ',');
    }
    return device_count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

struct sim_device *sim_device_at(CUdevice ordinal)
{
    return ordinal >= 0 && ordinal < device_count ? &devices[ordinal] : NULL;
}

int sim_device_count(void)
{
    return device_count;
}

/* ---- cuInit ---- */

static void after_fork_in_child(void)
{
    if (atomic_load(&state) != STATE_NEW)
        atomic_store(&state, STATE_FORKED);
}

/* Loads CUDA_INJECTION64_PATH like the driver, also without a device (seen with drivers 550 and 580). Failure
 * to load the library does not affect the program. */
static void inject(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    if (!path || !*path)
        return;
    void *library = dlopen(path, RTLD_NOW);
    int (*initialize)(void) = NULL;
    if (library)
        *(void **)&initialize = dlsym(library, "InitializeInjection");
    if (!initialize) {
        sim_log("injection: %s", dlerror());
        return;
    }
    int result = initialize();
    sim_log("injection: %s: InitializeInjection returned %d", path, result);
}

static CUresult start(void)
{
    CUresult fault = (CUresult)sim_fault(SIM_FAULT_INIT);
    pthread_atfork(NULL, NULL, after_fork_in_child);
    return fault ? fault : add_devices();
}

/* Returns true in the first caller; other threads wait for it, but not its own injected library. */
static bool become_starter(void)
{
    bool mine = false;
    sim_lock();
    while (state == STATE_STARTING && !pthread_equal(starter, pthread_self()))
        sim_wait_locked();
    if (state == STATE_NEW) {
        starter = pthread_self();
        start_result = start();
        state = STATE_STARTING;
        mine = true;
    }
    sim_unlock();
    return mine;
}

CUresult cuInit(unsigned int flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    sim_env();
    if (atomic_load(&state) == STATE_FORKED)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (become_starter()) {
        if (start_result == CUDA_SUCCESS || start_result == CUDA_ERROR_NO_DEVICE)
            inject();
        sim_lock();
        state = start_result == CUDA_SUCCESS ? STATE_READY : STATE_FAILED;
        sim_wake_all();
        sim_unlock();
    }
    return start_result;
}

CUresult sim_initialized(void)
{
    int now = atomic_load_explicit(&state, memory_order_acquire);
    return now == STATE_READY || now == STATE_STARTING ? start_result : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = SIM_DRIVER_VERSION;
    return CUDA_SUCCESS;
}

/* Finds no table: export tables are private to NVIDIA. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    (void)id;
    if (!table)
        return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuProfilerStart(void)
{
    return sim_initialized();
}

CUresult cuProfilerStop(void)
{
    return sim_initialized();
}

/* ---- the hook ---- */

static bool context_id(CUcontext handle, uint32_t *ret_id, uint32_t *ret_device)
{
    struct sim_context *context = sim_handle(handle, SIM_CONTEXT);
    if (!context)
        return false;
    *ret_id = context->id;
    *ret_device = (uint32_t)context->device->ordinal;
    return true;
}

static bool stream_id(CUcontext handle, CUstream stream_handle, uint32_t *ret_id)
{
    struct sim_context *context = sim_handle(handle, SIM_CONTEXT);
    struct sim_stream *stream = NULL;
    if (context && !stream_handle)
        stream = context->legacy;
    else if (sim_stream_of(stream_handle, &stream) != CUDA_SUCCESS)
        return false;
    *ret_id = stream->id;
    return true;
}

static bool has_devices(void)
{
    return start_result != CUDA_ERROR_NO_DEVICE && sim_fault(SIM_FAULT_INIT) != CUDA_ERROR_NO_DEVICE;
}

static const struct sim_gpu *device_at(size_t ordinal, uint8_t *ret_uuid)
{
    struct sim_device *device = NULL;
    if (sim_initialized() == CUDA_SUCCESS && ordinal < SIM_MAX_DEVICES)
        device = sim_device_at((CUdevice)ordinal);
    if (!device)
        return NULL;
    sim_gpu_uuid(device->gpu, (uint32_t)device->ordinal, ret_uuid);
    return device->gpu;
}

SIM_EXPORT sim_hook_function occsim_hook;

const struct sim_driver *occsim_hook(const struct sim_sink *sink)
{
    static struct sim_driver driver = {.version = SIM_HOOK_VERSION,
                                       .now = sim_clock_now,
                                       .context_id = context_id,
                                       .stream_id = stream_id,
                                       .graph_id = sim_graph_id,
                                       .node_id = sim_node_id,
                                       .device = device_at,
                                       .has_devices = has_devices,
                                       .wait_until = sim_clock_wait_until};
    sim_set_sink(sink);
    return &driver;
}
