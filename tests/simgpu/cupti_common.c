/*
 * The CUPTI double's basics: version, errors, the clock, the link to the driver, subscribers, ids of handles.
 *
 * Threads: any. A subscriber can get callbacks for launches, captures and the end of contexts; other
 * callbacks can be enabled but never happen.
 */
#include "cupti_double.h"

#include "env.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static _Thread_local CUptiResult last_error = CUPTI_SUCCESS;

CUptiResult sim_cupti_result(CUptiResult result)
{
    if (result != CUPTI_SUCCESS)
        last_error = result;
    return result;
}

uint32_t sim_cupti_version(void)
{
    uint64_t told = sim_env()->cupti_version;
    return told ? (uint32_t)told : sim_cupti_built_version;
}

/* ---- the end ---- */

static _Atomic bool torn_down;

static void tear_down(void)
{
    atomic_store(&torn_down, true);
}

bool sim_cupti_is_torn_down(void)
{
    return atomic_load(&torn_down);
}

static void register_handler(void)
{
    (void)atexit(tear_down);
}

__attribute__((constructor)) static void on_load(void)
{
    register_handler();
}

void sim_cupti_follow_context(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_handler);
}

void sim_cupti_enter(const char *function)
{
    if (!sim_cupti_is_torn_down())
        return;
    sim_complain("libcupti: %s after its exit handlers", function);
    abort();
}

static _Atomic int captures; /* streams in capture */

void sim_cupti_enter_uncaptured(const char *function)
{
    sim_cupti_enter(function);
    if (atomic_load(&captures) == 0)
        return;
    sim_complain("libcupti: %s while a stream is captured", function);
    abort();
}

/* ---- the driver ---- */

static void on_activity(const struct sim_activity *activity)
{
    if (sim_cupti_is_torn_down())
        return;
    struct sim_activity wait;
    bool is_measured = false;
    sim_cupti_follow_context();
    bool waits = sim_range_activity(activity, &wait, &is_measured);
    bool without_times = is_measured && !sim_fault(SIM_FAULT_RANGE_TIMES);
    if (waits)
        sim_cupti_activity(&wait, without_times);
    sim_cupti_activity(activity, without_times);
}

static void on_call(enum sim_call call, const struct sim_called *called, const CUresult *result);

static const struct sim_sink sink = {on_activity, on_call};
static const struct sim_driver *driver;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;

/* Loads the driver if the program has not done so, like the real library. */
static void find_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    sim_hook_function *hook = NULL;
    if (library)
        *(void **)&hook = dlsym(library, SIM_HOOK_SYMBOL);
    const struct sim_driver *found = hook ? hook(&sink) : NULL;
    if (found && found->version == SIM_HOOK_VERSION)
        driver = found;
    else
        sim_complain("libcupti: no simulated libcuda.so.1 in this process");
}

const struct sim_driver *sim_cupti_driver(void)
{
    pthread_once(&driver_once, find_driver);
    return driver;
}

bool sim_cupti_has_device(void)
{
    return sim_cupti_driver() && sim_cupti_driver()->has_devices();
}

