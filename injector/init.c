/*
 * The start. Inside cuInit the driver loads the library that CUDA_INJECTION64_PATH names and calls its
 * InitializeInjection: the program waits for the guest here, and only here. Always returns 1: a failure of
 * the guest must not affect the program.
 *
 * Order: environment; another profiler?; ring; libcupti and its records; helper. Signals are blocked
 * meanwhile, so that the worker that CUPTI starts has them blocked as well, and is recognised by it
 * (workers.h).
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "ask.h"
#include "clock.h"
#include "coexist.h"
#include "plugin.h"
#include "guest.h"
#include "guest_log.h"
#include "process.h"

/* Size of a ring that holds only a reason. */
#define QUIET_SLOTS     OCC_RING_MIN_SLOTS
#define QUIET_LOG_BYTES UINT64_C(65536)

static bool make_ring(struct occ_guest *g, uint32_t slots, uint64_t log_bytes)
{
    int rc = occ_ring_create(&g->ring, slots, log_bytes);
    if (rc != 0) {
        occ_guest_log("no ring: error %d", -rc);
        return false;
    }
    g->memfd = occ_fd_adopt(g->ring.fd);
    g->ring.fd = g->memfd.fd;
    return occ_process_log(&g->ring, &g->env, secure_getenv);
}

/* Becomes QUIET: offers the daemon a ring that holds only the reason. */
static void stay_quiet(struct occ_guest *g, const char *reason)
{
    if (!g->ring.header && !make_ring(g, QUIET_SLOTS, QUIET_LOG_BYTES)) {
        atomic_store(&g->state, OCC_GUEST_CLOSED);
        return;
    }
    occ_guest_report(g, OCC_LEVEL_NOTHING, occ_clock_ns(CLOCK_REALTIME), reason);
    (void)occ_link_poll(&g->link, &g->ring, &g->memfd, occ_clock_ns(CLOCK_MONOTONIC));
    if (g->tracing.is_refused)
        occ_ask_start(g, reason);
    else
        atomic_store(&g->state, OCC_GUEST_QUIET);
}

/* Prepares everything that CUPTI's callbacks need. */
static bool prepare(struct occ_guest *g, char reason[OCC_REASON_BYTES])
{
    if (make_ring(g, (uint32_t)g->env.ring_slots, OCC_RING_DEFAULT_LOG_BYTES) &&
        occ_pool_init(&g->pool, (uint32_t)g->env.buffers, (size_t)g->env.buffer_bytes) == 0 &&
        occ_drain_init(&g->drain, &g->ring, &g->tracing, &g->pool, &g->exact) == 0)
        return true;
    (void)snprintf(reason, OCC_REASON_BYTES, "no memory for the ring or the buffers");
    return false;
}

/* Writes the run's note: invalid variables, then peculiarities of libcupti. */
static void log_note(struct occ_guest *g)
{
    char note[512];
    size_t used = 0;
    for (unsigned int row = 0; occ_env_name(row); row++)
        if (g->env.rejected & (1u << row) && used < sizeof note)
            used += (size_t)snprintf(note + used, sizeof note - used, "%s%s", used ? ", " : "",
                                     occ_env_name(row));
    if (used > 0)
        occ_guest_log("%s: not valid, ignored", note);
    if (used < sizeof note)
        (void)snprintf(note + used, sizeof note - used, "%s%s", used ? ": not valid, ignored; " : "",
                       g->tracing.note);
    (void)occ_process_log_cupti(&g->ring, g->tracing.cupti.path, note, g->exact.run != NULL);
}

/* Starts exact measurement; `reason`: its method, or why there is none. */
static void start_exact(struct occ_guest *g, char reason[OCC_REASON_BYTES])
{
    g->exact.call = occ_plugin_open(occ_guest_path(), "libocctrace-exact.so", "occ_exact_library",
                                    OCC_EXACT_ABI, "exact values", reason);
    g->exact.run =
        g->exact.call ? g->exact.call->start(&g->tracing.cupti, &g->drain.is_stopped, reason) : NULL;
}

static void run_or_stay_quiet(struct occ_guest *g, uint64_t began_ns)
{
    char reason[OCC_REASON_BYTES] = "";
    occ_workers_begin();
    if (occ_coexist_must_yield(environ, reason, sizeof reason) || !prepare(g, reason) ||
        !occ_tracing_start(&g->tracing, g->env.cupti, &g->pool.zero, reason)) {
        stay_quiet(g, reason);
        return;
    }
    reason[0] = '\0'; /* reason of a libcupti that was skipped */
    if (g->env.exact)
        start_exact(g, reason);
    if (g->env.nvtx && occ_tracing_add_ranges(&g->tracing, occ_guest_path(), reason))
        (void)occ_ranges_start(&g->drain.ranges, &g->ring, g->tracing.nvtx);
    log_note(g);
    occ_guest_report(g, OCC_LEVEL_TRACE, occ_clock_ns(CLOCK_REALTIME), reason);
    occ_recording_start(g);
    (void)occ_link_poll(&g->link, &g->ring, &g->memfd, occ_clock_ns(CLOCK_MONOTONIC));
    occ_workers_end(&g->workers); /* late: most of CUPTI's threads run by now */
    occ_ring_set_cost(&g->ring, OCC_COST_INIT_NS, occ_clock_ns(CLOCK_MONOTONIC) - began_ns);
    atomic_store(&g->state, OCC_GUEST_RUNNING);
    if (occ_helper_start(g))
        return;
    (void)occ_tracing_enable(&g->tracing, false);
    if (g->exact.run)
        g->exact.call->stop(g->exact.run);
    stay_quiet(g, "the system allowed no further thread");
}

/* Resets all members after `state`: a child of fork inherits its parent's. */
static void reset(struct occ_guest *g)
{
    size_t kept = offsetof(struct occ_guest, pid);
    memset((char *)g + kept, 0, sizeof *g - kept);
    g->ring.fd = -1;
    g->memfd = OCC_FD_NONE;
    g->pid = getpid();
}

static void start(struct occ_guest *g)
{
    char *(*get)(const char *) = secure_getenv;
    uint64_t began_ns = occ_clock_ns(CLOCK_MONOTONIC);
    reset(g);
    occ_env_read(&g->env, get);
    if (g->env.disabled || getauxval(AT_SECURE)) {
        atomic_store(&g->state, OCC_GUEST_CLOSED);
        return;
    }
    occ_guest_log_open(g->env.log);
    const char *refusal = occ_env_has_bad_socket(&g->env)
                              ? "OCCTRACE_SOCKET is not an absolute path of at most 107 bytes"
                              : occ_preflight_refusal();
    if (refusal) {
        occ_guest_log("stays out: %s", refusal);
        atomic_store(&g->state, OCC_GUEST_CLOSED);
        return;
    }
    occ_link_init(&g->link, g->env.socket, get);
    occ_fork_prepare();
    run_or_stay_quiet(g, began_ns);
    occ_exit_prepare();
}

void occ_guest_start(void)
{
    struct occ_guest *g = occ_guest();
    int idle = OCC_GUEST_IDLE;
    if (!atomic_compare_exchange_strong(&g->state, &idle, OCC_GUEST_STARTING))
        return;
    sigset_t mask, before;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &before);
    mask = occ_workers_mask(&before);
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    start(g);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
    int saved = errno;
    occ_guest_start();
    errno = saved;
    return 1;
}
