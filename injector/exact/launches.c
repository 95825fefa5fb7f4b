/* See launches.h. */
#include "launches.h"

#include <stdio.h>

#include "claims.h"

/* Maximum number of launches that begin in a session; less than the counter data holds, since a session also
 * counts launches that other threads have already begun. */
#define SESSION_LAUNCHES (OCC_SESSION_MAX_RANGES - 128u)

#define NO_CALL UINT32_MAX

/* This thread's launch, and the depth of nested launches. A nested launch neither begins nor ends a session,
 * since the outer launch is in the middle of a session. */
static _Thread_local struct {
    const struct occ_exact *exact; /* run that counted `depth` */
    struct occ_exact_context *context;
    uint64_t serial; /* the context's serial at the call */
    uint32_t call;   /* index in the session's calls, or NO_CALL */
    bool is_stray;   /* may be a range of any session */
    uint32_t depth;
    uint32_t in_several; /* calls in progress that launch in several contexts */
} launching;

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

/* Calls CUPTI: ends the session if `ends`, begins one if `begins`, or gives up a retired context. A new
 * context has no session to end. */
static void take_steps(struct occ_exact *e, struct occ_exact_context *c, bool ends, bool begins)
{
    bool is_last = atomic_load(&e->is_retired);
    if (c->state == OCC_EXACT_NEW)
        occ_exact_prepare(e, c);
    if (ends)
        occ_exact_end_session(e, c);
    if (is_last && occ_exact_may_go_on(e))
        occ_exact_give_up(e, c);
    if (begins && !is_last && occ_exact_may_go_on(e))
        occ_exact_start_session(e, c);
}

static void renew(struct occ_exact *e, struct occ_exact_context *c, bool ends, bool begins)
{
    c->is_claimed = true;
    occ_exact_wait_for_launches(e, c, 0);
    if (occ_exact_must_not_touch(e, 0)) { /* the session continues, with the launches in flight */
        occ_exact_end_claim(e, c);
        return;
    }
    occ_exact_begin_calls(e, c);
    take_steps(e, c, ends, begins);
    (void)occ_exact_end_calls(e, c);
}

/* Returns the context of a launch, free of claims; NULL: no entry, or claimed for too long. */
static struct occ_exact_context *context_of(struct occ_exact *e, const struct occ_callback_data *data,
                                            bool may_add)
{
    struct occ_exact_context *c = occ_exact_find(e, data->context);
    if (!c && may_add)
        c = add_context(e, data);
    /* searched again, since the context may have been destroyed during the wait */
    return c && occ_exact_wait_for_claims(e, c) && occ_exact_find(e, data->context) == c ? c : NULL;
}

/* Waits until no other thread is inside a launch of the context, since only the order of calls identifies
 * ranges. If no launch passed during the whole wait, the context is crowded: no thread waits for the launch
 * in flight again. Releases the lock while it waits. */
static void wait_for_turn(struct occ_exact *e, struct occ_exact_context *c)
{
    struct timespec until = occ_exact_after(OCC_EXACT_PATIENCE_NS);
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
                                               .may_be_captured = e->captures.n > 0};
    return s->n++;
}

/* Registers a launch immediately before the driver's work. c: NULL: its context was claimed for too long, or
 * has no entry. */
static void enter_launch(struct occ_exact *e, struct occ_exact_context *c,
                         const struct occ_callback_data *data, bool is_graph)
{
    launching.is_stray = !c || c->is_claimed || occ_exact_find(e, data->context) != c;
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
    struct occ_exact_context *c =
        context_of(e, data, !is_last && !is_graph && !occ_exact_must_not_touch(e, 0));
    bool ends = must_end(c, is_graph || is_last);
    if (c && !occ_exact_must_not_touch(e, 0) &&
        (ends || (is_last && c->state != OCC_EXACT_FAILED) || (!is_graph && can_begin(c))))
        renew(e, c, ends, !is_graph);
    if (c && c->state == OCC_EXACT_RUNNING) /* does not wait in a new session: it has no launch in flight */
        wait_for_turn(e, c);
    if (is_last)
        end_without_contexts(e);
    if (atomic_load(&e->is_on) && (c || occ_exact_find(e, data->context)))
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
    launching.depth = launching.in_several = 0;
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

void occ_launch_in_several(struct occ_exact *e, bool begins)
{
    start_counting(e);
    if (!begins && launching.in_several == 0)
        return;
    launching.in_several += begins ? 1 : UINT32_MAX;
    occ_exact_stray(e, begins);
}

void occ_launch_thread_ended(struct occ_exact *e)
{
    start_counting(e);
    while (launching.in_several > 0)
        occ_launch_in_several(e, false);
    if (launching.depth == 0)
        return;
    launching.depth = 1;
    launching.call = NO_CALL; /* the session's call stays without a return */
    occ_launch_ends(e, 0);
}
