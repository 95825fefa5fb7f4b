/*
 * Streams, events and host functions.
 *
 * A stream stores the end time of its submitted work; an event stores such a time. Host
 * functions run in one thread of the driver, in the order of their due times, when their stream reaches
 * them. Threads: any; the host-function thread starts with the first host function and blocks all signals.
 */
#include "driver.h"

#include "clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

/* ---- streams ---- */

struct sim_stream *sim_stream_new_locked(struct sim_context *context, unsigned flags, int priority)
{
    struct sim_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->type = SIM_STREAM;
    stream->context = context;
    stream->id = context->next_stream_id++;
    stream->flags = flags;
    stream->priority = priority;
    stream->next = context->streams;
    context->streams = stream;
    return stream;
}

static void stream_free_locked(struct sim_stream *stream)
{
    struct sim_stream **link = &stream->context->streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    sim_nodes_clear(&stream->tail);
    stream->type = 0;
    free(stream);
}

void sim_streams_free_locked(struct sim_context *context)
{
    while (context->streams)
        stream_free_locked(context->streams);
}

/* Returns the calling thread's own default stream of a context. */
static struct sim_stream *thread_stream_locked(struct sim_context *context)
{
    uint64_t self = (uint64_t)pthread_self();
    for (struct sim_stream *s = context->streams; s; s = s->next) {
        if (s->owner_thread == self)
            return s;
    }
    struct sim_stream *stream = sim_stream_new_locked(context, CU_STREAM_DEFAULT, 0);
    if (stream)
        stream->owner_thread = self;
    return stream;
}

CUresult sim_stream_of(CUstream handle, struct sim_stream **ret)
{
    struct sim_context *context;
    CUresult result = sim_initialized();
    if (result)
        return result;
    if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
        *ret = sim_handle(handle, SIM_STREAM);
        return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    }
    result = sim_current(&context);
    if (result)
        return result;
    if (handle != CU_STREAM_PER_THREAD) {
        *ret = context->legacy;
        return CUDA_SUCCESS;
    }
    sim_lock();
    *ret = thread_stream_locked(context);
    sim_unlock();
    return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The legacy stream waits for all blocking streams, and these wait for it. */
uint64_t sim_stream_ready_locked(const struct sim_stream *stream)
{
    const struct sim_stream *legacy = stream->context->legacy;
    uint64_t ready = stream->ready_ns;
    if (stream->flags & CU_STREAM_NON_BLOCKING)
        return ready;
    if (stream != legacy)
        return legacy->ready_ns > ready ? legacy->ready_ns : ready;
    for (const struct sim_stream *s = stream->context->streams; s; s = s->next) {
        if (!(s->flags & CU_STREAM_NON_BLOCKING) && s->ready_ns > ready)
            ready = s->ready_ns;
    }
    return ready;
}

