/*
 * One GPU: a thread that reads counters, joins them with launches, and adds up what comes of it. A round is every
 * ROUND_NS: take the inbox, read the source, let go the launches that are old enough, put what is settled into the
 * outbox.
 *
 * Launches come late (CUPTI's buffers are flushed every second, the daemon commits every second), so they wait here,
 * ordered, until WATERMARK_NS behind the clock; samples wait in the attribution for them.
 *
 * Threads: the track's own, but for new and free. What is not guarded by the mutex is the thread's alone.
 */
#include "gpu_worker.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/array.h"
#include "daemon/counters/competing_profilers.h"
#include "support/clock.h"

#define ROUND_NS          INT64_C(50000000)
#define WATERMARK_NS      INT64_C(4000000000)
#define RETRY_NS          INT64_C(30000000000)  /* a source that is busy or was lost */
#define RETRY_FAILED_NS   INT64_C(300000000000) /* one that failed for no known reason */
#define STEP_NS           INT64_C(500000000)    /* by which somebody has set the clock */
#define RIVALS_NS         INT64_C(2000000000)
#define SAMPLES           2048
#define BURST_EVERY_NS    INT64_C(60000000000)
#define BURST_NS          INT64_C(2000000000)
#define BURST_INTERVAL_NS INT64_C(50000)
#define UNCLEAR           0.2 /* of launch time without a value of its own, for which a burst is worth while */
#define ENOUGH_NS         1e8 /* of launch time to judge by */
#define MINUTE_NS         INT64_C(60000000000)

#define RUNGS 2 /* kinds of sources */

/* A kind of source that is not in use. */
struct rung {
    enum occ_source_state state; /* why not; OK: it was not tried */
    char detail[OCC_ERROR_MESSAGE_BYTES];
    int64_t retry_ns; /* monotonic */
};

struct worker {
    struct occ_track *track;
    struct occ_attribution *attribution;
    const struct occ_source_kind *kind; /* of `source`, or of the last one; NULL: there was none */
    struct occ_source *source;          /* NULL: none open */
    size_t rung;                        /* its kind's */
    struct rung rungs[RUNGS];
    int64_t rivals_ns; /* monotonic: when to look for rivals again */
    const char *rival; /* who wants the counters; NULL: nobody */
    bool paused;
    uint64_t bad_samples;           /* that are of the future, or found no room */
    struct occ_source_stats before; /* of sources that are closed */
    uint64_t late_seen;             /* the attribution's, at the last look */
    int64_t ahead_ns;               /* of CLOCK_REALTIME, before CLOCK_MONOTONIC; 0: not known yet */
    double clear_ns, unclear_ns; /* launch time with a value of its own, and without; since the last burst */
    int64_t burst_ends_ns, next_burst_ns; /* monotonic; burst_ends_ns 0: none is on */
    int64_t advanced_ns;                  /* launches before this are with the attribution */
    struct occ_track_launch *waiting;     /* a heap by start */
    size_t n_waiting, waiting_allocated;
    struct occ_track_launch *taken; /* the inbox of this round */
    size_t n_taken, taken_allocated;
    struct occ_sample samples[SAMPLES];
};

/* ---- launches that wait, oldest first ---- */

static void sift_up(struct occ_track_launch *heap, size_t at)
{
    struct occ_track_launch item = heap[at];
    for (; at > 0 && heap[(at - 1) / 2].start_ns > item.start_ns; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = item;
}

static void sift_down(struct occ_track_launch *heap, size_t n)
{
    struct occ_track_launch item = heap[0];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1].start_ns < heap[child].start_ns)
            child++;
        if (heap[child].start_ns >= item.start_ns)
            break;
        heap[at] = heap[child];
    }
    heap[at] = item;
}

static uint64_t queue_taken(struct worker *w)
{
    uint64_t dropped = 0;
    for (size_t i = 0; i < w->n_taken; i++) {
        if (!occ_grow((void **)&w->waiting, &w->waiting_allocated, w->n_waiting, OCC_TRACK_INBOX_MOST * 4,
                      sizeof *w->waiting)) {
            dropped++;
            continue;
        }
        w->waiting[w->n_waiting] = w->taken[i];
        sift_up(w->waiting, w->n_waiting++);
    }
    w->n_taken = 0;
    return dropped;
}

