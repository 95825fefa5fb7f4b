/*
 * The one thread of the guest. It sleeps until a buffer is delivered, the program ends, or a second has
 * passed:
 *
 *   always       drains the delivered buffers
 *   each second  asks CUPTI for complete records, looks for problems, measures the cost, connects
 *   at the end   takes the records that CUPTI still has, writes CLOSED, waits until a daemon owns the ring
 *
 * All its signals are blocked. Its nice value is the program's: a nicer helper of a nice program would not
 * run in time on a full machine, and its work is less than 1 % of a core. No thread joins it: the program's
 * end must not wait for a CUPTI that hangs.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "guest.h"
#include "threads.h"
#include "wake.h"

#define SECOND_NS UINT64_C(1000000000)

struct helper {
    struct occ_guest *guest;
    uint64_t next_round_ns;
};

static bool has_buffers_out(const struct occ_pool *pool)
{
    return atomic_load_explicit(&pool->taken, memory_order_relaxed) !=
           atomic_load_explicit(&pool->delivered, memory_order_relaxed);
}

static bool has_had_buffers(const struct occ_pool *pool)
{
    return atomic_load_explicit(&pool->taken, memory_order_relaxed) != 0;
}

/* Only while CUPTI has a buffer: otherwise it has nothing to return, and a call before the driver is ready
 * could hang. */
static void flush(struct occ_guest *g, uint32_t flags)
{
    if (!occ_recording_has_cupti(&g->recording) || !has_buffers_out(&g->pool) ||
        occ_drain_is_stopped(&g->drain))
        return;
    uint32_t result = g->tracing.call.flush_all(flags);
    occ_drain_step(&g->drain);
    occ_recording_flushed(&g->recording, result);
}

static void count_dropped(struct occ_guest *g)
{
    size_t dropped = 0;
    if (!occ_recording_has_cupti(&g->recording) || !g->tracing.call.get_dropped ||
        !has_had_buffers(&g->pool) || occ_drain_is_stopped(&g->drain))
        return;
    if (g->tracing.call.get_dropped(NULL, 0, &dropped) == OCC_CUPTI_SUCCESS && dropped > 0)
        occ_ring_count_loss(&g->ring, OCC_LOSS_CUPTI_DROPPED, dropped);
}

/* Writes a MEASURED record. Invalid records are skipped: the daemon would stop reading there. */
static int log_measured(void *context, struct occ_record_measured *record)
{
    struct occ_ring_producer *ring = &((struct occ_guest *)context)->ring;
    record->head = ring->head;
    if (!occ_record_measured_is_valid(record))
        return 0;
    return occ_ring_log(ring, &record->record, sizeof *record, NULL, 0) ? 1 : -1;
}

static bool push_found(void *context, struct occ_ring_launch *launch)
{
    return occ_drain_found(&((struct occ_guest *)context)->drain, launch);
}

static void lose(void *context, enum occ_loss_cause cause, uint64_t n)
{
    occ_ring_count_loss(&((struct occ_guest *)context)->ring, cause, n);
}

/* is_last: reports how many launches of a run with --exact were measured. */
static void poll_exact(struct occ_guest *g, bool is_last)
{
    const struct occ_exact_sink sink = {g, log_measured, push_found, lose};
    struct occ_exact_report report, last;
    if (!g->exact.run)
        return;
    g->exact.call->poll(g->exact.run, is_last, &sink, &report);
    if (g->recording.is_gone)
        g->exact.call->retire(g->exact.run);
    if (report.has_failed && !is_last) { /* the daemon may measure the launches instead */
        if (g->recording.is_gone)
            g->exact.call->finish(g->exact.run, false);
        else
            g->exact.call->stop(g->exact.run);
        g->exact.call->poll(g->exact.run, true, &sink, &last); /* launches that wait in the measurement */
        g->exact.run = NULL;
    }
    if (!occ_recording_is_full(&g->recording) || (!is_last && !report.is_new))
        return;
    occ_guest_report(g, is_last && report.measured > 0 ? OCC_LEVEL_FULL : OCC_LEVEL_TRACE,
                     occ_clock_ns(CLOCK_REALTIME), report.reason);
}

static void measure_cost(struct occ_guest *g)
{
    occ_ring_set_cost(&g->ring, OCC_COST_RECORDS, g->drain.records);
    occ_ring_set_cost(&g->ring, OCC_COST_BUFFERS, g->drain.buffers);
    occ_ring_set_cost(&g->ring, OCC_COST_CALLBACK_NS,
                      atomic_load_explicit(&g->pool.callback_ns, memory_order_relaxed));
    occ_ring_set_cost(&g->ring, OCC_COST_HELPER_CPU_NS, occ_clock_ns(CLOCK_THREAD_CPUTIME_ID));
    int worker = atomic_load_explicit(&g->worker_clock, memory_order_relaxed);
    if (worker)
        occ_ring_set_cost(&g->ring, OCC_COST_WORKER_CPU_NS, occ_clock_ns(worker));
    occ_ring_set_cost(&g->ring, OCC_COST_PROCESS_CPU_NS, occ_clock_ns(CLOCK_PROCESS_CPUTIME_ID));
}

