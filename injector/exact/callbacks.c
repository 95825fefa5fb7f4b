/* See callbacks.h. Code that runs inside CUPTI's callbacks: recognises launches (launches.h) and counts the
 * streams being captured. */
#include "callbacks.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "claims.h"
#include "driver_calls.h"
#include "endings.h"
#include "launches.h"

/* CUresults after which a capture is over although its end failed. */
#define CAPTURE_INVALIDATED 901u /* CUDA_ERROR_STREAM_CAPTURE_INVALIDATED */
#define CAPTURE_UNJOINED    904u /* CUDA_ERROR_STREAM_CAPTURE_UNJOINED */

/* Handles of default streams: NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD. */
#define LAST_DEFAULT_STREAM 2u

static const struct {
    uint32_t id;
    enum occ_driver_call call;
} calls[] = {
#define X(name, number, what) {number, OCC_CALL_##what},
    OCC_DRIVER_CALLS(X)};

/* True inside a callback: its calls of CUPTI may call the driver, which would call back again. */
static _Thread_local bool is_inside;

/* A call of this thread that begins or ends a capture and has not returned. */
static _Thread_local struct {
    struct occ_capture_stream beginning; /* valid if is_beginning */
    bool is_beginning;
    uint64_t ending; /* serial of the capture that ends with the call; 0: none */
} capturing;

/* Returns the CUresult of a call that has returned. */
static uint32_t result_of(const struct occ_callback_data *data)
{
    uint32_t result = UINT32_MAX;
    if (data->function_result)
        memcpy(&result, data->function_result, sizeof result);
    return result;
}

static bool capture_is_over(uint32_t result)
{
    return result == 0 || result == CAPTURE_INVALIDATED || result == CAPTURE_UNJOINED;
}

/* Returns the stream of a call whose first parameter is the stream; the test of CUPTI's binary interface
 * checks that. */
static struct occ_capture_stream stream_of(const struct occ_callback_data *data)
{
    struct occ_capture_stream of = {.context = data->context};
    uintptr_t handle;
    if (!data->function_parameters)
        return of;
    memcpy(&handle, data->function_parameters, sizeof handle);
    if (handle > LAST_DEFAULT_STREAM)
        of.stream = (const void *)handle;
    else
        of.thread = &is_inside;
    return of;
}

static void on_capture(struct occ_exact *e, const struct occ_callback_data *data)
{
    if (data->site == OCC_CALLBACK_ENTER) {
        capturing.beginning = stream_of(data);
        capturing.is_beginning = true;
        occ_capture_begins(e, &capturing.beginning);
    } else if (capturing.is_beginning) {
        capturing.is_beginning = false;
        occ_captures_begin(&e->captures, &capturing.beginning, result_of(data) == 0);
    }
}

/* is_destroyed: the call destroys the stream. */
static void on_capture_end(struct occ_exact *e, const struct occ_callback_data *data, bool is_destroyed)
{
    struct occ_capture_stream of = stream_of(data);
    if (data->site == OCC_CALLBACK_ENTER)
        capturing.ending = occ_captures_find(&e->captures, &of, !is_destroyed);
    else if (is_destroyed ? result_of(data) == 0 : capture_is_over(result_of(data)))
        occ_captures_end(&e->captures, capturing.ending);
}

static void on_launch(struct occ_exact *e, const struct occ_callback_data *data, bool is_graph)
{
    if (data->site == OCC_CALLBACK_ENTER)
        occ_launch_begins(e, data, is_graph);
    else
        occ_launch_ends(e, result_of(data));
}

static void on_call(struct occ_exact *e, enum occ_driver_call call, const struct occ_callback_data *data)
{
    switch (call) {
    case OCC_CALL_STRAY:
        on_launch(e, data, true);
        occ_launch_in_several(e, data->site == OCC_CALLBACK_ENTER);
        break;
    case OCC_CALL_LAUNCH:
    case OCC_CALL_GRAPH:
        on_launch(e, data, call == OCC_CALL_GRAPH);
        break;
    case OCC_CALL_BEGIN: /* counted before the capture begins: no session changes from then on */
        on_capture(e, data);
        break;
    case OCC_CALL_END:
    case OCC_CALL_DESTROY:
        on_capture_end(e, data, call == OCC_CALL_DESTROY);
        break;
    }
}