uint64_t sim_cupti_now(void)
{
    const struct sim_driver *found = sim_cupti_driver();
    if (found)
        return found->now();
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* ---- version, time, errors ---- */

CUptiResult cuptiGetVersion(uint32_t *version)
{
    if (!version)
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    *version = sim_cupti_version();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
    if (!timestamp)
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    *timestamp = sim_cupti_now();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetLastError(void)
{
    CUptiResult result = last_error;
    last_error = CUPTI_SUCCESS;
    return result;
}

static const char *name_of(CUptiResult result)
{
    switch (result) {
#define X(name)                                                                                              \
    case name:                                                                                               \
        return #name;
#include "cupti_results.inc"
#undef X
    default:
        return NULL;
    }
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **str)
{
    if (!str)
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    *str = name_of(result);
    return *str ? CUPTI_SUCCESS : sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
}

CUptiResult cuptiGetErrorMessage(CUptiResult result, const char **str)
{
    return cuptiGetResultString(result, str);
}

/* ---- subscribers: one per process ---- */

#define DOMAINS   8
#define CALLBACKS 1024

static _Atomic int subscribed;
static CUpti_CallbackFunc subscriber_callback; /* set before callbacks are enabled */
static void *subscriber_data;
static _Atomic bool chosen[DOMAINS][CALLBACKS];

static void call_back(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
    if (atomic_load(&subscribed) && atomic_load(&chosen[domain][id]) && subscriber_callback)
        subscriber_callback(subscriber_data, domain, id, data);
}

/* Counts the streams in capture. */
static void note_capture(enum sim_call call, const struct sim_called *called)
{
    if (call == SIM_CALL_CAPTURE_BEGIN)
        atomic_fetch_add(&captures, 1);
    if (call == SIM_CALL_CAPTURE_END || (call == SIM_CALL_STREAM_DESTROY && called->ends_capture))
        atomic_fetch_sub(&captures, 1);
}

/* As CUPTI: the context of the data is the thread's current one, whatever the stream's is. Parameters are
 * those of the calls that name a stream alone. */
static void report_call(enum sim_call call, const struct sim_called *called, const CUresult *result)
{
    static const CUpti_CallbackId ids[] = {
        [SIM_CALL_LAUNCH] = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
        [SIM_CALL_GRAPH] = CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
        [SIM_CALL_CAPTURE_BEGIN] = CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2,
        [SIM_CALL_CAPTURE_END] = CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture,
        [SIM_CALL_STREAM_DESTROY] = CUPTI_DRIVER_TRACE_CBID_cuStreamDestroy_v2,
    };
    const struct {
        CUstream stream;
        uint64_t others[2]; /* of a capture: mode, or where the graph goes; unknown here */
    } parameters = {.stream = called->stream};
    bool has_parameters = call != SIM_CALL_LAUNCH && call != SIM_CALL_GRAPH;
    CUresult returned = result ? *result : CUDA_SUCCESS;
    CUpti_CallbackData data = {.callbackSite = result ? CUPTI_API_EXIT : CUPTI_API_ENTER,
                               .functionReturnValue = result ? &returned : NULL,
                               .functionParams = has_parameters ? &parameters : NULL,
                               .context = called->current,
                               .correlationId = called->correlation};
    if (called->current)
        (void)cuptiGetContextId(called->current, &data.contextUid);
    call_back(CUPTI_CB_DOMAIN_DRIVER_API, ids[call], &data);
}

static void on_call(enum sim_call call, const struct sim_called *called, const CUresult *result)
{
    bool is_launch = call == SIM_CALL_LAUNCH || call == SIM_CALL_GRAPH;
    if (call == SIM_CALL_CONTEXT_END) {
        const CUpti_ResourceData data = {.context = called->context};
        call_back(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, &data);
        return;
    }
    if (result && *result == CUDA_SUCCESS)
        note_capture(call, called);
    if (!result && call == SIM_CALL_LAUNCH)
        sim_client_before_launch();
    report_call(call, called, result);
    if (is_launch && result)
        sim_range_after_launch();
    else if (is_launch)
        sim_range_before_launch(called->context);
}

static CUptiResult subscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *data)
{
    CUptiResult fault = (CUptiResult)sim_fault(SIM_FAULT_SUBSCRIBE);
    sim_cupti_enter("cuptiSubscribe");
    if (fault || !subscriber)
        return sim_cupti_result(fault ? fault : CUPTI_ERROR_INVALID_PARAMETER);
    if (!sim_cupti_has_device())
        return CUPTI_ERROR_UNKNOWN;
    if (atomic_exchange(&subscribed, 1))
        return sim_cupti_result(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    subscriber_callback = callback;
    subscriber_data = data;
    *subscriber = (CUpti_SubscriberHandle)&subscribed;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *userdata)
{
    return subscribe(subscriber, callback, userdata);
}

CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *pSubscriber, CUpti_CallbackFunc callback,
                              void *pUserData, CUpti_SubscriberParams *pParams)
{
    (void)pParams;
    return subscribe(pSubscriber, callback, pUserData);
}

static CUptiResult check_subscriber(CUpti_SubscriberHandle subscriber)
{
    bool good = subscriber == (CUpti_SubscriberHandle)&subscribed && atomic_load(&subscribed);
    return good ? CUPTI_SUCCESS : sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
    sim_cupti_enter(__func__);
    CUptiResult result = check_subscriber(subscriber);
    if (!result)
        atomic_store(&subscribed, 0);
    return result;
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
    sim_cupti_enter(__func__);
    CUptiResult result = check_subscriber(subscriber);
    if (result)
        return result;
    if ((unsigned)domain >= DOMAINS || cbid >= CALLBACKS)
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    atomic_store(&chosen[domain][cbid], enable != 0);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain)
{
    (void)enable;
    (void)domain;
    return check_subscriber(subscriber);
}

CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber)
{
    (void)enable;
    return check_subscriber(subscriber);
}

/* ---- ids of handles ---- */

CUptiResult cuptiGetContextId(CUcontext context, uint32_t *contextId)
{
    const struct sim_driver *found = sim_cupti_driver();
    uint32_t device;
    if (!found || !contextId)
        return sim_cupti_result(found ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_ERROR_UNKNOWN);
    return found->context_id(context, contextId, &device) ? CUPTI_SUCCESS
                                                          : sim_cupti_result(CUPTI_ERROR_INVALID_CONTEXT);
}

CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *deviceId)
{
    const struct sim_driver *found = sim_cupti_driver();
    uint32_t id;
    if (!found || !deviceId)
        return sim_cupti_result(found ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_ERROR_UNKNOWN);
    return found->context_id(context, &id, deviceId) ? CUPTI_SUCCESS
                                                     : sim_cupti_result(CUPTI_ERROR_INVALID_CONTEXT);
}

CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t perThreadStream,
                               uint32_t *streamId)
{
    const struct sim_driver *found = sim_cupti_driver();
    if (!found || !streamId)
        return sim_cupti_result(found ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_ERROR_UNKNOWN);
    if (!stream && perThreadStream)
        stream = CU_STREAM_PER_THREAD;
    return found->stream_id(context, stream, streamId) ? CUPTI_SUCCESS
                                                       : sim_cupti_result(CUPTI_ERROR_INVALID_STREAM);
}

CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *streamId)
{
    return cuptiGetStreamIdEx(context, stream, 0, streamId);
}

CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t *pId)
{
    const struct sim_driver *found = sim_cupti_driver();
    bool known = found && pId && found->graph_id(graph, pId);
    return known ? CUPTI_SUCCESS : sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
}

CUptiResult cuptiGetGraphExecId(CUgraphExec graphExec, uint32_t *pId)
{
    const struct sim_driver *found = sim_cupti_driver();
    bool known = found && pId && found->graph_id(graphExec, pId);
    return known ? CUPTI_SUCCESS : sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
}

CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t *nodeId)
{
    const struct sim_driver *found = sim_cupti_driver();
    bool known = found && nodeId && found->node_id(node, nodeId);
    return known ? CUPTI_SUCCESS : sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
}

CUptiResult cuptiFinalize(void)
{
    sim_cupti_stop();
    atomic_store(&subscribed, 0);
    return CUPTI_SUCCESS;
}