/* Comes back with the launch's value. */
static uint64_t tag_of(const struct occ_track_launch *launch)
{
    return (uint64_t)launch->correlation << 32 | launch->pair;
}

/* Gives launches that start before `until_ns` to the attribution. */
static int release(struct worker *w, int64_t until_ns, uint64_t *ret_refused, struct occ_error *err)
{
    int status = 0;
    while (w->n_waiting > 0 && w->waiting[0].start_ns < until_ns && status == 0) {
        const struct occ_track_launch *l = &w->waiting[0];
        struct occ_attribution_launch launch = {
            .start_ns = l->start_ns, .end_ns = l->end_ns, .tag = tag_of(l)};
        (void)pthread_mutex_lock(&w->track->mutex); /* pairs may move while they grow */
        launch.key = w->track->pairs[l->pair].key;
        (void)pthread_mutex_unlock(&w->track->mutex);
        launch.key.graph_node = l->graph_node;
        status = occ_attribution_launch(w->attribution, &launch, err);
        if (status == OCC_E_FULL || status == OCC_E_INVALID) {
            ++*ret_refused;
            status = 0;
        }
        w->waiting[0] = w->waiting[--w->n_waiting];
        if (w->n_waiting > 0)
            sift_down(w->waiting, w->n_waiting);
    }
    return status;
}

/* ---- results ---- */

static void add_value(struct occ_measured_sums *sums, enum occ_measured_value which, double value, double ns)
{
    if (!isfinite(value))
        return;
    sums->sum[which] += value * ns;
    sums->ns[which] += ns;
}

static void add_measured(struct occ_measured_sums *sums, const struct occ_measured *m, double ns)
{
    const struct {
        enum occ_measured_value which;
        double value;
    } values[] = {
        {OCC_MEASURED_achieved, m->achieved},
        {OCC_MEASURED_achieved_error, m->achieved_se},
        {OCC_MEASURED_elapsed, m->elapsed},
        {OCC_MEASURED_elapsed_error, m->elapsed_se},
        {OCC_MEASURED_variance_inflation, m->variance_inflation},
        {OCC_MEASURED_sm_active, m->sm_active},
        {OCC_MEASURED_resident_blocks, m->blocks},
        {OCC_MEASURED_imbalance, m->imbalance},
        {OCC_MEASURED_stall_registers, m->stall[0]},
        {OCC_MEASURED_stall_shared_memory, m->stall[1]},
        {OCC_MEASURED_stall_blocks, m->stall[2]},
        {OCC_MEASURED_stall_warps, m->stall[3]},
        {OCC_MEASURED_stall_barriers, m->stall[4]},
    };
    const struct {
        enum occ_measured_value which;
        double value;
    } groups[] = {
        {OCC_MEASURED_group_achieved, m->achieved},
        {OCC_MEASURED_group_elapsed, m->elapsed},
        {OCC_MEASURED_group_elapsed_error, m->elapsed_se},
    };
    bool own = m->source != OCC_ATTRIBUTION_GROUP; /* a group's mean is none of its members' */
    for (size_t i = 0; i < sizeof values / sizeof *values && own; i++)
        add_value(sums, values[i].which, values[i].value, ns);
    for (size_t i = 0; i < sizeof groups / sizeof *groups && !own; i++)
        add_value(sums, groups[i].which, groups[i].value, ns);
    sums->direct += m->source == OCC_ATTRIBUTION_DIRECT;
    sums->regressed += m->source == OCC_ATTRIBUTION_REGRESSED;
    sums->grouped += m->source == OCC_ATTRIBUTION_GROUP;
    sums->overlapped += m->overlapped;
}

/* The outbox's entry; NULL: no room. With the mutex held. */
static struct occ_track_result *result_at(struct occ_track *t, int64_t minute, uint32_t pair)
{
    uint64_t key = (uint64_t)minute << 24 | pair;
    uint32_t at = occ_map_get(&t->outbox_index, key);
    if (at != OCC_MAP_NONE)
        return &t->outbox[at];
    if (!occ_grow((void **)&t->outbox, &t->outbox_allocated, t->n_outbox, OCC_TRACK_OUTBOX_MOST,
                  sizeof *t->outbox) ||
        occ_map_put(&t->outbox_index, key, (uint32_t)t->n_outbox) == OCC_MAP_NONE)
        return NULL;
    t->outbox[t->n_outbox] = (struct occ_track_result){.minute = minute, .pair = pair};
    return &t->outbox[t->n_outbox++];
}