static void on_event(struct occ_exact *e, uint32_t domain, uint32_t id, const void *data)
{
    (void)pthread_mutex_lock(&e->lock);
    /* checked again: measuring may have ended while this thread waited for the lock */
    bool is_on = atomic_load(&e->is_on) && !occ_exact_is_stopped(e);
    if (is_on && domain == OCC_CALLBACK_RESOURCE)
        occ_exact_context_destroyed(e, ((const struct occ_callback_resource *)data)->context);
    for (size_t i = 0; is_on && domain == OCC_CALLBACK_DRIVER && i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].id == id)
            on_call(e, calls[i].call, data);
    (void)pthread_mutex_unlock(&e->lock);
}

/* ---- ends of threads ---- */

static bool is_off(const struct occ_exact *e)
{
    return !atomic_load(&e->is_on) || occ_exact_is_stopped(e) || getpid() != e->pid;
}

/* Ends a thread's calls: a thread that was cancelled inside a call never returns from it. Runs in the thread.
 */
static void on_thread_end(void *run)
{
    struct occ_exact *e = run;
    if (is_off(e))
        return;
    (void)pthread_mutex_lock(&e->lock);
    occ_launch_thread_ended(e);
    if (capturing.is_beginning) /* unknown whether the capture has begun: assume that it has */
        occ_captures_begin(&e->captures, &capturing.beginning, true);
    capturing.is_beginning = false;
    occ_captures_end_thread(&e->captures, &is_inside);
    (void)pthread_cond_broadcast(&e->changed);
    (void)pthread_mutex_unlock(&e->lock);
}

/* Has the thread's end reported. The first time in a thread, pthread_setspecific() may allocate memory if the
 * program has many keys; without memory the end is not reported. */
static void watch_thread(struct occ_exact *e)
{
    if (e->has_key && !pthread_getspecific(e->key))
        (void)pthread_setspecific(e->key, e);
}

/* ---- the callback ---- */

/* Disables cancellation: a thread cancelled in here would never release `lock`. */
static void on_callback(void *user_data, uint32_t domain, uint32_t id, const void *data)
{
    struct occ_exact *e = user_data;
    int saved = errno, cancel;
    if (is_inside || !data || is_off(e))
        return;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    is_inside = true;
    watch_thread(e);
    on_event(e, domain, id, data);
    is_inside = false;
    (void)pthread_setcancelstate(cancel, NULL);
    errno = saved;
}

/* ---- beginning and end ---- */

/* Subscribes to all calls of the table. Ignores refusals of single calls: programs are assumed not to make
 * calls that this libcupti does not know. */
static bool subscribe(struct occ_exact *e)
{
    uint32_t result = e->call.subscribe(&e->subscriber, on_callback, e);
    if (result != OCC_CUPTI_SUCCESS) {
        occ_exact_fail(e, "callbacks", result);
        return false;
    }
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        (void)e->call.enable_callback(1, e->subscriber, OCC_CALLBACK_DRIVER, calls[i].id);
    result = e->call.enable_callback(1, e->subscriber, OCC_CALLBACK_RESOURCE,
                                     OCC_RESOURCE_CONTEXT_DESTROY_STARTING);
    if (result != OCC_CUPTI_SUCCESS)
        occ_exact_fail(e, "callbacks", result);
    return result == OCC_CUPTI_SUCCESS;
}

bool occ_exact_watch(struct occ_exact *exact)
{
    exact->has_key = pthread_key_create(&exact->key, on_thread_end) == 0;
    if (subscribe(exact)) {
        atomic_store(&exact->is_on, true);
        return true;
    }
    if (exact->subscriber)
        (void)exact->call.unsubscribe(exact->subscriber);
    if (exact->has_key)
        (void)pthread_key_delete(exact->key);
    exact->has_key = false;
    return false;
}

bool occ_exact_end_all(struct occ_exact *exact)
{
    is_inside = true;
    bool has_lock = occ_exact_end_sessions(exact);
    is_inside = false;
    return has_lock;
}
