/*
 * The thread does a round every 50 ms, in bursts every 10 ms: empty the inbox, read the source, pass launches
 * behind the watermark to the attribution, which returns settled launches.
 *
 * Launch records arrive late (record_age.h), so launches wait here, sorted by start, until they are behind
 * the watermark; the attribution keeps samples until then.
 */
#include "gpu_worker.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "counters/ratios.h"
#include "known_totals.h"
#include "record_age.h"

/* a larger change of the clock's offset means that the system's clock was set */
#define STEP_NS INT64_C(500000000)
/* tolerance of clocks: samples and launches arrive after their end, so a later end is invalid */
#define FUTURE_NS   INT64_C(1000000000)
#define SAMPLES     2048
#define INBOX_MAX   (1u << 18) /* launches: 3 s at 80 k a second */
#define WAITING_MAX (1u << 20)
#define UNCLEAR     0.2 /* a burst is useful if this share of launch time has no individual value */
#define CLARITY_NS  1e8 /* minimum launch time for that decision */

/* The loop's requests to the thread. */
struct orders {
    bool stop, settle, now; /* now: start the next round at once */
    int64_t wanted_until_ns, paused_until_ns;
};

struct occ_gpu_worker {
    struct occ_gpu_found gpu;
    const struct occ_sampler_machine *machine;
    pthread_t thread;

    pthread_mutex_t mutex; /* guards the members up to `status` */
    pthread_cond_t wake, settled;
    struct orders orders;
    char *offered; /* path of a libcupti for sources; NULL: no new path */
    struct occ_launch_queue inbox;
    struct occ_gpu_results results;
    uint64_t inbox_dropped;
    struct occ_record_age age;
    struct occ_gpu_status status;

    /* members used by the thread only */
    struct occ_attribution *attribution;
    struct occ_known_totals *totals;
    struct occ_source_select sources;
    struct occ_energy energy;
    struct occ_ratio_scale scale;
    struct occ_launch_queue taken;   /* launches taken from the inbox in this round */
    struct occ_launch_queue waiting; /* sorted by start */
    uint64_t dropped;                /* dropped launches, without the attribution's */
    uint64_t bad_samples;            /* samples with a future or impossible time, or without room */
    int64_t ahead_ns;                /* CLOCK_REALTIME minus CLOCK_MONOTONIC; 0: unknown */
    int64_t watermark_ns;            /* distance from the clock */
    int64_t advanced_ns;             /* launches before this time were passed to the attribution */
    bool has_unsettled;              /* launches wait in the attribution */
    double clear_ns, unclear_ns;     /* launch time with and without individual values since the last burst */
    struct occ_sample samples[SAMPLES];
};

/* ---- results ---- */

/* Needs the mutex. */
static void put_sample(struct occ_gpu_worker *w, const struct occ_sample *sample)
{
    struct occ_attribution_sample ratios;
    bool is_possible = occ_ratios_read(&w->scale, sample, &ratios);
    w->bad_samples += !occ_attribution_sample(w->attribution, &ratios) || !is_possible;
    if (sample->start_ns <= 0 || sample->end_ns <= sample->start_ns)
        return;
    if (ratios.ratio[OCC_RATIO_WARPS] > 0)
        w->status.active_ns = w->machine->monotonic_ns();
    occ_known_totals_add_sample(w->totals, &ratios);
    w->bad_samples += !occ_gpu_results_add_sample(&w->results, &ratios);
}

static void read_samples(struct occ_gpu_worker *w)
{
    size_t n;
    do {
        n = occ_source_select_read(&w->sources, w->samples, SAMPLES);
        int64_t latest_ns = w->machine->now_ns() + FUTURE_NS;
        (void)pthread_mutex_lock(&w->mutex);
        for (size_t i = 0; i < n; i++) {
            /* the attribution would treat all samples after it as late */
            bool is_future = w->samples[i].end_ns > latest_ns;
            w->bad_samples += is_future;
            if (!is_future)
                put_sample(w, &w->samples[i]);
        }
        (void)pthread_mutex_unlock(&w->mutex);
    } while (n == SAMPLES);
}