CUresult sim_stream_wait(struct sim_stream *stream)
{
    sim_lock();
    if (stream->capture) {
        sim_unlock();
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    uint64_t ready = sim_stream_ready_locked(stream);
    sim_unlock();
    sim_clock_wait_until(ready);
    sim_lock();
    while (stream->host_functions)
        sim_wait_locked();
    sim_unlock();
    return CUDA_SUCCESS;
}

static unsigned host_functions_locked(const struct sim_context *context)
{
    unsigned count = 0;
    for (const struct sim_stream *s = context->streams; s; s = s->next)
        count += s->host_functions;
    return count;
}

CUresult sim_context_wait(struct sim_context *context)
{
    uint64_t ready = 0;
    sim_lock();
    for (const struct sim_stream *s = context->streams; s; s = s->next)
        ready = s->ready_ns > ready ? s->ready_ns : ready;
    sim_unlock();
    sim_clock_wait_until(ready);
    sim_lock();
    while (host_functions_locked(context))
        sim_wait_locked();
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    struct sim_context *context;
    CUresult result = sim_current(&context);
    if (result)
        return result;
    if (!phStream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    *phStream = (CUstream)sim_stream_new_locked(context, flags, priority);
    sim_unlock();
    return *phStream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    return cuStreamCreateWithPriority(phStream, Flags, 0);
}

/* Destroys a stream after its host functions; its other work still completes in device time. */
CUresult cuStreamDestroy(CUstream hStream)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    struct sim_stream *stream = sim_handle(hStream, SIM_STREAM);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    const struct sim_called called = {
        .context = (CUcontext)stream->context, .stream = hStream, .ends_capture = stream->capture_origin};
    sim_tell_call(SIM_CALL_STREAM_DESTROY, &called, NULL);
    sim_lock();
    while (stream->host_functions)
        sim_wait_locked();
    struct sim_stream *legacy = stream->context->legacy;
    if (!(stream->flags & CU_STREAM_NON_BLOCKING) && stream->ready_ns > legacy->ready_ns)
        legacy->ready_ns = stream->ready_ns;
    stream_free_locked(stream);
    sim_unlock();
    sim_tell_call(SIM_CALL_STREAM_DESTROY, &called, &result);
    return CUDA_SUCCESS;
}

/* ---- events ---- */

static CUresult event_of(CUevent handle, struct sim_event **ret)
{
    CUresult result = sim_initialized();
    if (result)
        return result;
    *ret = sim_handle(handle, SIM_EVENT);
    return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    struct sim_context *context;
    CUresult result = sim_current(&context);
    if (result)
        return result;
    struct sim_event *event = phEvent ? calloc(1, sizeof *event) : NULL;
    if (!event)
        return phEvent ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    *event = (struct sim_event){.type = SIM_EVENT, .context = context, .flags = Flags};
    *phEvent = (CUevent)event;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent hEvent)
{
    struct sim_event *event;
    CUresult result = event_of(hEvent, &event);
    if (result)
        return result;
    sim_nodes_clear(&event->tail);
    event->type = 0;
    free(event);
    return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent hEvent)
{
    struct sim_event *event;
    CUresult result = event_of(hEvent, &event);
    if (result)
        return result;
    sim_clock_spend(200);
    sim_lock();
    uint64_t time_ns = event->time_ns;
    sim_unlock();
    return time_ns <= sim_clock_now() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent hEvent)
{
    struct sim_event *event;
    CUresult result = event_of(hEvent, &event);
    if (result)
        return result;
    sim_lock();
    uint64_t time_ns = event->time_ns;
    sim_unlock();
    sim_clock_wait_until(time_ns);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    struct sim_event *start, *end;
    CUresult result = event_of(hStart, &start);
    if (!result)
        result = event_of(hEnd, &end);
    if (result)
        return result;
    if (!pMilliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    bool usable =
        start->recorded && end->recorded && !((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING);
    int64_t ns = (int64_t)(end->time_ns - start->time_ns);
    uint64_t last = end->time_ns > start->time_ns ? end->time_ns : start->time_ns;
    sim_unlock();
    if (!usable)
        return CUDA_ERROR_INVALID_HANDLE;
    *pMilliseconds = (float)((double)ns / 1e6);
    return last <= sim_clock_now() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* ---- host functions ---- */

struct host_item {
    struct host_item *next;
    struct sim_host_call call;
    struct sim_stream *stream;
    uint64_t due_ns;
};

static struct host_item *host_queue; /* by due_ns; sim_lock */

static void run_host_item(const struct host_item *item)
{
    if (item->call.function)
        item->call.function(item->call.data);
    else
        item->call.callback(item->call.handle, CUDA_SUCCESS, item->call.data);
}

static void *host_thread(void *unused)
{
    (void)unused;
    sim_lock();
    for (;;) {
        while (!host_queue)
            sim_wait_locked();
        struct host_item *item = host_queue;
        host_queue = item->next;
        sim_unlock();
        sim_clock_wait_until(item->due_ns);
        run_host_item(item);
        sim_lock();
        item->stream->host_functions--;
        sim_wake_all();
        free(item);
    }
    return NULL;
}

static bool host_thread_start(void)
{
    static bool started;
    if (started)
        return true;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&thread, NULL, host_thread, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

CUresult sim_host_call_locked(struct sim_stream *stream, const struct sim_host_call *call, uint64_t due_ns)
{
    struct host_item *item = malloc(sizeof *item);
    if (!item || !host_thread_start()) {
        free(item);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *item = (struct host_item){NULL, *call, stream, due_ns};
    struct host_item **link = &host_queue;
    while (*link && (*link)->due_ns <= due_ns)
        link = &(*link)->next;
    item->next = *link;
    *link = item;
    stream->host_functions++;
    sim_wake_all();
    return CUDA_SUCCESS;
}
