/* See callbacks.h. What runs inside CUPTI's callbacks: which context a launch is in, when its sessions begin
 * and end, and which streams are being captured. */
#include "callbacks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver_calls.h"

/* Fewer than an image holds: launches that other threads have begun are still counted in it. */
#define SESSION_LAUNCHES (OCC_SESSION_MAX_RANGES - 128u)

#define SECOND_NS   1000000000L
#define PATIENCE_NS 500000000L

/* CUresults after which a capture is over as well, with nothing left to break. */
#define CAPTURE_INVALIDATED 901u /* CUDA_ERROR_STREAM_CAPTURE_INVALIDATED */
#define CAPTURE_UNJOINED    904u /* CUDA_ERROR_STREAM_CAPTURE_UNJOINED */

static const struct {
    uint32_t id;
    enum occ_driver_call call;
} calls[] = {
#define X(name, number, what) {number, OCC_CALL_##what},
    OCC_DRIVER_CALLS(X)};

/* Calls of CUPTI inside a callback may call the driver, and so be called back again. */
static _Thread_local bool is_inside;

/* The context of this thread's launch, and how many launches are nested in each other. A launch inside
 * another one neither begins nor ends a session: the one around it is in the middle of a session. */
static _Thread_local struct {
    const struct occ_exact *exact; /* whose callbacks counted `depth` */
    struct occ_exact_context *context;
    uint32_t depth;
} launching;

static struct occ_exact_context *find_context(struct occ_exact *e, void *context)
{
    for (uint32_t i = 0; i < OCC_EXACT_MAX_CONTEXTS; i++)
        if (e->contexts[i].state != OCC_EXACT_FREE && e->contexts[i].context == context &&
            !e->contexts[i].is_gone)
            return &e->contexts[i];
    return NULL;
}

/* CLOCK_MONOTONIC: a moment from now, less than a second. */
static struct timespec after(long ns)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += ns;
    t.tv_sec += t.tv_nsec / SECOND_NS;
    t.tv_nsec %= SECOND_NS;
    return t;
}

/* No session may begin or end: a stream is captured, or measuring has ended. Valid while `lock` is held. */
static bool must_not_touch(const struct occ_exact *e)
{
    return e->captures > 0 || !atomic_load(&e->is_on);
}

/* Waits until no launch is in flight: one that another thread is in the middle of would be in neither
 * session. New launches wait meanwhile, since the context is claimed. The wait is bounded, since a launch may
 * itself wait for something, and its callback may be lost. Releases the lock while it waits. */
static void wait_for_others(struct occ_exact *e, struct occ_exact_context *c)
{
    struct timespec until = after(PATIENCE_NS);
    while (c->in_flight > 0 && !must_not_touch(e) &&
           pthread_cond_timedwait(&e->changed, &e->lock, &until) == 0)
        ;
    c->in_flight = 0; /* a launch that has not returned by now is not waited for again */
}

/* Waits at most so long until no thread has claimed the context; NULL: any context. False: one has still.
 * Releases the lock while it waits. */
static bool wait_for_claims(struct occ_exact *e, const struct occ_exact_context *c, long patience_ns)
{
    struct timespec until = after(patience_ns);
    for (;;) {
        bool is_claimed = false;
        for (uint32_t i = 0; i < OCC_EXACT_MAX_CONTEXTS; i++)
            is_claimed |= e->contexts[i].is_claimed && (!c || c == &e->contexts[i]);
        if (!is_claimed)
            return true;
        if (pthread_cond_timedwait(&e->changed, &e->lock, &until) != 0)
            return false;
    }
}

/* Claims the context and releases the lock: CUPTI may be called for it. */
static void begin_calls(struct occ_exact *e, struct occ_exact_context *c)
{
    c->is_claimed = true;
    (void)pthread_mutex_unlock(&e->lock);
}

static void end_calls(struct occ_exact *e, struct occ_exact_context *c)
{
    (void)pthread_mutex_lock(&e->lock);
    c->is_claimed = false;
    (void)pthread_cond_broadcast(&e->changed);
}

/* Once, or it would be new with every launch. */
static void report_full(struct occ_exact *e)
{
    if (e->is_full)
        return;
    e->is_full = e->problem_is_new = true;
    (void)snprintf(e->problem, sizeof e->problem,
                   "no exact values of all contexts: the program has more than %u at a time",
                   OCC_EXACT_MAX_CONTEXTS);
}

static struct occ_exact_context *add_context(struct occ_exact *e, const struct occ_callback_data *data)
{
    uint32_t i = 0;
    while (i < OCC_EXACT_MAX_CONTEXTS && e->contexts[i].state != OCC_EXACT_FREE)
        i++;
    if (i == OCC_EXACT_MAX_CONTEXTS) {
        report_full(e);
        return NULL;
    }
    struct occ_exact_context *c = &e->contexts[i];
    *c = (struct occ_exact_context){.state = OCC_EXACT_NEW, .context = data->context, .id = data->context_id};
    return c;
}

static bool must_end(const struct occ_exact_context *c, bool at_once)
{
    return c && c->state == OCC_EXACT_RUNNING && (at_once || c->is_graph || c->launches >= SESSION_LAUNCHES);
}

/* Measuring ends with the last context. */
static void end_without_contexts(struct occ_exact *e)
{
    bool is_used = false;
    for (uint32_t i = 0; i < OCC_EXACT_MAX_CONTEXTS; i++) {
        int state = e->contexts[i].state;
        is_used |= state == OCC_EXACT_NEW || state == OCC_EXACT_READY || state == OCC_EXACT_RUNNING;
    }
    if (!is_used)
        atomic_store(&e->is_on, false);
}

