/*
 * The one thread of the guest. Sleeps until a buffer was delivered, the program ends, or a second passed; then
 *
 *   always       drains what was delivered
 *   each second  asks CUPTI for what is complete, watches for trouble, measures the cost, keeps the connection
 *   at the end   takes what CUPTI still has, says CLOSED
 *
 * All signals are blocked in it, and it is nicer than its host. Nothing joins it: the program's end must not wait
 * for a CUPTI that hangs.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "guest.h"
#include "guest_log.h"
#include "wake.h"
#include "watch.h"

#define SECOND_NS     UINT64_C(1000000000)
#define NICER         10
#define FLUSH_RETRIES 3u

struct helper {
    struct occ_guest *guest;
    uint64_t next_round_ns;
    uint32_t flush_failures;  /* in a row */
    bool cupti_is_off_limits; /* no call to it any more */
    bool log_is_full;         /* no exact value any more */
    struct occ_watch watch;
};

static void step_aside(struct helper *h, const char *reason)
{
    h->cupti_is_off_limits = true;
    occ_exact_retire(&h->guest->exact);
    occ_guest_say(h->guest, OCC_LEVEL_TRACE, reason);
}

static bool has_buffers_out(const struct occ_pool *pool)
{
    return atomic_load_explicit(&pool->taken, memory_order_relaxed) !=
           atomic_load_explicit(&pool->delivered, memory_order_relaxed);
}

static bool has_had_buffers(const struct occ_pool *pool)
{
    return atomic_load_explicit(&pool->taken, memory_order_relaxed) != 0;
}

/* Asks only when CUPTI has something: also because a call before the driver is ready could hang. */
static void flush(struct helper *h, uint32_t flags)
{
    struct occ_guest *g = h->guest;
    if (h->cupti_is_off_limits || !has_buffers_out(&g->pool))
        return;
    uint32_t result = g->cupti.flush_all(flags);
    h->flush_failures = result == OCC_CUPTI_SUCCESS ? 0 : h->flush_failures + 1;
    if (h->flush_failures >= FLUSH_RETRIES)
        step_aside(h, "stopped early: CUPTI answers no more (shut down by another profiler of the program?)");
}

static void count_dropped(struct helper *h)
{
    struct occ_guest *g = h->guest;
    size_t dropped = 0;
    if (h->cupti_is_off_limits || !g->cupti.get_dropped || !has_had_buffers(&g->pool))
        return;
    if (g->cupti.get_dropped(NULL, 0, &dropped) != OCC_CUPTI_SUCCESS || dropped == 0)
        return;
    occ_ring_count_loss(&g->ring, OCC_LOSS_CUPTI_DROPPED, dropped);
    g->pairs.lost += dropped;
}

/* libcupti before 13.3 runs out of device buffers with CUDA graphs, and then gives records without times. */
static void watch_times(struct helper *h)
{
    const struct occ_drain *d = &h->guest->drain;
    if (!occ_watch_round(&h->watch, d->records, d->bad_times))
        return;
    if (h->watch.is_without_times)
        occ_guest_say(
            h->guest, OCC_LEVEL_SHAPES,
            "CUPTI gives no times any more (before 13.3 it does so after many launches of CUDA graphs)");
    else
        occ_guest_say(h->guest, OCC_LEVEL_TRACE, "");
}

static void watch_others(struct helper *h)
{
    if (!h->cupti_is_off_limits && atomic_load_explicit(&h->guest->foreign_buffer, memory_order_relaxed))
        step_aside(h, "stopped early: another profiler of the program took CUPTI over");
}

/* Kernels need not run one after the other for values that cannot be said. */
static void end_exact(struct helper *h)
{
    if (h->log_is_full)
        return;
    h->log_is_full = true;
    occ_exact_retire(&h->guest->exact);
    if (!h->cupti_is_off_limits)
        occ_guest_say(h->guest, OCC_LEVEL_TRACE,
                      "exact values only of the beginning: half of the log is full");
}

/* A record that makes no sense would be the last that the daemon reads. */
static bool log_measured(void *context, struct occ_record_measured *record)
{
    struct helper *h = context;
    struct occ_ring_producer *ring = &h->guest->ring;
    record->head = ring->head;
    if (!occ_record_measured_is_valid(record))
        return false;
    bool is_said = occ_ring_log(ring, &record->record, sizeof *record, NULL, 0);
    if (!is_said)
        end_exact(h);
    return is_said;
}

static void settle_exact(struct helper *h, bool all)
{
    struct occ_guest *g = h->guest;
    struct occ_session *next;
    atomic_store(&g->exact.lost, g->pairs.lost);
    for (struct occ_session *s = occ_exact_take(&g->exact); s; s = next) {
        next = s->next;
        occ_pairs_add_session(&g->pairs, s);
    }
    occ_pairs_settle(&g->pairs, all, log_measured, h);
}