static void count_clarity(struct worker *w, const struct occ_attribution_value *value)
{
    bool own = value->measured.source == OCC_ATTRIBUTION_DIRECT ||
               value->measured.source == OCC_ATTRIBUTION_REGRESSED;
    *(own ? &w->clear_ns : &w->unclear_ns) += (double)(value->end_ns - value->start_ns);
}

/* With the mutex held. */
static bool put_value(struct occ_track *t, const struct occ_attribution_value *v)
{
    if (!occ_grow((void **)&t->values, &t->values_allocated, t->n_values, OCC_TRACK_VALUES_MOST,
                  sizeof *t->values))
        return false;
    t->values[t->n_values++] = (struct occ_track_value){.pair = (uint32_t)v->tag,
                                                        .value = {.start_ns = v->start_ns,
                                                                  .correlation = (uint32_t)(v->tag >> 32),
                                                                  .achieved = v->measured.achieved,
                                                                  .achieved_error = v->measured.achieved_se,
                                                                  .elapsed = v->measured.elapsed,
                                                                  .elapsed_error = v->measured.elapsed_se}};
    return true;
}

/* Of the GPU, whatever ran; one that cannot be is the source's to count. */
static void put_sample(struct worker *w, const struct occ_sample *sample)
{
    struct occ_track *t = w->track;
    struct occ_measured m;
    if (sample->start_ns <= 0 || sample->end_ns <= sample->start_ns)
        return;
    occ_attribution_read(w->attribution, sample, &m);
    (void)pthread_mutex_lock(&t->mutex);
    if (m.elapsed > 0)
        t->active_ns = occ_monotonic_ns();
    if (occ_grow((void **)&t->samples, &t->samples_allocated, t->n_samples, OCC_TRACK_SAMPLES_MOST,
                 sizeof *t->samples))
        t->samples[t->n_samples++] = (struct occ_device_sample){.start_ns = sample->start_ns,
                                                                .end_ns = sample->end_ns,
                                                                .elapsed = m.elapsed,
                                                                .sm_active = m.sm_active,
                                                                .resident_blocks = m.blocks,
                                                                .stall_registers = m.stall[0],
                                                                .stall_shared_memory = m.stall[1],
                                                                .stall_blocks = m.stall[2],
                                                                .stall_warps = m.stall[3],
                                                                .stall_barriers = m.stall[4]};
    else
        w->bad_samples++;
    (void)pthread_mutex_unlock(&t->mutex);
}

static void take_seconds(struct worker *w)
{
    struct occ_track *t = w->track;
    (void)pthread_mutex_lock(&t->mutex);
    t->n_seconds += occ_attribution_take_seconds(w->attribution, t->seconds + t->n_seconds,
                                                 OCC_TRACK_SECONDS_MOST - t->n_seconds);
    (void)pthread_mutex_unlock(&t->mutex);
}

static void take_values(struct worker *w)
{
    struct occ_attribution_value values[256];
    size_t n;
    while ((n = occ_attribution_take(w->attribution, values, sizeof values / sizeof *values)) > 0) {
        (void)pthread_mutex_lock(&w->track->mutex);
        for (size_t i = 0; i < n; i++) {
            const struct occ_attribution_value *v = &values[i];
            count_clarity(w, v);
            if (v->measured.source == OCC_ATTRIBUTION_NONE)
                continue;
            struct occ_track_result *r = result_at(w->track, v->start_ns / MINUTE_NS, (uint32_t)v->tag);
            if (r)
                add_measured(&r->sums, &v->measured, (double)(v->end_ns - v->start_ns));
            else
                w->track->status.dropped++;
            if (v->measured.source == OCC_ATTRIBUTION_DIRECT && !put_value(w->track, v))
                w->track->status.dropped++;
        }
        (void)pthread_mutex_unlock(&w->track->mutex);
    }
}

/* ---- the source ---- */

/* The kinds, best first. */
static const struct {
    const struct occ_source_kind *kind;
    enum occ_sampler_mode only; /* beside AUTO */
    bool exclusive;             /* nobody else may use the same counters at the same time */
} kinds[RUNGS] = {{&occ_source_pm, OCC_SAMPLER_PM, true}, {&occ_source_gpm, OCC_SAMPLER_GPM, false}};