/* Number of CUPTI's running threads. The kernel encodes a thread's id in the number of its CPU clock. */
static uint32_t count_workers(struct occ_guest *g)
{
    int clock = atomic_load_explicit(&g->worker_clock, memory_order_relaxed);
    return occ_workers_alive(&g->workers, clock != 0 ? ~(clock >> 3) : 0);
}

/* true if the main thread has ended by pthread_exit(3) and no other thread of the program is left: without
 * the guest the process would have ended with status 0. An ended thread has no memory and so no executable.
 * No descriptor is opened: its number could be one that the program has just closed and relies on. */
static bool is_last_thread(struct occ_guest *g)
{
    struct stat tasks;
    char path;
    return readlink("/proc/self/exe", &path, 1) < 0 && errno == ENOENT &&
           readlink("/proc/thread-self/exe", &path, 1) == 1 && stat("/proc/self/task", &tasks) == 0 &&
           tasks.st_nlink == 2u + 2u + count_workers(g); /* ., .., the main thread, this one */
}

/* Also if a thread is the program's that did not run yet when the guest started. */
static bool is_surely_last_thread(struct occ_guest *g)
{
    return is_last_thread(g) && (!occ_workers_settle(&g->workers) || is_last_thread(g));
}

static void do_round(struct helper *h, uint64_t now_ns)
{
    struct occ_guest *g = h->guest;
    flush(g, 0);
    occ_drain_all(&g->drain);
    count_dropped(g);
    occ_recording_round(g);
    poll_exact(g, false);
    occ_pool_maintain(&g->pool);
    measure_cost(g);
    occ_ring_heartbeat(&g->ring, occ_clock_ns(CLOCK_REALTIME));
    (void)occ_link_poll(&g->link, &g->ring, &g->memfd, now_ns);
}

/* A record that is still incomplete now is lost by the program's end, not by CUPTI. */
static void do_last_round(struct occ_guest *g)
{
    if (g->exact.run)
        g->exact.call->finish(g->exact.run, !g->recording.is_gone);
    flush(g, 0);
    occ_drain_all(&g->drain);
    g->drain.by_force = true;
    flush(g, OCC_CUPTI_FLUSH_FORCED);
    occ_drain_all(&g->drain);
    count_dropped(g);
    poll_exact(g, true);
    measure_cost(g);
    /* otherwise the ring stays open: the number of missing records is unknown */
    if (!occ_drain_is_stopped(&g->drain)) {
        occ_recording_report(g);
        occ_guest_close_ring(g);
    }
    occ_wake(&g->finished);
    (void)occ_link_finish(&g->link, &g->ring, &g->memfd, occ_exit_limit_ns(g));
    occ_wake(&g->settled);
}

/* Ends the process as glibc does after the last thread: with the handlers of exit(3), including the
 * guest's. */
static void end_the_process(struct helper *h)
{
    int running = OCC_GUEST_RUNNING;
    if (atomic_compare_exchange_strong(&h->guest->state, &running, OCC_GUEST_CLOSED)) {
        do_last_round(h->guest);
        exit(EXIT_SUCCESS);
    }
}

/* Never returns: ending the thread would run CUPTI's thread-exit handlers while the program's exit tears
 * CUPTI down. The end of the process ends the thread. */
static void wait_for_the_end(void)
{
    for (;;)
        (void)pause();
}

/* A second from now, or the next start or end of a window. */
static uint64_t next_round_ns(const struct occ_guest *g, uint64_t now_ns)
{
    uint64_t wait_ns = occ_recording_wait_ns(g, now_ns);
    return now_ns + (wait_ns < SECOND_NS ? wait_ns : SECOND_NS);
}

static void *run(void *arg)
{
    struct helper h = {.guest = arg};
    struct occ_guest *g = h.guest;
    occ_thread_settle();
    clockid_t cpu_clock = 0;
    if (pthread_getcpuclockid(pthread_self(), &cpu_clock) == 0)
        atomic_store_explicit(&g->helper_clock, (int)cpu_clock, memory_order_relaxed);
    h.next_round_ns = next_round_ns(g, occ_clock_ns(CLOCK_MONOTONIC));
    while (!atomic_load_explicit(&g->closing, memory_order_acquire)) {
        uint32_t seen = atomic_load_explicit(&g->wake, memory_order_acquire);
        occ_drain_all(&g->drain);
        uint64_t now_ns = occ_clock_ns(CLOCK_MONOTONIC);
        if (now_ns >= h.next_round_ns) {
            do_round(&h, now_ns);
            if (is_surely_last_thread(g))
                end_the_process(&h);
            h.next_round_ns = next_round_ns(g, now_ns);
        } else if (!atomic_load_explicit(&g->closing, memory_order_acquire)) {
            occ_wake_wait(&g->wake, seen, h.next_round_ns - now_ns);
        }
    }
    do_last_round(g);
    wait_for_the_end();
    return NULL;
}

bool occ_helper_start(struct occ_guest *guest)
{
    return occ_thread_start(run, guest);
}
