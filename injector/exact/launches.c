/* See launches.h. */
#include "launches.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Maximum number of launches that begin in a session; less than the counter data holds, since a session also
 * counts launches that other threads have already begun. */
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

/* This thread's launch, and the depth of nested launches. A nested launch neither begins nor ends a session,
 * since the outer launch is in the middle of a session. */
static _Thread_local struct {
    const struct occ_exact *exact; /* run that counted `depth` */
    struct occ_exact_context *context;
    uint64_t serial; /* the context's serial at the call */
    uint32_t call;   /* index in the session's calls, or NO_CALL */
    bool is_stray;   /* may be a range of any session */
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

/* Returns the time `ns` from now on CLOCK_MONOTONIC; ns < 1 s. */
static struct timespec after(long ns)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += ns;
    t.tv_sec += t.tv_nsec / SECOND_NS;
    t.tv_nsec %= SECOND_NS;
    return t;
}

/* True if no session may begin or end: a stream is captured, or measuring or CUPTI has ended. own_captures:
 * captures of the calling thread that have not begun yet. The result is valid while `lock` is held. */
static bool must_not_touch(const struct occ_exact *e, uint32_t own_captures)
{
    return e->captures > own_captures || !atomic_load(&e->is_on) || occ_exact_is_stopped(e);
}

/* Waits until no launch is in flight, since a launch in flight would be in neither session. New launches wait
 * meanwhile, because the context is claimed. The wait is bounded: a launch may itself wait, and its callback
 * may be lost. Releases the lock while it waits. */
static void wait_for_others(struct occ_exact *e, struct occ_exact_context *c, uint32_t own_captures)
{
    struct timespec until = after(OCC_EXACT_PATIENCE_NS);
    while (c->in_flight > 0 && !must_not_touch(e, own_captures) &&
           pthread_cond_timedwait(&e->changed, &e->lock, &until) == 0)
        ;
}

/* Releases the lock while it waits. */
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

/* Gives the context a new serial: calls made before it write nothing into the session any more. Launches that
 * have not returned become strays, since their ranges may be in any session that begins before they return;
 * no thread waits for them again. */
static void renew_serial(struct occ_exact *e, struct occ_exact_context *c)
{
    c->serial = ++e->serials;
    (void)atomic_fetch_add(&e->open_strays, c->in_flight);
    c->in_flight = 0;
    c->is_crowded = false;
}

/* Claims the context and releases the lock, so that CUPTI may be called for the context. */
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

/* Reports the full table once, not with every launch. */
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

/* Turns measuring off after the last context. */
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

/* Checked between steps, each of which may take long: a capture that stopped waiting may have begun
 * meanwhile. */
static bool may_go_on(struct occ_exact *e)
{
    (void)pthread_mutex_lock(&e->lock);
    bool may = !must_not_touch(e, 0);
    (void)pthread_mutex_unlock(&e->lock);
    return may;
}

/* Calls CUPTI: ends the session if `ends`, begins one if `begins`, or gives up a retired context. A new
 * context has no session to end. */
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
    if (must_not_touch(e, 0)) { /* the session continues, with the launches in flight */
        end_claim(e, c);
        return;
    }
    begin_calls(e, c);
    take_steps(e, c, ends, begins);
    end_calls(e, c);
}

/* Returns the context of a launch, free of claims; NULL: no entry, or claimed for too long. */
static struct occ_exact_context *context_of(struct occ_exact *e, const struct occ_callback_data *data,
                                            bool may_add)
{
    struct occ_exact_context *c = find_context(e, data->context);
    if (!c && may_add)
        c = add_context(e, data);
    /* searched again, since the context may have been destroyed during the wait */
    return c && occ_exact_wait_for_claims(e, c, OCC_EXACT_PATIENCE_NS) && find_context(e, data->context) == c
               ? c
               : NULL;
}

/* Waits until no other thread is inside a launch of the context, since only the order of calls identifies
 * ranges. If no launch passed during the whole wait, the context is crowded: no thread waits for the launch
 * in flight again. Releases the lock while it waits. */
static void wait_for_turn(struct occ_exact *e, struct occ_exact_context *c)
{
    struct timespec until = after(OCC_EXACT_PATIENCE_NS);
    uint64_t turns = c->turns;
    bool is_late = false;
    while (!is_late && atomic_load(&e->is_on) && (c->is_claimed || (c->in_flight > 0 && !c->is_crowded)))
        is_late = pthread_cond_timedwait(&e->changed, &e->lock, &until) != 0;
    c->is_crowded |= is_late && c->turns == turns && !c->is_claimed;
}

/* Writes the call into the running session. Returns its index, or NO_CALL for a graph, which is any number of
 * ranges, and for a full session. */
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

/* Registers a launch immediately before the driver's work. c: NULL: its context was claimed for too long, or
 * has no entry. */
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
    if (c && c->state == OCC_EXACT_RUNNING) /* does not wait in a new session: it has no launch in flight */
        wait_for_turn(e, c);
    if (is_last)
        end_without_contexts(e);
    if (atomic_load(&e->is_on) && (c || find_context(e, data->context)))
        enter_launch(e, c, data, is_graph);
}

/* Counts a nested launch without a call of its own. If it is a range of its own, the session has more ranges
 * than calls. */
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
    if (c->serial != launching.serial) { /* counted as a stray by renew_serial() */
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

/* Resets this thread's state if another run counted it. */
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
    (void)pthread_cond_broadcast(&e->changed); /* wakes all waiting threads: measuring has ended */
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