static bool is_allowed(const struct worker *w, size_t rung)
{
    enum occ_sampler_mode mode = w->track->options.mode;
    return mode == OCC_SAMPLER_AUTO || mode == kinds[rung].only;
}

/* What the source is, and why it is no better one: `state` and `detail` of the best that was refused. */
static void say_source(struct worker *w, enum occ_source_state refused, const char *detail)
{
    struct occ_sampler_status *status = &w->track->status;
    (void)pthread_mutex_lock(&w->track->mutex);
    w->track->has_tried = true;
    status->source = w->source ? w->kind->word : "none";
    status->state = w->source ? OCC_SOURCE_OK : refused;
    if (refused == OCC_SOURCE_OK)
        status->reason[0] = '\0';
    else
        (void)snprintf(status->reason, sizeof status->reason, "%s%s%s", occ_source_state_text(refused),
                       detail[0] ? ": " : "", detail);
    (void)pthread_mutex_unlock(&w->track->mutex);
}

static void add_stats(struct occ_source_stats *to, const struct occ_source_stats *more)
{
    to->samples += more->samples;
    to->bad_samples += more->bad_samples;
    to->overflows += more->overflows;
    to->gaps += more->gaps;
    to->rotations += more->rotations;
    to->bytes_per_sample = more->bytes_per_sample ? more->bytes_per_sample : to->bytes_per_sample;
}

static void close_source(struct worker *w)
{
    if (w->source) {
        struct occ_source_stats stats = {0};
        w->kind->get_stats(w->source, &stats);
        add_stats(&w->before, &stats);
        w->kind->close(w->source);
    }
    w->source = NULL;
    w->burst_ends_ns = 0;
}

/* No source for now; any may be tried when that is over. */
static void rest(struct worker *w, enum occ_source_state why)
{
    close_source(w);
    memset(w->rungs, 0, sizeof w->rungs);
    say_source(w, why, "");
}

static void refuse(struct rung *rung, enum occ_source_state state, const char *detail, int64_t retry_ns)
{
    rung->state = state;
    rung->retry_ns = retry_ns;
    (void)snprintf(rung->detail, sizeof rung->detail, "%s", detail);
}

/* The source that was there does not work any more. */
static void lose_source(struct worker *w, enum occ_source_state why, int64_t now_ns,
                        const struct occ_error *err)
{
    close_source(w);
    refuse(&w->rungs[w->rung], why, err->message, now_ns + RETRY_NS);
    say_source(w, why, err->message);
}

static bool try_rung(struct worker *w, size_t i, int64_t now_ns)
{
    const struct occ_source_options options = {.device = w->track->gpu.ordinal,
                                               .interval_ns = w->track->options.interval_ns};
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_source *source = NULL;
    enum occ_source_state state = occ_source_open(kinds[i].kind, &options, &source, &err);
    if (state != OCC_SOURCE_OK) {
        refuse(&w->rungs[i], state, err.message,
               state == OCC_SOURCE_BUSY || state == OCC_SOURCE_LOST ? now_ns + RETRY_NS
               : state == OCC_SOURCE_FAILED                         ? now_ns + RETRY_FAILED_NS
                                                                    : INT64_MAX);
        return false;
    }
    close_source(w);
    if (w->kind && w->kind != kinds[i].kind)
        occ_attribution_restart(w->attribution);
    w->source = source;
    w->kind = kinds[i].kind;
    w->rung = i;
    return true;
}

/* Somebody else's turn: the counters that only one can have are given back. */
static void yield_to(struct worker *w, const char *rival)
{
    for (size_t i = 0; i < RUNGS; i++) {
        if (!kinds[i].exclusive)
            continue;
        if (w->source && w->rung == i)
            close_source(w);
        refuse(&w->rungs[i], OCC_SOURCE_BUSY, rival, 0);
    }
}

