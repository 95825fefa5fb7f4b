/*
 * The activity API: the path of activity records from the driver to the client's buffers.
 *
 * A record is written at its launch, in the launching thread, into that thread's buffer (or into the common
 * buffer with PER_THREAD_ACTIVITY_BUFFER 0); without a buffer the thread requests one from the client. A
 * buffer is complete once the last of its records has ended. Full buffers wait in a list; the worker thread
 * returns them when they are complete, and a flush returns them in its caller. cupti_activity.h documents:
 *   cuptiActivityFlushAll(0)       returns "all the activity buffers which have all the activity records
 *                                  completed, buffers need not to be full"; an incomplete buffer stays and
 *                                  takes more records
 *   cuptiActivityFlushAll(FORCED)  returns all; records that have not ended yet have start = end = 0
 *
 * Locks: `lock` protects everything here; no client function is called under it.
 * Threads: any; the worker starts with the first cuptiActivityEnable, or with the first record (fault
 * "late_worker"), and has the signal mask of that thread.
 */
#include "cupti_double.h"

#include "env.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS      5 /* interval of the worker's checks for complete buffers */
#define NS_PER_MS    UINT64_C(1000000)
#define KIND_BIT(k)  (UINT64_C(1) << (k))
#define FORCED_FLUSH CUPTI_ACTIVITY_FLAG_FLUSH_FORCED

struct buffer {
    struct buffer *next;
    uint8_t *bytes;
    size_t size, used;
    size_t records, max_records; /* 0: as many as fit */
    bool is_incomplete;          /* has an unfinished record: only a forced flush returns it */
    uint64_t complete_ns;
};