/* CUPTI's part: ends the session if it must, and leaves one running; or gives the context up. */
static void renew(struct occ_exact *e, struct occ_exact_context *c, bool ends, bool is_last)
{
    c->is_claimed = true;
    if (ends)
        wait_for_others(e, c);
    bool may_call = !must_not_touch(e);
    begin_calls(e, c);
    if (may_call && c->state == OCC_EXACT_NEW)
        occ_exact_prepare(e, c);
    if (may_call && ends)
        occ_exact_end_session(e, c);
    if (may_call && is_last)
        occ_exact_give_up(e, c);
    if (may_call && !is_last)
        occ_exact_start_session(e, c);
    end_calls(e, c);
}

/* The context of a launch, claimed by no thread; NULL: none, or it has been claimed for too long. */
static struct occ_exact_context *context_of(struct occ_exact *e, const struct occ_callback_data *data,
                                            bool is_last)
{
    struct occ_exact_context *c = find_context(e, data->context);
    if (!c && !is_last)
        c = add_context(e, data);
    /* looked for again: it may have been destroyed meanwhile */
    return c && wait_for_claims(e, c, PATIENCE_NS) && find_context(e, data->context) == c ? c : NULL;
}

static void before_launch(struct occ_exact *e, const struct occ_callback_data *data, bool is_graph)
{
    bool is_last = atomic_load(&e->is_retired);
    if (must_not_touch(e) || !data->context)
        return;
    struct occ_exact_context *c = context_of(e, data, is_last);
    bool ends = must_end(c, is_graph || is_last);
    if (c && !must_not_touch(e) && (ends || is_last || c->state != OCC_EXACT_RUNNING))
        renew(e, c, ends, is_last);
    if (is_last)
        end_without_contexts(e);
    if (must_not_touch(e) || !c || c->state != OCC_EXACT_RUNNING)
        return;
    c->launches++;
    c->in_flight++;
    c->is_graph = is_graph;
    launching.context = c;
}

static void before_nested_launch(const struct occ_callback_data *data, bool is_graph)
{
    struct occ_exact_context *c = launching.context;
    if (!c || c->context != data->context)
        return;
    c->launches++;
    c->is_graph |= is_graph;
}

static void after_launch(struct occ_exact *e)
{
    if (launching.depth == 0 || --launching.depth > 0)
        return;
    struct occ_exact_context *c = launching.context;
    launching.context = NULL;
    if (c && c->in_flight > 0 && --c->in_flight == 0)
        (void)pthread_cond_broadcast(&e->changed);
}

static void context_destroyed(struct occ_exact *e, void *context)
{
    struct occ_exact_context *c = find_context(e, context);
    if (!c)
        return;
    if (!wait_for_claims(e, c, PATIENCE_NS)) {
        c->is_gone = true;
        return;
    }
    begin_calls(e, c);
    occ_exact_end_session(e, c);
    occ_exact_release(e, c);
    c->state = OCC_EXACT_FREE;
    end_calls(e, c);
}

/* The CUresult of a call that has returned. */
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

/* Sessions that are about to begin or end are over when the capture begins. */
static void before_capture(struct occ_exact *e)
{
    e->captures++;
    (void)pthread_cond_broadcast(&e->changed);
    (void)wait_for_claims(e, NULL, PATIENCE_NS);
}

static void on_call(struct occ_exact *e, enum occ_driver_call call, const struct occ_callback_data *data)
{
    bool enters = data->site == OCC_CALLBACK_ENTER;
    if (launching.exact != e) {
        launching.exact = e;
        launching.context = NULL;
        launching.depth = 0;
    }
    switch (call) {
    case OCC_CALL_LAUNCH:
    case OCC_CALL_GRAPH:
        if (!enters)
            after_launch(e);
        else if (launching.depth++ == 0)
            before_launch(e, data, call == OCC_CALL_GRAPH);
        else
            before_nested_launch(data, call == OCC_CALL_GRAPH);
        break;
    case OCC_CALL_BEGIN: /* counted before the driver begins it: nothing may touch it from then on */
        if (enters)
            before_capture(e);
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
    bool is_on = atomic_load(&e->is_on); /* again: measuring may have ended during the wait */
    if (is_on && domain == OCC_CALLBACK_RESOURCE)
        context_destroyed(e, ((const struct occ_callback_resource *)data)->context);
    for (size_t i = 0; is_on && domain == OCC_CALLBACK_DRIVER && i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].id == id)
            on_call(e, calls[i].call, data);
    (void)pthread_mutex_unlock(&e->lock);
}

/* A thread that is cancelled in here would never release `lock`. */
static void on_callback(void *user_data, uint32_t domain, uint32_t id, const void *data)
{
    struct occ_exact *e = user_data;
    int saved = errno, cancel;
    if (is_inside || !data || !atomic_load(&e->is_on) || getpid() != e->pid)
        return;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    is_inside = true;
    on_event(e, domain, id, data);
    is_inside = false;
    (void)pthread_setcancelstate(cancel, NULL);
    errno = saved;
}

/* ---- beginning and end ---- */

/* A call that this version of the library does not know is not made either. */
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
    struct occ_exact *e = exact;
    is_inside = true;
    (void)pthread_cond_broadcast(&e->changed); /* there is nothing left to wait for */
    (void)wait_for_claims(e, NULL, patience_ns);
    for (uint32_t i = 0; i < OCC_EXACT_MAX_CONTEXTS; i++) {
        struct occ_exact_context *c = &e->contexts[i];
        if (c->is_claimed)
            continue;
        begin_calls(e, c);
        occ_exact_end_session(e, c);
        end_calls(e, c);
    }
    is_inside = false;
}