/* Reads the GPU's energy while a program may use the GPU. */
static void read_energy(struct occ_gpu_worker *w, const struct orders *orders)
{
    int64_t monotonic_ns = w->machine->monotonic_ns();
    struct occ_energy_second second;
    if (orders->stop || monotonic_ns >= orders->wanted_until_ns ||
        !occ_energy_poll(&w->energy, w->machine->now_ns(), monotonic_ns, &second))
        return;
    (void)pthread_mutex_lock(&w->mutex);
    occ_gpu_results_add_energy(&w->results, &second);
    w->status.energy_j = w->energy.total_mj / 1e3;
    (void)pthread_mutex_unlock(&w->mutex);
}

static void add_value(void *worker, const struct occ_attribution_value *value)
{
    struct occ_gpu_worker *w = worker;
    enum occ_attribution_source source = value->measured.source;
    bool is_clear = source == OCC_ATTRIBUTION_DIRECT || source == OCC_ATTRIBUTION_REGRESSED;
    if (!occ_gpu_results_is_memory(value->shape))
        *(is_clear ? &w->clear_ns : &w->unclear_ns) += (double)(value->end_ns - value->start_ns);
    occ_known_totals_add_value(w->totals, value);
    (void)pthread_mutex_lock(&w->mutex);
    occ_gpu_results_add_value(&w->results, value);
    (void)pthread_mutex_unlock(&w->mutex);
}

static void add_second(void *worker, const struct occ_attribution_second *second)
{
    struct occ_gpu_worker *w = worker;
    (void)pthread_mutex_lock(&w->mutex);
    occ_gpu_results_add_second(&w->results, second);
    (void)pthread_mutex_unlock(&w->mutex);
}

/* Closes the seconds for which every launch has arrived: at the end too, records of other programs may still
 * arrive for the time since the watermark. */
static void close_seconds(struct occ_gpu_worker *w, bool final)
{
    int64_t until_ns = w->advanced_ns - (final ? w->watermark_ns : 0);
    (void)pthread_mutex_lock(&w->mutex);
    occ_known_totals_close(w->totals, until_ns, final, &w->results);
    (void)pthread_mutex_unlock(&w->mutex);
}

static void publish(struct occ_gpu_worker *w, bool settled)
{
    struct occ_attribution_stats stats;
    struct occ_source_stats source;
    occ_attribution_get_stats(w->attribution, &stats);
    occ_source_select_get_stats(&w->sources, &source);
    source.bad_samples += w->bad_samples;
    w->has_unsettled = stats.waiting > 0;
    (void)pthread_mutex_lock(&w->mutex);
    struct occ_gpu_status *status = &w->status;
    status->source = w->sources.source ? w->sources.kind->word : "none";
    status->state = w->sources.source ? OCC_SOURCE_OK : w->sources.state;
    (void)snprintf(status->reason, sizeof status->reason, "%s",
                   w->sources.reason[0] ? w->sources.reason : occ_source_select_note(&w->sources));
    status->has_tried = w->sources.has_tried;
    status->stats = source;
    status->offset_ns = stats.offset_ns;
    status->drift_ppm = stats.drift_ppm;
    status->residual_ratio = stats.residual_ratio;
    status->dropped = w->inbox_dropped + w->dropped + stats.late_launches;
    status->is_busy = w->sources.source || w->waiting.n > 0 || w->has_unsettled;
    if (settled) {
        w->orders.settle = false;
        (void)pthread_cond_broadcast(&w->settled);
    }
    (void)pthread_mutex_unlock(&w->mutex);
}

/* ---- the thread ---- */

/* NULL: no memory. */
static struct occ_attribution *new_attribution(struct occ_gpu_worker *w)
{
    const struct occ_attribution_options options = {.add_value = add_value,
                                                    .add_second = add_second,
                                                    .context = w,
                                                    .assumptions = w->sources.options.assumptions};
    return occ_attribution_new(&options);
}

