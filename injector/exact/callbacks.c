/* See callbacks.h. Code that runs inside CUPTI's callbacks: recognises launches (launches.h) and counts the
 * streams being captured. */
#include "callbacks.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "driver_calls.h"
#include "launches.h"

/* CUresults after which a capture is over although its end failed. */
#define CAPTURE_INVALIDATED 901u /* CUDA_ERROR_STREAM_CAPTURE_INVALIDATED */
#define CAPTURE_UNJOINED    904u /* CUDA_ERROR_STREAM_CAPTURE_UNJOINED */

static const struct {
    uint32_t id;
    enum occ_driver_call call;
} calls[] = {
#define X(name, number, what) {number, OCC_CALL_##what},
    OCC_DRIVER_CALLS(X)};

/* True inside a callback: its calls of CUPTI may call the driver, which would call back again. */
static _Thread_local bool is_inside;

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

static void on_launch(struct occ_exact *e, const struct occ_callback_data *data, bool is_graph)
{
    if (data->site == OCC_CALLBACK_ENTER)
        occ_launch_begins(e, data, is_graph);
    else
        occ_launch_ends(e, result_of(data));
}

static void on_call(struct occ_exact *e, enum occ_driver_call call, const struct occ_callback_data *data)
{
    bool enters = data->site == OCC_CALLBACK_ENTER;
    switch (call) {
    case OCC_CALL_STRAY:
        on_launch(e, data, true);
        occ_exact_stray(e, enters);
        break;
    case OCC_CALL_LAUNCH:
    case OCC_CALL_GRAPH:
        on_launch(e, data, call == OCC_CALL_GRAPH);
        break;
    case OCC_CALL_BEGIN: /* counted before the capture begins: no session changes from then on */
        if (enters)
            occ_capture_begins(e, data);
        else if (e->captures > 0 && result_of(data) != 0)
            e->captures--;
        break;
    case OCC_CALL_END:
        if (!enters && e->captures > 0 && capture_is_over(result_of(data)))
            e->captures--;
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

/* Disables cancellation: a thread cancelled in here would never release `lock`. */
static void on_callback(void *user_data, uint32_t domain, uint32_t id, const void *data)
{
    struct occ_exact *e = user_data;
    int saved = errno, cancel;
    if (is_inside || !data || !atomic_load(&e->is_on) || occ_exact_is_stopped(e) || getpid() != e->pid)
        return;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    is_inside = true;
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
    if (subscribe(exact)) {
        atomic_store(&exact->is_on, true);
        return true;
    }
    if (exact->subscriber)
        (void)exact->call.unsubscribe(exact->subscriber);
    return false;
}

void occ_exact_end_all(struct occ_exact *exact, long patience_ns)
{
    is_inside = true;
    occ_exact_end_sessions(exact, patience_ns);
    is_inside = false;
}