static void watch_exact(struct helper *h)
{
    char reason[OCC_REASON_BYTES];
    struct occ_guest *g = h->guest;
    if (!g->drain.pairs)
        return;
    settle_exact(h, false);
    if (!h->cupti_is_off_limits && !h->watch.is_without_times && occ_exact_problem(&g->exact, reason))
        occ_guest_say(g, OCC_LEVEL_TRACE, reason);
}

/* The last word on a run that was to be measured exactly: how much of it was. */
static void conclude_exact(struct helper *h)
{
    char reason[OCC_REASON_BYTES];
    struct occ_guest *g = h->guest;
    if (!g->drain.pairs)
        return;
    settle_exact(h, true);
    if (h->cupti_is_off_limits || h->watch.is_without_times)
        return;
    (void)occ_exact_problem(&g->exact, reason);
    if (reason[0] == '\0' || g->pairs.measured > 0)
        (void)snprintf(reason, sizeof reason,
                       "--exact: kernels ran one after the other; %llu of %llu launches measured",
                       (unsigned long long)g->pairs.measured, (unsigned long long)g->pairs.launches);
    occ_guest_say(g, g->pairs.measured > 0 ? OCC_LEVEL_FULL : OCC_LEVEL_TRACE, reason);
}

static void do_round(struct helper *h, uint64_t now_ns)
{
    struct occ_guest *g = h->guest;
    flush(h, 0);
    occ_drain_all(&g->drain);
    count_dropped(h);
    watch_others(h);
    watch_times(h);
    watch_exact(h);
    occ_pool_tend(&g->pool);
    occ_costs_measure(&g->costs, &g->drain);
    occ_ring_heartbeat(&g->ring, occ_clock_ns(CLOCK_REALTIME));
    (void)occ_link_tend(&g->link, &g->ring, &g->memfd, now_ns);
}

void occ_helper_close_ring(struct occ_guest *guest)
{
    uint64_t now_ns = occ_clock_ns(CLOCK_REALTIME);
    struct occ_record_closed record = {
        .record.type = OCC_RECORD_CLOSED, .time_ns = now_ns, .launches = guest->ring.head};
    (void)occ_ring_log(&guest->ring, &record.record, sizeof record, NULL, 0);
    occ_ring_heartbeat(&guest->ring, now_ns);
    occ_ring_close(&guest->ring);
}

/* A record that is still incomplete now is lost by the end of the program, not by CUPTI. */
static void do_last_round(struct helper *h)
{
    struct occ_guest *g = h->guest;
    if (g->drain.pairs && !h->cupti_is_off_limits)
        occ_exact_finish(&g->exact);
    flush(h, 0);
    occ_drain_all(&g->drain);
    g->drain.by_force = true;
    flush(h, OCC_CUPTI_FLUSH_FORCED);
    occ_drain_all(&g->drain);
    count_dropped(h);
    conclude_exact(h);
    occ_costs_measure(&g->costs, &g->drain);
    occ_helper_close_ring(g);
    g->link.retry_ns = 0; /* the last chance to be heard */
    (void)occ_link_tend(&g->link, &g->ring, &g->memfd, occ_clock_ns(CLOCK_MONOTONIC));
    occ_wake(&g->finished);
}

/* A thread begins with the scheduling of the one that made it; to real-time scheduling, being nice means nothing. */
static void yield_to_the_program(void)
{
    const struct sched_param none = {0};
    int policy = sched_getscheduler(0);
    if (policy == SCHED_FIFO || policy == SCHED_RR)
        (void)sched_setscheduler(0, SCHED_OTHER, &none);
    int nice = getpriority(PRIO_PROCESS, 0); /* of this thread, on Linux */
    (void)setpriority(PRIO_PROCESS, 0, nice + NICER < 19 ? nice + NICER : 19);
}

/* A thread that ends runs what CUPTI wants done at a thread's end, while the program's end takes CUPTI itself apart. So
 * it does not end; the process does. */
static void wait_for_the_end(void)
{
    for (;;)
        (void)pause();
}

static void *run(void *arg)
{
    struct helper h = {.guest = arg};
    struct occ_guest *g = h.guest;
    (void)pthread_setname_np(pthread_self(), "occtrace");
    yield_to_the_program();
    h.next_round_ns = occ_clock_ns(CLOCK_MONOTONIC) + SECOND_NS;
    while (!atomic_load_explicit(&g->closing, memory_order_acquire)) {
        uint32_t seen = atomic_load_explicit(&g->wake, memory_order_acquire);
        occ_drain_all(&g->drain);
        uint64_t now_ns = occ_clock_ns(CLOCK_MONOTONIC);
        if (now_ns >= h.next_round_ns) {
            do_round(&h, now_ns);
            h.next_round_ns = now_ns + SECOND_NS;
        } else if (!atomic_load_explicit(&g->closing, memory_order_acquire)) {
            occ_wake_wait(&g->wake, seen, h.next_round_ns - now_ns);
        }
    }
    do_last_round(&h);
    wait_for_the_end();
    return NULL;
}

bool occ_helper_start(struct occ_guest *guest)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited by the new thread, before it runs */
    int rc = pthread_create(&thread, &attributes, run, guest);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return rc == 0;
}