/* Goes up and down the kinds: the best that can be had now. */
static void climb(struct worker *w, int64_t now_ns)
{
    const struct rung *refused = NULL; /* the best */
    bool tried = false;
    for (size_t i = 0; i < RUNGS; i++) {
        if (w->source && w->rung == i)
            break;
        if (!is_allowed(w, i))
            continue;
        if (!(w->rival && kinds[i].exclusive) && now_ns >= w->rungs[i].retry_ns) {
            tried = true;
            if (try_rung(w, i, now_ns))
                break;
        }
        refused = refused ? refused : &w->rungs[i];
    }
    if (tried || w->rival)
        say_source(w, refused ? refused->state : OCC_SOURCE_OK, refused ? refused->detail : "");
}

static void look_for_rivals(struct worker *w, int64_t now_ns)
{
    if (now_ns < w->rivals_ns)
        return;
    w->rivals_ns = now_ns + RIVALS_NS;
    w->rival = occ_rival("/proc", w->track->gpu.cc_major);
    if (w->rival)
        yield_to(w, w->rival);
}

static void keep_source(struct worker *w, int64_t now_ns, int64_t wanted_until_ns, int64_t paused_until_ns)
{
    bool wanted = now_ns < wanted_until_ns, paused = now_ns < paused_until_ns;
    if (paused && (w->source || !w->paused))
        rest(w, OCC_SOURCE_PAUSED);
    else if (!paused && !wanted && (w->source || w->paused))
        rest(w, OCC_SOURCE_IDLE);
    w->paused = paused;
    if (paused || !wanted)
        return;
    look_for_rivals(w, now_ns);
    climb(w, now_ns);
}

/* Kernels that cannot be told apart at the usual interval (graphs, short ones) get a burst of short intervals now and
 * then: that costs more for a moment, and what it tells is remembered. */
static enum occ_source_state adapt_interval(struct worker *w, int64_t now_ns, struct occ_error *err)
{
    double all = w->clear_ns + w->unclear_ns;
    if (!w->source || w->kind != &occ_source_pm)
        return OCC_SOURCE_OK;
    if (w->burst_ends_ns && now_ns >= w->burst_ends_ns) {
        w->burst_ends_ns = 0;
        w->clear_ns = w->unclear_ns = 0;
        return w->kind->set_interval(w->source, w->track->options.interval_ns, err);
    }
    if (w->burst_ends_ns || now_ns < w->next_burst_ns || all < ENOUGH_NS || w->unclear_ns < UNCLEAR * all)
        return OCC_SOURCE_OK;
    w->burst_ends_ns = now_ns + BURST_NS;
    w->next_burst_ns = now_ns + BURST_EVERY_NS;
    return w->kind->set_interval(w->source, BURST_INTERVAL_NS, err);
}

static int read_source(struct worker *w, int64_t now_ns, struct occ_error *err)
{
    for (size_t n = SAMPLES; w->source && n == SAMPLES;) {
        n = 0;
        enum occ_source_state state = w->kind->read(w->source, w->samples, SAMPLES, &n, err);
        int64_t future_ns = occ_now_ns() + OCC_TRACK_FUTURE_NS;
        for (size_t i = 0; i < n; i++) {
            if (w->samples[i].end_ns > future_ns) { /* all that come after it would seem to be late */
                w->bad_samples++;
                continue;
            }
            int status = occ_attribution_sample(w->attribution, &w->samples[i], err);
            if (status != 0)
                return status;
            put_sample(w, &w->samples[i]);
        }
        if (state != OCC_SOURCE_OK)
            lose_source(w, state, now_ns, err);
    }
    return 0;
}

/* ---- the thread ---- */

struct orders {
    bool stop, settle;
    int64_t wanted_until_ns, paused_until_ns;
};

static bool is_idle(const struct worker *w)
{
    const struct occ_track *t = w->track;
    return !w->source && w->n_waiting == 0 && t->n_inbox == 0 && occ_monotonic_ns() >= t->wanted_until_ns;
}

/* Until the next round is due or the loop wants something; while nothing is to be done, as long as it takes. */
static void sleep_a_round(struct worker *w)
{
    struct occ_track *t = w->track;
    int64_t at_ns = occ_monotonic_ns() + ROUND_NS;
    const struct timespec until = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000};
    int over = 0;
    while (!t->stop && !t->settle && !t->hurry && over != ETIMEDOUT)
        over = is_idle(w) ? pthread_cond_wait(&t->wake, &t->mutex)
                          : pthread_cond_timedwait(&t->wake, &t->mutex, &until);
}