/* Drops the launches and samples that wait in the attribution, and its estimates. */
static int restart(struct occ_gpu_worker *w, struct occ_error *err)
{
    struct occ_attribution *next = new_attribution(w);
    struct occ_attribution_stats stats;
    if (!next)
        return occ_no_memory(err);
    occ_attribution_get_stats(w->attribution, &stats);
    occ_attribution_free(w->attribution);
    w->attribution = next;
    occ_known_totals_clear(w->totals);
    w->dropped += stats.waiting + stats.late_launches;
    w->advanced_ns = 0;
    return 0;
}

/* Drops launches that were fed but not passed to the attribution. */
static void drop_waiting(struct occ_gpu_worker *w)
{
    w->dropped += w->waiting.n + w->taken.n;
    occ_launch_queue_remove(&w->waiting, w->waiting.n);
    w->taken.n = 0;
}

/* Restarts the attribution if the clock of launches and samples was set (waiting ones have times by the old
 * setting), if the attribution has no room for further launch configurations, or if the new source counts
 * differently. */
static int handle_restart(struct occ_gpu_worker *w, bool is_other_source, struct occ_error *err)
{
    int64_t ahead_ns = w->machine->now_ns() - w->machine->monotonic_ns();
    int64_t step_ns = w->ahead_ns ? ahead_ns - w->ahead_ns : 0;
    bool was_set = step_ns >= STEP_NS || step_ns <= -STEP_NS;
    struct occ_attribution_stats stats;
    occ_attribution_get_stats(w->attribution, &stats);
    w->ahead_ns = ahead_ns;
    if (!was_set && !is_other_source && stats.keys_refused == 0)
        return 0;
    /* final: the attribution reports all launches that it has, before it is replaced */
    occ_attribution_advance(w->attribution, w->advanced_ns, true);
    if (was_set) {
        drop_waiting(w);
        occ_source_select_close(&w->sources); /* the source converts times with the old clock offset */
    }
    return restart(w, err);
}

static int do_round(struct occ_gpu_worker *w, const struct orders *orders, struct occ_error *err)
{
    bool final = orders->settle || orders->stop;
    bool is_other = occ_source_select_poll(&w->sources, w->machine->monotonic_ns(), orders->wanted_until_ns,
                                           orders->paused_until_ns);
    int status = handle_restart(w, is_other, err);
    if (status != 0)
        return status;
    int64_t until_ns = w->machine->now_ns() - (final ? 0 : w->watermark_ns);
    if (until_ns > w->advanced_ns)
        w->advanced_ns = until_ns;
    w->dropped += occ_launch_queue_merge(&w->waiting, &w->taken, WAITING_MAX);
    read_samples(w);
    read_energy(w, orders);
    double all_ns = w->clear_ns + w->unclear_ns;
    if (occ_source_select_burst(&w->sources, all_ns >= CLARITY_NS && w->unclear_ns >= UNCLEAR * all_ns))
        w->clear_ns = w->unclear_ns = 0;
    w->dropped += occ_launch_queue_release(&w->waiting, w->attribution, w->advanced_ns);
    occ_attribution_advance(w->attribution, w->advanced_ns, final);
    close_seconds(w, final);
    publish(w, orders->settle);
    return 0;
}

/* Restarts without estimates; sources are tried again after a while. */
static void fail_round(struct occ_gpu_worker *w, const struct orders *orders, const struct occ_error *err)
{
    drop_waiting(w);
    occ_source_select_fail(&w->sources, err);
    (void)restart(w, NULL);
    publish(w, orders->settle);
}

/* True if the thread may sleep until a request: nothing waits that only a further round settles. */
static bool is_idle(const struct occ_gpu_worker *w)
{
    return !w->sources.source && w->waiting.n == 0 && !w->has_unsettled && w->inbox.n == 0 &&
           w->machine->monotonic_ns() >= w->orders.wanted_until_ns;
}

