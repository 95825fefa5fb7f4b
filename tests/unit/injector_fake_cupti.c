/*
 * A fake libcupti: the nine functions that the guest binds, and fake_launch(), with which the test makes
 * records. Environment variables select faults:
 *   FAKE_CUPTI_VERSION   result of cuptiGetVersion (default 130001)
 *   FAKE_CUPTI_ENABLE    result of cuptiActivityEnable (default 0)
 *   FAKE_CUPTI_COPIES    result of cuptiActivityEnable for copies and fills (default 0)
 *   FAKE_CUPTI_HANG      a flush never returns
 *   FAKE_CUPTI_DROPPED   number of records reported as dropped, once
 *   FAKE_CUPTI_STOPS     number of records read from a buffer before an error
 *   FAKE_CUPTI_THREADS   a thread that ends after a flush ends the program
 *   FAKE_CUPTI_UNREADY   a flush before the first launch ends the program: the driver may not be ready
 *   FAKE_CUPTI_WORKER    cuptiActivityEnable starts a thread that never ends, like libcupti's worker
 *   FAKE_CUPTI_LATE      the first full buffer starts the worker, which returns full buffers
 * Only one thread launches at a time.
 */
#include "cupti/activity_abi.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static occ_cupti_buffer_requested *requested;
static occ_cupti_buffer_completed *completed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *buffer;
static size_t buffer_bytes, used_bytes;
static bool has_incomplete; /* a record in the buffer has no end yet: only a forced flush gives it back */

static uint32_t number_from(const char *name, uint32_t otherwise)
{
    const char *text = getenv(name);
    return text ? (uint32_t)strtoul(text, NULL, 10) : otherwise;
}

static uint32_t version(void)
{
    return number_from("FAKE_CUPTI_VERSION", 130001);
}

EXPORT uint32_t cuptiGetVersion(uint32_t *ret);
EXPORT uint32_t cuptiGetVersion(uint32_t *ret)
{
    *ret = version();
    return 0;
}

EXPORT uint32_t cuptiGetResultString(uint32_t result, const char **text);
EXPORT uint32_t cuptiGetResultString(uint32_t result, const char **text)
{
    (void)result;
    *text = "A_FAKE_ERROR";
    return 0;
}

EXPORT uint64_t fake_pool_limit;
EXPORT _Atomic pid_t fake_late_worker;

EXPORT uint32_t cuptiActivitySetAttribute(uint32_t attribute, size_t *bytes, void *value);
EXPORT uint32_t cuptiActivitySetAttribute(uint32_t attribute, size_t *bytes, void *value)
{
    if (attribute == OCC_CUPTI_ATTRIBUTE_DEVICE_BUFFER_POOL_LIMIT)
        memcpy(&fake_pool_limit, value, *bytes);
    return attribute == OCC_CUPTI_ATTRIBUTE_DEVICE_BUFFER_PRE_ALLOCATE ? 1 : 0; /* an unknown value */
}

EXPORT uint32_t cuptiActivityRegisterCallbacks(occ_cupti_buffer_requested *r, occ_cupti_buffer_completed *c);
EXPORT uint32_t cuptiActivityRegisterCallbacks(occ_cupti_buffer_requested *r, occ_cupti_buffer_completed *c)
{
    requested = r;
    completed = c;
    return 0;
}

