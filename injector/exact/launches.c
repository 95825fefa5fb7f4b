/* See launches.h. */
#include "launches.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Fewer than an image holds: launches that other threads have begun are still counted in it. */
#define SESSION_LAUNCHES (OCC_SESSION_MAX_RANGES - 128u)

#define SECOND_NS 1000000000L

#define NO_CALL UINT32_MAX

void occ_exact_stray(struct occ_exact *e, bool begins)
{
    if (begins) {
        (void)atomic_fetch_add(&e->strays, 1);
        (void)atomic_fetch_add(&e->open_strays, 1);
    } else if (atomic_load(&e->open_strays) > 0) {
        (void)atomic_fetch_sub(&e->open_strays, 1);
    }
}

/* This thread's launch, and how many launches are nested in each other. A launch inside another one neither
 * begins nor ends a session: the one around it is in the middle of a session. */
static _Thread_local struct {
    const struct occ_exact *exact; /* whose callbacks counted `depth` */
    struct occ_exact_context *context;
    uint64_t serial; /* the context's when it was called */
    uint32_t call;   /* in the session, or NO_CALL */
    bool is_stray;   /* it could be a range of any session */
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

/* No session may begin or end: a stream is captured, or measuring has ended, or CUPTI. own_captures: of the
 * calling thread, that have not begun yet. Valid while `lock` is held. */
static bool must_not_touch(const struct occ_exact *e, uint32_t own_captures)
{
    return e->captures > own_captures || !atomic_load(&e->is_on) || occ_exact_is_stopped(e);
}

/* Waits until no launch is in flight: one that another thread is in the middle of would be in neither
 * session. New launches wait meanwhile, since the context is claimed. The wait is bounded, since a launch may
 * itself wait for something, and its callback may be lost. Releases the lock while it waits. */
static void wait_for_others(struct occ_exact *e, struct occ_exact_context *c, uint32_t own_captures)
{
    struct timespec until = after(OCC_EXACT_PATIENCE_NS);
    while (c->in_flight > 0 && !must_not_touch(e, own_captures) &&
           pthread_cond_timedwait(&e->changed, &e->lock, &until) == 0)
        ;
}

/* Waits at most so long until no thread has claimed the context; NULL: any context. False: one has still.
 * Releases the lock while it waits. */
bool occ_exact_wait_for_claims(struct occ_exact *e, const struct occ_exact_context *c, long patience_ns)
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

/* No call of before this is written into the context's session any more, and a launch that has not returned
 * is not waited for again: its range may be one of the sessions that begin until it does. */
static void renew_serial(struct occ_exact *e, struct occ_exact_context *c)
{
    c->serial = ++e->serials;
    (void)atomic_fetch_add(&e->open_strays, c->in_flight);
    c->in_flight = 0;
    c->is_crowded = false;
}

/* Claims the context and releases the lock: CUPTI may be called for it. */
static void begin_calls(struct occ_exact *e, struct occ_exact_context *c)
{
    c->is_claimed = true;
    renew_serial(e, c);
    (void)pthread_mutex_unlock(&e->lock);
}

static void end_claim(struct occ_exact *e, struct occ_exact_context *c)
{
    c->is_claimed = false;
    (void)pthread_cond_broadcast(&e->changed);
}

static void end_calls(struct occ_exact *e, struct occ_exact_context *c)
{
    (void)pthread_mutex_lock(&e->lock);
    end_claim(e, c);
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
    *c = (struct occ_exact_context){.state = OCC_EXACT_NEW, .context = data->context, .serial = ++e->serials};
    return c;
}

static bool must_end(const struct occ_exact_context *c, bool at_once)
{
    return c && c->state == OCC_EXACT_RUNNING &&
           (at_once || c->is_graph || c->launches >= SESSION_LAUNCHES ||
            occ_exact_clock_ns(CLOCK_MONOTONIC) >= c->until_ns);
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

/* Each step may last: since the one before, a capture may have begun that did not wait any longer. */
static bool may_go_on(struct occ_exact *e)
{
    (void)pthread_mutex_lock(&e->lock);
    bool may = !must_not_touch(e, 0);
    (void)pthread_mutex_unlock(&e->lock);
    return may;
}

/* CUPTI's part: ends the session if it must, and leaves one running for a kernel; or gives the context up. A
 * context that is new has none to end. */
static void take_steps(struct occ_exact *e, struct occ_exact_context *c, bool ends, bool begins)
{
    bool is_last = atomic_load(&e->is_retired);
    if (c->state == OCC_EXACT_NEW)
        occ_exact_prepare(e, c);
    if (ends)
        occ_exact_end_session(e, c);
    if (is_last && may_go_on(e))
        occ_exact_give_up(e, c);
    if (begins && !is_last && may_go_on(e))
        occ_exact_start_session(e, c);
}

static void renew(struct occ_exact *e, struct occ_exact_context *c, bool ends, bool begins)
{
    c->is_claimed = true;
    wait_for_others(e, c, 0);
    if (must_not_touch(e, 0)) { /* the session goes on, and the launches in flight belong to it */
        end_claim(e, c);
        return;
    }
    begin_calls(e, c);
    take_steps(e, c, ends, begins);
    end_calls(e, c);
}

/* The context of a launch, claimed by no thread; NULL: none, or it has been claimed for too long. */
static struct occ_exact_context *context_of(struct occ_exact *e, const struct occ_callback_data *data,
                                            bool may_add)
{
    struct occ_exact_context *c = find_context(e, data->context);
    if (!c && may_add)
        c = add_context(e, data);
    /* looked for again: it may have been destroyed meanwhile */
    return c && occ_exact_wait_for_claims(e, c, OCC_EXACT_PATIENCE_NS) && find_context(e, data->context) == c
               ? c
               : NULL;
}

/* Waits until no other thread is inside a launch of the context, since nothing but the order of calls tells
 * ranges apart. A launch that lets nobody pass for so long is not waited for again. Releases the lock while
 * it waits. */
static void wait_for_turn(struct occ_exact *e, struct occ_exact_context *c)
{
    struct timespec until = after(OCC_EXACT_PATIENCE_NS);
    uint64_t turns = c->turns;
    bool is_late = false;
    while (!is_late && atomic_load(&e->is_on) && (c->is_claimed || (c->in_flight > 0 && !c->is_crowded)))
        is_late = pthread_cond_timedwait(&e->changed, &e->lock, &until) != 0;
    c->is_crowded |= is_late && c->turns == turns && !c->is_claimed;
}

/* Writes the call into the running session. A graph's launch is any number of ranges. */
static uint32_t write_call(const struct occ_exact *e, struct occ_exact_context *c,
                           const struct occ_callback_data *data, bool is_graph)
{
    struct occ_session *s = c->session;
    s->is_unpaired |= is_graph || c->in_flight > 0 || s->n == OCC_SESSION_MAX_RANGES;
    c->is_graph |= is_graph;
    c->launches++;
    if (is_graph || s->n == OCC_SESSION_MAX_RANGES)
        return NO_CALL;
    s->calls[s->n] = (struct occ_session_call){.start_ns = occ_exact_clock_ns(CLOCK_REALTIME),
                                               .correlation = data->correlation,
                                               .may_be_captured = e->captures > 0};
    return s->n++;
}

/* The launch happens now. c: NULL: its context was claimed for too long, or has no place. */
static void enter_launch(struct occ_exact *e, struct occ_exact_context *c,
                         const struct occ_callback_data *data, bool is_graph)
{
    launching.is_stray = !c || c->is_claimed || find_context(e, data->context) != c;
    launching.context = launching.is_stray || c->state == OCC_EXACT_FAILED ? NULL : c;
    launching.call = NO_CALL;
    if (launching.is_stray) {
        occ_exact_stray(e, true);
        return;
    }
    if (!launching.context)
        return;
    if (c->state == OCC_EXACT_RUNNING)
        launching.call = write_call(e, c, data, is_graph);
    launching.serial = c->serial;
    c->in_flight++;
    c->turns++;
}

static bool can_begin(const struct occ_exact_context *c)
{
    return c->state == OCC_EXACT_NEW || c->state == OCC_EXACT_READY;
}

static void begin_launch(struct occ_exact *e, const struct occ_callback_data *data, bool is_graph)
{
    bool is_last = atomic_load(&e->is_retired);
    if (!data->context)
        return;
    struct occ_exact_context *c = context_of(e, data, !is_last && !is_graph && !must_not_touch(e, 0));
    bool ends = must_end(c, is_graph || is_last);
    if (c && !must_not_touch(e, 0) &&
        (ends || (is_last && c->state != OCC_EXACT_FAILED) || (!is_graph && can_begin(c))))
        renew(e, c, ends, !is_graph);
    if (c && c->state == OCC_EXACT_RUNNING) /* that has just begun: no launch of it is in flight */
        wait_for_turn(e, c);
    if (is_last)
        end_without_contexts(e);
    if (atomic_load(&e->is_on) && (c || find_context(e, data->context)))
        enter_launch(e, c, data, is_graph);
}

/* Whether it is a range of its own is not known: if it is, the session has more ranges than calls. */
static void begin_nested_launch(const struct occ_callback_data *data, bool is_graph)
{
    struct occ_exact_context *c = launching.context;
    if (!c || c->context != data->context || c->serial != launching.serial || !c->session)
        return;
    c->launches++;
    c->is_graph |= is_graph;
    c->session->is_unpaired |= is_graph;
}

static void leave_launch(struct occ_exact *e, struct occ_exact_context *c, uint32_t result)
{
    if (c->serial != launching.serial) { /* renew_serial() has counted it */
        occ_exact_stray(e, false);
        return;
    }
    if (launching.call != NO_CALL) {
        struct occ_session_call *call = &c->session->calls[launching.call];
        call->has_returned = true;
        call->is_refused = result != 0;
    }
    if (c->in_flight > 0 && --c->in_flight == 0) {
        c->is_crowded = false;
        (void)pthread_cond_broadcast(&e->changed);
    }
}

/* Depths of another occ_exact mean nothing. */
static void start_counting(const struct occ_exact *e)
{
    if (launching.exact == e)
        return;
    launching.exact = e;
    launching.context = NULL;
    launching.is_stray = false;
    launching.depth = 0;
}

void occ_launch_begins(struct occ_exact *e, const struct occ_callback_data *data, bool is_graph)
{
    start_counting(e);
    if (launching.depth++ == 0)
        begin_launch(e, data, is_graph);
    else
        begin_nested_launch(data, is_graph);
}

void occ_launch_ends(struct occ_exact *e, uint32_t result)
{
    start_counting(e);
    if (launching.depth == 0 || --launching.depth > 0)
        return;
    if (launching.is_stray)
        occ_exact_stray(e, false);
    else if (launching.context)
        leave_launch(e, launching.context, result);
    launching.context = NULL;
    launching.is_stray = false;
}

void occ_capture_begins(struct occ_exact *e, const struct occ_callback_data *data)
{
    e->captures++;
    (void)pthread_cond_broadcast(&e->changed);
    bool is_alone = occ_exact_wait_for_claims(e, NULL, OCC_EXACT_PATIENCE_NS);
    struct occ_exact_context *c = find_context(e, data->context);
    if (!is_alone || !c || c->state != OCC_EXACT_RUNNING)
        return;
    c->is_claimed = true;
    wait_for_others(e, c, 1);
    if (must_not_touch(e, 1)) {
        end_claim(e, c);
        return;
    }
    begin_calls(e, c);
    occ_exact_end_session(e, c);
    end_calls(e, c);
}

void occ_exact_context_destroyed(struct occ_exact *e, void *context)
{
    struct occ_exact_context *c = find_context(e, context);
    if (!c)
        return;
    if (!occ_exact_wait_for_claims(e, c, OCC_EXACT_PATIENCE_NS)) {
        c->is_gone = true;
        return;
    }
    begin_calls(e, c);
    occ_exact_end_session(e, c);
    occ_exact_release(e, c);
    c->state = OCC_EXACT_FREE;
    end_calls(e, c);
}

void occ_exact_end_sessions(struct occ_exact *exact, long patience_ns)
{
    struct occ_exact *e = exact;
    (void)pthread_cond_broadcast(&e->changed); /* there is nothing left to wait for */
    (void)occ_exact_wait_for_claims(e, NULL, patience_ns);
    for (uint32_t i = 0; i < OCC_EXACT_MAX_CONTEXTS; i++) {
        struct occ_exact_context *c = &e->contexts[i];
        if (c->is_claimed)
            continue;
        begin_calls(e, c);
        occ_exact_end_session(e, c);
        end_calls(e, c);
    }
}