/* A thread's record destination. Lives until the process ends: a flush may read it at any time. */
struct outlet {
    bool listed; /* in `outlets` */
    struct outlet *next;
    struct buffer *current;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static _Atomic uint64_t enabled_kinds;
static CUpti_BuffersCallbackRequestFunc request_buffer;
static CUpti_BuffersCallbackCompleteFunc return_buffer;
static struct outlet *outlets;
static struct outlet shared_outlet;
static _Thread_local struct outlet *own_outlet;
static struct buffer *waiting, **waiting_end = &waiting; /* buffers to return, oldest first */
static size_t dropped;
static uint64_t poll_ms = POLL_MS;
static pthread_cond_t returned = PTHREAD_COND_INITIALIZER;
static unsigned returning; /* buffers that the worker or a flush is returning */

/* ---- attributes ---- */

/* X(name, bytes, default) */
#define ATTRIBUTES(X)                                                                                        \
    X(DEVICE_BUFFER_SIZE, 8, 3200000)                                                                        \
    X(DEVICE_BUFFER_SIZE_CDP, 8, 8388608)                                                                    \
    X(DEVICE_BUFFER_POOL_LIMIT, 8, 250)                                                                      \
    X(PROFILING_SEMAPHORE_POOL_SIZE, 8, 25000)                                                               \
    X(PROFILING_SEMAPHORE_POOL_LIMIT, 8, 250)                                                                \
    X(ZEROED_OUT_ACTIVITY_BUFFER, 1, 0)                                                                      \
    X(DEVICE_BUFFER_PRE_ALLOCATE_VALUE, 8, 3)                                                                \
    X(PROFILING_SEMAPHORE_PRE_ALLOCATE_VALUE, 8, 3)                                                          \
    X(MEM_ALLOCATION_TYPE_HOST_PINNED, 1, 0)                                                                 \
    X(PER_THREAD_ACTIVITY_BUFFER, 1, 1)                                                                      \
    X(DEVICE_BUFFER_SIZE_DEVICE_GRAPHS, 8, 16777216)

struct attribute {
    size_t bytes;
    uint64_t value, standard;
};

static struct attribute attributes[] = {
#define X(name, bytes, standard) [CUPTI_ACTIVITY_ATTR_##name] = {bytes, standard, standard},
    ATTRIBUTES(X)
#undef X
};

static CUptiResult attribute_of(CUpti_ActivityAttribute attr, const size_t *size, const void *value,
                                struct attribute **ret)
{
    if (!size || !value || (size_t)attr >= sizeof attributes / sizeof *attributes)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *ret = &attributes[attr];
    return *size < (*ret)->bytes ? CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT : CUPTI_SUCCESS;
}

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attr, size_t *valueSize, void *value)
{
    struct attribute *attribute;
    CUptiResult result = attribute_of(attr, valueSize, value, &attribute);
    sim_cupti_enter(__func__);
    if (!sim_cupti_has_device())
        return CUPTI_ERROR_UNKNOWN;
    if (result)
        return sim_cupti_result(result);
    pthread_mutex_lock(&lock);
    attribute->value = 0;
    memcpy(&attribute->value, value, attribute->bytes);
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attr, size_t *valueSize, void *value)
{
    struct attribute *attribute;
    CUptiResult result = attribute_of(attr, valueSize, value, &attribute);
    sim_cupti_enter(__func__);
    if (result)
        return sim_cupti_result(result);
    pthread_mutex_lock(&lock);
    memcpy(value, &attribute->value, attribute->bytes);
    *valueSize = attribute->bytes;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

/* ---- returning buffers ---- */

static bool complete(const struct buffer *buffer, uint64_t now_ns)
{
    if (sim_env()->clock_mode == SIM_CLOCK_AHEAD)
        return true;
    return buffer->complete_ns + sim_fault(SIM_FAULT_LATE) * NS_PER_MS <= now_ns;
}

static size_t next_offset(const struct buffer *buffer, size_t at)
{
    CUpti_ActivityKind kind;
    memcpy(&kind, buffer->bytes + at, sizeof kind);
    return at + sim_record_bytes(kind, sim_cupti_version());
}

/* Clears the times of work that was still running at a forced flush. */
static void clear_unfinished(struct buffer *buffer, uint64_t now_ns)
{
    for (size_t at = 0; at < buffer->used; at = next_offset(buffer, at)) {
        uint64_t start, end;
        sim_record_times(buffer->bytes + at, &start, &end);
        if (end > now_ns)
            sim_record_set_times(buffer->bytes + at, 0, 0);
    }
}

/* The fault "shuffle": reverses records of equal length in groups of N. */
static void shuffle(struct buffer *buffer, size_t group)
{
    size_t length = next_offset(buffer, 0), count = buffer->used / length;
    uint8_t keep[SIM_RECORD_MAX_BYTES];
    for (size_t at = 0; at < buffer->used; at = next_offset(buffer, at))
        if (next_offset(buffer, at) - at != length)
            return;
    for (size_t first = 0; first + group <= count; first += group) {
        for (size_t i = 0, j = group - 1; i < j; i++, j--) {
            uint8_t *a = buffer->bytes + (first + i) * length, *b = buffer->bytes + (first + j) * length;
            memcpy(keep, a, length);
            memcpy(a, b, length);
            memcpy(b, keep, length);
        }
    }
}

static void give_back(struct buffer *buffer)
{
    size_t group = sim_fault(SIM_FAULT_SHUFFLE);
    if (group > 1 && buffer->used)
        shuffle(buffer, group);
    return_buffer(NULL, 0, buffer->bytes, buffer->size, buffer->used);
    free(buffer);
}

static void put_waiting_locked(struct buffer *buffer)
{
    buffer->next = NULL;
    *waiting_end = buffer;
    waiting_end = &buffer->next;
    pthread_cond_signal(&work);
}

/* Takes out the first waiting buffer that may be returned; NULL: none. */
static struct buffer *take_waiting_locked(uint64_t now_ns, bool forced)
{
    for (struct buffer **link = &waiting; *link; link = &(*link)->next) {
        struct buffer *buffer = *link;
        if (!forced && !complete(buffer, now_ns))
            continue;
        *link = buffer->next;
        if (!*link)
            waiting_end = link;
        return buffer;
    }
    return NULL;
}

static void return_waiting(bool forced)
{
    uint64_t now = sim_cupti_now();
    for (;;) {
        pthread_mutex_lock(&lock);
        struct buffer *buffer = take_waiting_locked(now, forced);
        returning += buffer != NULL;
        pthread_mutex_unlock(&lock);
        if (!buffer)
            return;
        if (forced && !complete(buffer, now))
            clear_unfinished(buffer, now);
        give_back(buffer);
        pthread_mutex_lock(&lock);
        returning--;
        pthread_cond_broadcast(&returned);
        pthread_mutex_unlock(&lock);
    }
}

static void take_outlets_locked(bool forced)
{
    uint64_t now_ns = sim_cupti_now();
    for (struct outlet *o = outlets; o; o = o->next) {
        if (o->current && o->current->used &&
            (forced || (!o->current->is_incomplete && complete(o->current, now_ns)))) {
            put_waiting_locked(o->current);
            o->current = NULL;
        }
    }
}

/* ---- the worker ---- */

static void wait_locked(void)
{
    struct timespec until;
    if (!waiting) {
        pthread_cond_wait(&work, &lock);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + poll_ms * NS_PER_MS;
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_cond_timedwait(&work, &lock, &until);
}

static void *worker(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        wait_locked();
        pthread_mutex_unlock(&lock);
        if (sim_cupti_is_torn_down())
            break;
        return_waiting(false);
    }
    return NULL;
}

static void start_worker_locked(void)
{
    static bool started;
    pthread_t thread;
    if (started)
        return;
    started = pthread_create(&thread, NULL, worker, NULL) == 0;
    if (started)
        pthread_detach(thread);
}

/* ---- storing records ---- */

static struct outlet *outlet_locked(void)
{
    bool per_thread = attributes[CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER].value != 0;
    struct outlet *outlet = per_thread ? own_outlet : &shared_outlet;
    if (!outlet)
        own_outlet = outlet = calloc(1, sizeof *outlet);
    if (!outlet)
        return NULL;
    if (outlet->listed)
        return outlet;
    outlet->listed = true;
    outlet->next = outlets;
    outlets = outlet;
    return outlet;
}

/* Requests a buffer from the client. Returns NULL without a buffer, or if it is too small for a record.
 * Called without the lock. */
static struct buffer *ask_for_buffer(bool zero)
{
    CUpti_BuffersCallbackRequestFunc request = request_buffer; /* another thread may call cuptiFinalize */
    struct buffer *buffer = request ? calloc(1, sizeof *buffer) : NULL;
    uint64_t small = sim_fault(SIM_FAULT_SMALL);
    if (!buffer)
        return NULL;
    request(&buffer->bytes, &buffer->size, &buffer->max_records);
    if (!buffer->bytes || buffer->size < SIM_RECORD_MAX_BYTES) {
        free(buffer);
        return NULL;
    }
    if (zero)
        memset(buffer->bytes, 0, buffer->size);
    if (small && buffer->max_records == 0) {
        size_t most = small / sim_record_bytes(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sim_cupti_version());
        buffer->max_records = most ? most : 1;
    }
    return buffer;
}

static bool has_room(const struct buffer *buffer, size_t bytes)
{
    return buffer->size - buffer->used >= bytes &&
           (!buffer->max_records || buffer->records < buffer->max_records);
}

/* Returns the outlet's buffer if it has room for a record, else NULL; a full buffer moves to the waiting
 * list. */
static struct buffer *current_locked(struct outlet *outlet, size_t bytes)
{
    if (outlet->current && !has_room(outlet->current, bytes)) {
        put_waiting_locked(outlet->current);
        outlet->current = NULL;
    }
    return outlet->current;
}

/* Returns a buffer with room for a record in this thread's outlet; NULL: the record is lost. May release the
 * lock meanwhile. */
static struct buffer *room_locked(size_t bytes)
{
    struct outlet *outlet = outlet_locked();
    while (outlet && !current_locked(outlet, bytes)) {
        bool zero = !attributes[CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER].value;
        pthread_mutex_unlock(&lock);
        struct buffer *buffer = ask_for_buffer(zero);
        pthread_mutex_lock(&lock);
        if (!buffer)
            return NULL;
        if (outlet->current)
            put_waiting_locked(buffer); /* another thread has set a buffer: return this one empty */
        else
            outlet->current = buffer;
    }
    return outlet ? outlet->current : NULL;
}

static bool every(uint64_t n, uint64_t count)
{
    return n && count % n == 0;
}

#define VERSION_13_3 130300u

/* Before 13.3 an unrecorded copy or fill of a graph never releases its place in the device buffer (release
 * notes of 13.3); once the pool is used up, records have no times. With the fault "leak_all" recorded ones
 * leak too. */
static bool leaks_locked(const struct sim_activity *activity, CUpti_ActivityKind kind)
{
    static uint64_t leaked, copies;
    uint64_t places = sim_fault(SIM_FAULT_LEAK);
    bool is_copy = activity->kind == SIM_ACTIVITY_MEMCPY || activity->kind == SIM_ACTIVITY_MEMSET;
    if (!places)
        places = attributes[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE].value / 32;
    if (sim_cupti_version() < VERSION_13_3 && activity->graph && is_copy)
        leaked += kind == CUPTI_ACTIVITY_KIND_INVALID || every(sim_fault(SIM_FAULT_LEAK_ALL), ++copies);
    return leaked >= places * attributes[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT].value;
}

static void put_locked(struct buffer *buffer, const void *record, size_t bytes, uint64_t complete_ns)
{
    if (!buffer) {
        dropped++;
        return;
    }
    memcpy(buffer->bytes + buffer->used, record, bytes);
    buffer->used += bytes;
    buffer->records++;
    if (complete_ns > buffer->complete_ns)
        buffer->complete_ns = complete_ns;
}

static void store_locked(const struct sim_activity *activity, CUpti_ActivityKind kind, bool leaks,
                         bool without_times)
{
    static uint64_t count;
    uint8_t record[SIM_RECORD_MAX_BYTES];
    size_t bytes = sim_record_write(activity, kind, sim_cupti_version(), record);
    bool lose = every(sim_fault(SIM_FAULT_DROP), ++count);
    struct buffer *buffer = lose ? NULL : room_locked(bytes);
    if (leaks || without_times || every(sim_fault(SIM_FAULT_ZERO), count))
        sim_record_set_times(record, 0, 0);
    else if (every(sim_fault(SIM_FAULT_BACKWARDS), count))
        sim_record_set_times(record, activity->end_ns, activity->start_ns);
    if (buffer)
        buffer->is_incomplete |= without_times;
    put_locked(buffer, record, bytes, activity->end_ns);
}

/* ---- API calls, and external correlation ids ---- */

#define EXTERNAL_DEPTH 128

static _Thread_local struct external {
    uint64_t ids[EXTERNAL_DEPTH];
    size_t n;
} externals[CUPTI_EXTERNAL_CORRELATION_KIND_SIZE];
static _Thread_local uint32_t last_call; /* correlation id: one call per graph launch */
static uint64_t driver_calls[16];        /* bit set: calls recorded without kind DRIVER */

static CUpti_CallbackId call_of(const struct sim_activity *activity)
{
    return activity->graph                         ? CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch
           : activity->kind == SIM_ACTIVITY_KERNEL ? CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel
           : activity->kind == SIM_ACTIVITY_MEMSET ? CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async
                                                   : CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync;
}

/* "When a CUPTI activity API record is created while within an external API region and
 * CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION is enabled, the activity API record will be preceded by a
 * CUpti_ActivityExternalCorrelation record for each CUpti_ExternalCorrelationKind." (cupti_activity.h) */
static void store_call_locked(const struct sim_activity *activity, uint64_t kinds)
{
    CUpti_CallbackId call = call_of(activity);
    bool is_wanted = kinds & KIND_BIT(CUPTI_ACTIVITY_KIND_DRIVER) || driver_calls[call / 64] >> call % 64 & 1;
    if (!is_wanted || last_call == activity->correlation)
        return;
    last_call = activity->correlation;
    for (int kind = 1; kinds & KIND_BIT(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) &&
                       kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE;
         kind++) {
        const struct external *e = &externals[kind];
        CUpti_ActivityExternalCorrelation record = {.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                                    .externalKind = (CUpti_ExternalCorrelationKind)kind,
                                                    .externalId = e->n ? e->ids[e->n - 1] : 0,
                                                    .correlationId = activity->correlation};
        if (e->n)
            put_locked(room_locked(sizeof record), &record, sizeof record, 0);
    }
    uint64_t now_ns = sim_cupti_now();
    CUpti_ActivityAPI record = {.kind = CUPTI_ACTIVITY_KIND_DRIVER,
                                .cbid = call,
                                .start = now_ns,
                                .end = now_ns,
                                .correlationId = activity->correlation};
    put_locked(room_locked(sizeof record), &record, sizeof record, now_ns);
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id)
{
    sim_cupti_enter(__func__);
    if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID || kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE ||
        externals[kind].n == EXTERNAL_DEPTH)
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    externals[kind].ids[externals[kind].n++] = id;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t *lastId)
{
    sim_cupti_enter(__func__);
    if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID || kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE)
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    if (externals[kind].n == 0)
        return sim_cupti_result(CUPTI_ERROR_QUEUE_EMPTY);
    uint64_t id = externals[kind].ids[--externals[kind].n];
    if (lastId)
        *lastId = id;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable)
{
    sim_cupti_enter(__func__);
    if (cbid >= 64 * sizeof driver_calls / sizeof *driver_calls)
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    pthread_mutex_lock(&lock);
    uint64_t bit = UINT64_C(1) << cbid % 64;
    driver_calls[cbid / 64] = enable ? driver_calls[cbid / 64] | bit : driver_calls[cbid / 64] & ~bit;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

/* Returns the kind of an activity's record; INVALID: the client has not enabled it. */
static CUpti_ActivityKind kind_of(const struct sim_activity *activity, uint64_t kinds)
{
    static const CUpti_ActivityKind by_activity[] = {
        [SIM_ACTIVITY_KERNEL] = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        [SIM_ACTIVITY_MEMCPY] = CUPTI_ACTIVITY_KIND_MEMCPY,
        [SIM_ACTIVITY_MEMSET] = CUPTI_ACTIVITY_KIND_MEMSET,
        [SIM_ACTIVITY_GRAPH] = CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
    };
    CUpti_ActivityKind kind = by_activity[activity->kind];
    bool whole_graphs = kinds & KIND_BIT(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    if (activity->graph && whole_graphs != (activity->kind == SIM_ACTIVITY_GRAPH))
        return CUPTI_ACTIVITY_KIND_INVALID;
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && !(kinds & KIND_BIT(kind)))
        kind = CUPTI_ACTIVITY_KIND_KERNEL;
    return kinds & KIND_BIT(kind) ? kind : CUPTI_ACTIVITY_KIND_INVALID;
}

void sim_cupti_activity(const struct sim_activity *activity, bool without_times)
{
    uint64_t kinds = atomic_load_explicit(&enabled_kinds, memory_order_relaxed);
    CUpti_ActivityKind kind = kind_of(activity, kinds);
    if (!kinds)
        return;
    pthread_mutex_lock(&lock);
    start_worker_locked();
    bool leaks = leaks_locked(activity, kind);
    if (request_buffer)
        store_call_locked(activity, kinds);
    if (request_buffer && kind != CUPTI_ACTIVITY_KIND_INVALID)
        store_locked(activity, kind, leaks, without_times);
    pthread_mutex_unlock(&lock);
}

/* ---- public ---- */

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc funcBufferRequested,
                                           CUpti_BuffersCallbackCompleteFunc funcBufferCompleted)
{
    CUptiResult fault = (CUptiResult)sim_fault(SIM_FAULT_REGISTER);
    sim_cupti_enter(__func__);
    if (!sim_cupti_has_device())
        return CUPTI_ERROR_UNKNOWN;
    if (fault || !funcBufferRequested || !funcBufferCompleted)
        return sim_cupti_result(fault ? fault : CUPTI_ERROR_INVALID_PARAMETER);
    pthread_mutex_lock(&lock);
    request_buffer = funcBufferRequested;
    return_buffer = funcBufferCompleted;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    CUptiResult fault = (CUptiResult)sim_fault(SIM_FAULT_ENABLE);
    sim_cupti_enter(__func__);
    if (fault)
        return sim_cupti_result(fault);
    if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT)
        return sim_cupti_result(CUPTI_ERROR_INVALID_KIND);
    if (!sim_cupti_has_device())
        return CUPTI_ERROR_UNKNOWN;
    if (!sim_record_bytes(kind, sim_cupti_version()))
        sim_log("activity kind %d is accepted and has no records", (int)kind);
    pthread_mutex_lock(&lock);
    if (!sim_fault(SIM_FAULT_LATE_WORKER))
        start_worker_locked();
    pthread_mutex_unlock(&lock);
    atomic_fetch_or(&enabled_kinds, KIND_BIT(kind));
    (void)usleep((useconds_t)sim_fault(SIM_FAULT_SLOW_ENABLE));
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    sim_cupti_enter(__func__);
    if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT)
        return sim_cupti_result(CUPTI_ERROR_INVALID_KIND);
    atomic_fetch_and(&enabled_kinds, ~KIND_BIT(kind));
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    sim_cupti_enter(__func__);
    if (!sim_cupti_has_device())
        return CUPTI_ERROR_UNKNOWN;
    (void)usleep((useconds_t)sim_fault(SIM_FAULT_SLOW_FLUSH));
    pthread_mutex_lock(&lock);
    bool registered = return_buffer != NULL;
    take_outlets_locked(flag & FORCED_FLUSH);
    pthread_mutex_unlock(&lock);
    if (!registered)
        return sim_cupti_result(CUPTI_ERROR_INVALID_OPERATION);
    return_waiting(flag & FORCED_FLUSH);
    pthread_mutex_lock(&lock);
    while (returning) /* a flush also waits for the buffers that the worker is returning */
        pthread_cond_wait(&returned, &lock);
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlush(CUcontext context, uint32_t streamId, uint32_t flag)
{
    (void)context;
    (void)streamId;
    return cuptiActivityFlushAll(flag);
}