/* Sleeps until the next round is due or the loop has a request; without work until the next request. */
static void sleep_a_round(struct occ_gpu_worker *w)
{
    int64_t at_ns = w->machine->monotonic_ns() + occ_source_select_read_every_ns(&w->sources);
    const struct timespec until = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000};
    const struct orders *o = &w->orders;
    (void)pthread_mutex_lock(&w->mutex);
    for (int over = 0; !o->stop && !o->settle && !o->now && over != ETIMEDOUT;)
        over = is_idle(w) ? pthread_cond_wait(&w->wake, &w->mutex)
                          : pthread_cond_timedwait(&w->wake, &w->mutex, &until);
    (void)pthread_mutex_unlock(&w->mutex);
}

/* Takes the inbox and the loop's requests. */
static struct orders take_orders(struct occ_gpu_worker *w)
{
    (void)pthread_mutex_lock(&w->mutex);
    struct occ_launch_queue empty = w->taken;
    w->taken = w->inbox;
    w->inbox = empty;
    w->status.is_busy |= w->taken.n > 0;
    w->watermark_ns = occ_record_age_watermark(&w->age);
    if (w->waiting.n > WAITING_MAX / 2)
        w->watermark_ns = OCC_RECORD_AGE_MIN_NS + OCC_RECORD_AGE_MARGIN_NS;
    w->orders.now = false;
    struct orders orders = w->orders;
    char *offered = w->offered;
    w->offered = NULL;
    (void)pthread_mutex_unlock(&w->mutex);
    if (offered)
        occ_source_select_offer(&w->sources, offered);
    return orders;
}

/* false: this was the last round. */
static bool work_a_round(struct occ_gpu_worker *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct orders orders = take_orders(w);
    if (do_round(w, &orders, &err) != 0)
        fail_round(w, &orders, &err);
    if (orders.stop)
        occ_source_select_close(&w->sources);
    return !orders.stop;
}

static void *work(void *argument)
{
    struct occ_gpu_worker *w = argument;
    do
        sleep_a_round(w);
    while (work_a_round(w));
    return NULL;
}

int64_t occ_gpu_worker_step(struct occ_gpu_worker *w)
{
    (void)work_a_round(w);
    (void)pthread_mutex_lock(&w->mutex);
    int64_t next_ns =
        is_idle(w) ? INT64_MAX : w->machine->monotonic_ns() + occ_source_select_read_every_ns(&w->sources);
    (void)pthread_mutex_unlock(&w->mutex);
    return next_ns;
}

/* ---- called by the loop ---- */

void occ_gpu_worker_want(struct occ_gpu_worker *w, int64_t wanted_until_ns, int64_t paused_until_ns)
{
    int64_t now_ns = w->machine->monotonic_ns();
    (void)pthread_mutex_lock(&w->mutex);
    /* a program may wait for this GPU's first samples */
    bool begins = w->orders.wanted_until_ns <= now_ns && wanted_until_ns > now_ns;
    if (wanted_until_ns > w->orders.wanted_until_ns)
        w->orders.wanted_until_ns = wanted_until_ns;
    w->orders.now |= begins || w->orders.paused_until_ns != paused_until_ns;
    w->orders.paused_until_ns = paused_until_ns;
    (void)pthread_cond_signal(&w->wake);
    (void)pthread_mutex_unlock(&w->mutex);
}

void occ_gpu_worker_offer(struct occ_gpu_worker *w, const char *cupti)
{
    char *offered = strdup(cupti);
    (void)pthread_mutex_lock(&w->mutex);
    char *last = w->offered;
    w->offered = offered ? offered : last;
    (void)pthread_mutex_unlock(&w->mutex);
    if (offered)
        free(last);
}

void occ_gpu_worker_feed(struct occ_gpu_worker *w, const struct occ_attribution_launch *launches, size_t n)
{
    int64_t now_ns = w->machine->now_ns();
    (void)pthread_mutex_lock(&w->mutex);
    for (size_t i = 0; i < n; i++) {
        occ_record_age_add(&w->age, launches[i].end_ns, now_ns);
        bool is_launch = !launches[i].key.is_memory;
        bool is_dropped = launches[i].end_ns > now_ns + FUTURE_NS ||
                          !occ_launch_queue_add(&w->inbox, &launches[i], INBOX_MAX);
        w->inbox_dropped += is_launch && is_dropped;
        w->status.launches += is_launch;
    }
    (void)pthread_mutex_unlock(&w->mutex);
}