static void *work(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void start_worker(void)
{
    static bool is_started;
    pthread_t thread;
    if (!is_started && getenv("FAKE_CUPTI_WORKER"))
        is_started = pthread_create(&thread, NULL, work, NULL) == 0;
}

EXPORT uint32_t cuptiActivityEnable(uint32_t kind);
EXPORT uint32_t cuptiActivityEnable(uint32_t kind)
{
    start_worker();
    if (kind == OCC_CUPTI_KIND_MEMCPY || kind == OCC_CUPTI_KIND_MEMSET)
        return number_from("FAKE_CUPTI_COPIES", 0);
    return kind == OCC_CUPTI_KIND_CONCURRENT_KERNEL ? number_from("FAKE_CUPTI_ENABLE", 0) : 1;
}

EXPORT uint32_t cuptiActivityDisable(uint32_t kind);
EXPORT uint32_t cuptiActivityDisable(uint32_t kind)
{
    (void)kind;
    return 0;
}

static void deliver(void)
{
    if (buffer)
        completed(NULL, 0, buffer, buffer_bytes, used_bytes);
    buffer = NULL;
    has_incomplete = false;
}

static void abort_at_the_end_of_thread(void *nothing)
{
    (void)nothing;
    abort();
}

static void mark_thread(void)
{
    static pthread_key_t key;
    static bool made;
    if (!made)
        made = pthread_key_create(&key, abort_at_the_end_of_thread) == 0;
    (void)pthread_setspecific(key, &key);
}

EXPORT uint32_t cuptiActivityFlushAll(uint32_t flags);
EXPORT uint32_t cuptiActivityFlushAll(uint32_t flags)
{
    if (getenv("FAKE_CUPTI_THREADS"))
        mark_thread();
    if (getenv("FAKE_CUPTI_UNREADY") && buffer_bytes == 0)
        abort();
    while (getenv("FAKE_CUPTI_HANG"))
        pause();
    pthread_mutex_lock(&lock);
    if (flags == OCC_CUPTI_FLUSH_FORCED || !has_incomplete)
        deliver();
    pthread_mutex_unlock(&lock);
    return 0;
}

EXPORT uint32_t cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped);
EXPORT uint32_t cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
    (void)context;
    (void)stream;
    *dropped = number_from("FAKE_CUPTI_DROPPED", 0);
    unsetenv("FAKE_CUPTI_DROPPED");
    return 0;
}

static size_t record_bytes(void)
{
    return occ_cupti_kernel_bytes(version()) + (version() > 139999 ? 64 : 0); /* longer in future versions */
}

EXPORT uint32_t cuptiActivityGetNextRecord(uint8_t *from, size_t valid_bytes, void **record);
EXPORT uint32_t cuptiActivityGetNextRecord(uint8_t *from, size_t valid_bytes, void **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + record_bytes() : from;
    if ((size_t)(next - from) / record_bytes() >= number_from("FAKE_CUPTI_STOPS", UINT32_MAX))
        return 999;
    if ((size_t)(next - from) + record_bytes() > valid_bytes)
        return OCC_CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = next;
    return 0;
}

static bool is_handed_over; /* the late worker has a buffer to deliver; under the lock */
static pthread_cond_t handed_over = PTHREAD_COND_INITIALIZER;

static void *work_late(void *unused)
{
    atomic_store(&fake_late_worker, (pid_t)syscall(SYS_gettid));
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!is_handed_over)
            pthread_cond_wait(&handed_over, &lock);
        deliver();
        is_handed_over = false;
        pthread_cond_broadcast(&handed_over);
    }
    return unused;
}

/* Hands the buffer to the late worker and returns after the delivery. The caller holds the lock. */
static void deliver_late(void)
{
    pthread_t thread;
    static bool is_started;
    if (!is_started)
        is_started = pthread_create(&thread, NULL, work_late, NULL) == 0;
    is_handed_over = true;
    pthread_cond_broadcast(&handed_over);
    while (is_handed_over)
        pthread_cond_wait(&handed_over, &lock);
}

/* Adds a record to the buffer; delivers a full buffer. */
EXPORT void fake_launch(const struct occ_cupti_kernel *kernel);
EXPORT void fake_launch(const struct occ_cupti_kernel *kernel)
{
    pthread_mutex_lock(&lock);
    if (!buffer) {
        size_t most = 0;
        requested(&buffer, &buffer_bytes, &most);
        used_bytes = 0;
    }
    size_t known = record_bytes() < sizeof *kernel ? record_bytes() : sizeof *kernel;
    memcpy(buffer + used_bytes, kernel, known);
    used_bytes += record_bytes();
    has_incomplete |= kernel->end_ns == 0;
    if (used_bytes + record_bytes() > buffer_bytes)
        (getenv("FAKE_CUPTI_LATE") ? deliver_late : deliver)();
    pthread_mutex_unlock(&lock);
}

/* Delivers a buffer that the guest did not provide, as after a profiler has replaced another profiler's
 * callbacks. */
EXPORT void fake_deliver_foreign(void);
EXPORT void fake_deliver_foreign(void)
{
    static uint8_t foreign[4096];
    completed(NULL, 0, foreign, sizeof foreign, 0);
}