/* Sleeps, then takes the inbox and what the loop wants. */
static struct orders wait_for_orders(struct worker *w)
{
    struct occ_track *t = w->track;
    (void)pthread_mutex_lock(&t->mutex);
    sleep_a_round(w);
    struct occ_track_launch *empty = w->taken;
    size_t empty_allocated = w->taken_allocated;
    w->taken = t->inbox;
    w->n_taken = t->n_inbox;
    w->taken_allocated = t->inbox_allocated;
    t->inbox = empty;
    t->inbox_allocated = empty_allocated;
    t->n_inbox = 0;
    t->at_work |= w->n_taken > 0; /* they refer to pairs until publish() */
    t->hurry = false;
    struct orders orders = {.stop = t->stop,
                            .settle = t->settle,
                            .wanted_until_ns = t->wanted_until_ns,
                            .paused_until_ns = t->paused_until_ns};
    (void)pthread_mutex_unlock(&t->mutex);
    return orders;
}

static void publish(struct worker *w, uint64_t refused, bool settled)
{
    struct occ_attribution_stats stats;
    struct occ_source_stats source = {0};
    occ_attribution_get_stats(w->attribution, &stats);
    if (w->source)
        w->kind->get_stats(w->source, &source);
    add_stats(&source, &w->before);
    source.bad_samples += w->bad_samples + stats.bad_samples + stats.dropped_samples;
    (void)pthread_mutex_lock(&w->track->mutex);
    struct occ_sampler_status *status = &w->track->status;
    status->stats = source;
    status->offset_ns = stats.offset_ns;
    status->drift_ppm = stats.drift_ppm;
    status->residual_ratio = stats.residual_ratio;
    status->dropped += refused + (stats.late_launches - w->late_seen);
    w->late_seen = stats.late_launches;
    w->track->at_work = w->source || w->n_waiting > 0 || stats.waiting > 0;
    if (settled) {
        w->track->settle = false;
        (void)pthread_cond_broadcast(&w->track->settled);
    }
    (void)pthread_mutex_unlock(&w->track->mutex);
}

static int new_attribution(struct occ_track *t, struct occ_attribution **ret, struct occ_error *err)
{
    const struct occ_attribution_options options = {.sm_count = t->gpu.sm_count,
                                                    .max_warps_per_sm = t->gpu.max_warps_per_sm};
    return occ_attribution_new(&options, ret, err);
}

/* Forgets all launches and samples that wait, and what is known of kernels. */
static int start_anew(struct worker *w, struct occ_error *err)
{
    struct occ_attribution *attribution = NULL;
    struct occ_attribution_stats stats;
    int status = new_attribution(w->track, &attribution, err);
    if (status != 0)
        return status;
    occ_attribution_get_stats(w->attribution, &stats);
    w->bad_samples += stats.bad_samples + stats.dropped_samples;
    (void)pthread_mutex_lock(&w->track->mutex);
    w->track->status.dropped += w->n_waiting + stats.waiting;
    (void)pthread_mutex_unlock(&w->track->mutex);
    occ_attribution_free(w->attribution);
    w->attribution = attribution;
    w->n_waiting = 0;
    w->advanced_ns = 0;
    w->late_seen = 0;
    return 0;
}

/* Somebody has set the clock by which launches and samples are told: what waits has its old times. */
static int mind_the_clock(struct worker *w, struct occ_error *err)
{
    int64_t ahead_ns = occ_now_ns() - occ_monotonic_ns();
    int64_t step_ns = w->ahead_ns ? ahead_ns - w->ahead_ns : 0;
    w->ahead_ns = ahead_ns;
    if (step_ns < STEP_NS && step_ns > -STEP_NS)
        return 0;
    int status = occ_attribution_advance(w->attribution, INT64_MAX, true, err);
    if (status == 0) {
        take_values(w);
        take_seconds(w);
        status = start_anew(w, err);
    }
    close_source(w); /* its times are converted by the clock as it was */
    return status;
}