CUptiResult cuptiActivityFlushPeriod(uint32_t time)
{
    sim_cupti_enter(__func__);
    pthread_mutex_lock(&lock);
    poll_ms = time ? time : POLL_MS;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t streamId, size_t *count)
{
    sim_cupti_enter(__func__);
    (void)context;
    (void)streamId;
    if (!count)
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    pthread_mutex_lock(&lock);
    *count = dropped;
    dropped = 0;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t validBufferSizeBytes, CUpti_Activity **record)
{
    CUpti_ActivityKind kind;
    sim_cupti_enter(__func__);
    if (!buffer || !record)
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    size_t at = 0;
    if (*record) {
        memcpy(&kind, *record, sizeof kind);
        at = (size_t)((uint8_t *)*record - buffer) + sim_record_bytes(kind, sim_cupti_version());
    }
    if (at + sizeof kind > validBufferSizeBytes)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    memcpy(&kind, buffer + at, sizeof kind);
    if (!sim_record_bytes(kind, sim_cupti_version()))
        return sim_cupti_result(CUPTI_ERROR_INVALID_KIND);
    *record = (CUpti_Activity *)(buffer + at);
    return CUPTI_SUCCESS;
}

/* Stops for cuptiFinalize: no more records; returns all buffers; resets callbacks and attributes. */
void sim_cupti_stop(void)
{
    atomic_store(&enabled_kinds, 0);
    cuptiActivityFlushAll(FORCED_FLUSH);
    pthread_mutex_lock(&lock);
    request_buffer = NULL;
    return_buffer = NULL;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        attributes[i].value = attributes[i].standard;
    pthread_mutex_unlock(&lock);
}