void occ_gpu_worker_take(struct occ_gpu_worker *w, struct occ_gpu_results *ret_results)
{
    (void)pthread_mutex_lock(&w->mutex);
    *ret_results = w->results;
    w->results = (struct occ_gpu_results){0};
    (void)pthread_mutex_unlock(&w->mutex);
}

void occ_gpu_worker_settle(struct occ_gpu_worker *w, int64_t until_ns)
{
    const struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    (void)pthread_mutex_lock(&w->mutex);
    w->orders.settle = true;
    (void)pthread_cond_signal(&w->wake);
    while (w->orders.settle && pthread_cond_timedwait(&w->settled, &w->mutex, &until) == 0)
        ;
    (void)pthread_mutex_unlock(&w->mutex);
}

void occ_gpu_worker_get_status(struct occ_gpu_worker *w, struct occ_gpu_status *ret_status)
{
    (void)pthread_mutex_lock(&w->mutex);
    *ret_status = w->status;
    ret_status->has_results = !occ_gpu_results_is_empty(&w->results);
    (void)pthread_mutex_unlock(&w->mutex);
}

static void free_memory(struct occ_gpu_worker *w)
{
    occ_energy_close(&w->energy);
    occ_attribution_free(w->attribution);
    occ_known_totals_free(w->totals);
    occ_gpu_results_free(&w->results);
    free(w->offered);
    free(w->sources.offered);
    free(w->inbox.items);
    free(w->taken.items);
    free(w->waiting.items);
    (void)pthread_cond_destroy(&w->wake);
    (void)pthread_cond_destroy(&w->settled);
    (void)pthread_mutex_destroy(&w->mutex);
    free(w);
}

int occ_gpu_worker_new(const struct occ_gpu_found *gpu, const struct occ_sampler_options *options,
                       struct occ_profiler_watch *watch, struct occ_gpu_worker **ret_worker,
                       struct occ_error *err)
{
    struct occ_gpu_worker *w = calloc(1, sizeof *w);
    pthread_condattr_t monotonic;
    if (!w)
        return occ_no_memory(err);
    w->gpu = *gpu;
    w->machine = options->machine;
    w->sources = (struct occ_source_select){
        .options = *options, .gpu = *gpu, .watch = watch, .state = OCC_SOURCE_IDLE};
    (void)snprintf(w->sources.reason, sizeof w->sources.reason, "%s", occ_source_state_text(OCC_SOURCE_IDLE));
    w->scale = (struct occ_ratio_scale){gpu->sm_count, gpu->max_warps_per_sm, 0};
    w->energy.kind = w->machine->energy;
    memcpy(w->energy.uuid, gpu->uuid, sizeof w->energy.uuid);
    w->status.ordinal = gpu->ordinal;
    w->status.energy_j = (double)NAN;
    memcpy(w->status.uuid, gpu->uuid, sizeof gpu->uuid);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&w->mutex, NULL);
    (void)pthread_cond_init(&w->wake, &monotonic);
    (void)pthread_cond_init(&w->settled, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    w->attribution = new_attribution(w);
    w->totals = occ_known_totals_new();
    int status = w->attribution && w->totals ? 0 : occ_no_memory(err);
    if (status == 0) {
        publish(w, false);
        int failed = w->machine->has_threads ? pthread_create(&w->thread, NULL, work, w) : 0;
        status = failed ? occ_fail_errno(err, failed, "cannot start a sampler's thread") : 0;
    }
    if (status != 0)
        free_memory(w);
    else
        *ret_worker = w;
    return status;
}

void occ_gpu_worker_free(struct occ_gpu_worker *w)
{
    if (!w)
        return;
    (void)pthread_mutex_lock(&w->mutex);
    w->orders.stop = true;
    (void)pthread_cond_signal(&w->wake);
    (void)pthread_mutex_unlock(&w->mutex);
    if (w->machine->has_threads)
        (void)pthread_join(w->thread, NULL);
    else
        (void)work_a_round(w);
    free_memory(w);
}