static int do_round(struct worker *w, const struct orders *orders, struct occ_error *err)
{
    int status = mind_the_clock(w, err);
    if (status != 0)
        return status;
    int64_t now_ns = occ_monotonic_ns();
    int64_t until_ns = occ_now_ns() - (orders->settle || orders->stop ? 0 : WATERMARK_NS);
    if (until_ns > w->advanced_ns)
        w->advanced_ns = until_ns;
    uint64_t refused = queue_taken(w);
    keep_source(w, now_ns, orders->wanted_until_ns, orders->paused_until_ns);
    status = read_source(w, now_ns, err);
    enum occ_source_state state = adapt_interval(w, now_ns, err);
    if (state != OCC_SOURCE_OK)
        lose_source(w, state, now_ns, err);
    if (status == 0)
        status = release(w, w->advanced_ns, &refused, err);
    if (status == 0)
        status = occ_attribution_advance(w->attribution, w->advanced_ns, orders->settle || orders->stop, err);
    if (status == 0) {
        take_values(w);
        take_seconds(w);
    }
    publish(w, refused, orders->settle);
    return status;
}

/* Begins again from nothing, with another source only after a while. */
static void fail_round(struct worker *w, const struct orders *orders, const struct occ_error *err)
{
    struct occ_error again = OCC_ERROR_INIT;
    uint64_t dropped = w->n_taken;
    w->n_taken = 0;
    close_source(w);
    for (size_t i = 0; i < RUNGS; i++)
        refuse(&w->rungs[i], OCC_SOURCE_FAILED, err->message, occ_monotonic_ns() + RETRY_NS);
    say_source(w, OCC_SOURCE_FAILED, err->message);
    (void)start_anew(w, &again);
    publish(w, dropped, orders->settle);
}

static void *work(void *argument)
{
    struct worker *w = argument;
    struct occ_error err = OCC_ERROR_INIT;
    struct orders orders;
    do {
        orders = wait_for_orders(w);
        if (do_round(w, &orders, &err) != 0)
            fail_round(w, &orders, &err);
    } while (!orders.stop);
    close_source(w);
    occ_attribution_free(w->attribution);
    free(w->waiting);
    free(w->taken);
    free(w);
    return NULL;
}

/* ---- begin and end ---- */

static int start_thread(struct occ_track *t, struct worker *w, struct occ_error *err)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&t->thread, NULL, work, w);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0 ? 0 : occ_fail_errno(err, failed, "cannot start a sampler's thread");
}

static int start(struct occ_track *t, struct occ_error *err)
{
    struct worker *w = calloc(1, sizeof *w);
    if (!w)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    w->track = t;
    int status = new_attribution(t, &w->attribution, err);
    if (status == 0)
        status = start_thread(t, w, err);
    if (status != 0) {
        occ_attribution_free(w->attribution);
        free(w);
    }
    return status;
}

static void free_memory(struct occ_track *t)
{
    occ_map_free(&t->pair_index);
    occ_map_free(&t->outbox_index);
    free(t->pairs);
    free(t->inbox);
    free(t->outbox);
    free(t->values);
    free(t->samples);
    (void)pthread_cond_destroy(&t->wake);
    (void)pthread_cond_destroy(&t->settled);
    (void)pthread_mutex_destroy(&t->mutex);
    free(t);
}

int occ_track_new(const struct occ_gpu_found *gpu, const struct occ_sampler_options *options,
                  struct occ_track **ret_track, struct occ_error *err)
{
    struct occ_track *t = calloc(1, sizeof *t);
    pthread_condattr_t monotonic;
    if (!t)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    t->gpu = *gpu;
    t->options = *options;
    t->status.source = "none";
    t->status.ordinal = gpu->ordinal;
    t->status.state = OCC_SOURCE_IDLE;
    (void)snprintf(t->status.reason, sizeof t->status.reason, "%s", occ_source_state_text(OCC_SOURCE_IDLE));
    memcpy(t->status.uuid, gpu->uuid, sizeof gpu->uuid);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&t->mutex, NULL);
    (void)pthread_cond_init(&t->wake, &monotonic);
    (void)pthread_cond_init(&t->settled, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    int status = start(t, err);
    if (status != 0)
        free_memory(t);
    else
        *ret_track = t;
    return status;
}

void occ_track_free(struct occ_track *t)
{
    if (!t)
        return;
    (void)pthread_mutex_lock(&t->mutex);
    t->stop = true;
    (void)pthread_cond_signal(&t->wake);
    (void)pthread_mutex_unlock(&t->mutex);
    (void)pthread_join(t->thread, NULL);
    free_memory(t);
}
