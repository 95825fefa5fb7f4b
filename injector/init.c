/*
 * The beginning. The driver loads the library that CUDA_INJECTION64_PATH names inside cuInit and calls its
 * InitializeInjection: the program waits for us here, and only here. Always returns 1, whatever fails: a program is
 * never worse off for our trouble.
 *
 * Order: environment; another profiler?; libcupti; ring; CUPTI on; helper. Signals are blocked meanwhile, so that
 * the worker that CUPTI makes has them blocked as well.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clock.h"
#include "coexist.h"
#include "guest.h"
#include "guest_log.h"
#include "process.h"

/* A ring in which only the reason is said. */
#define QUIET_SLOTS     OCC_RING_MIN_SLOTS
#define QUIET_LOG_BYTES UINT64_C(65536)

static struct occ_guest the_guest;

struct occ_guest *occ_guest(void)
{
    return &the_guest;
}

const char *occ_guest_path(void)
{
    static char path[PATH_MAX];
    Dl_info info;
    if (path[0] == '\0' && dladdr(path, &info) != 0 && info.dli_fname && !realpath(info.dli_fname, path))
        path[0] = '\0';
    return path;
}

void occ_guest_say(struct occ_guest *guest, enum occ_level level, const char *reason)
{
    static const char *const words[] = {
#define X(name, word, text) word,
        OCC_LEVELS(X)
#undef X
    };
    struct occ_record_state record = {
        .record.type = OCC_RECORD_STATE,
        .time_ns = occ_clock_ns(CLOCK_REALTIME),
        .level = level,
        .cupti_version = guest->cupti.version,
    };
    (void)snprintf(record.reason, sizeof record.reason, "%s", reason);
    (void)occ_ring_log(&guest->ring, &record.record, sizeof record, NULL, 0);
    occ_guest_log("level %s%s%s", words[level], reason[0] ? ": " : "", reason);
}

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

void occ_guest_stay_quiet(struct occ_guest *guest, const char *reason)
{
    if (!guest->ring.header && !make_ring(guest, QUIET_SLOTS, QUIET_LOG_BYTES)) {
        atomic_store(&guest->state, OCC_GUEST_CLOSED);
        return;
    }
    occ_guest_say(guest, OCC_LEVEL_NOTHING, reason);
    (void)occ_link_tend(&guest->link, &guest->ring, &guest->memfd, occ_clock_ns(CLOCK_MONOTONIC));
    atomic_store(&guest->state, OCC_GUEST_QUIET);
}

/* CUPTI's worker thread inherits the name that the calling thread bears while it is made. */
static uint32_t start_named(struct occ_guest *g, char reason[OCC_REASON_BYTES])
{
    char name[16] = "";
    (void)prctl(PR_GET_NAME, name);
    (void)prctl(PR_SET_NAME, OCC_COSTS_WORKER_NAME);
    uint32_t result =
        occ_cupti_start(&g->cupti, occ_callback_requested, occ_callback_completed, &g->pool.zero, reason);
    (void)prctl(PR_SET_NAME, name);
    return result;
}

/* Finds a libcupti that starts; false with the reason. */
static bool start_cupti(struct occ_guest *g, char reason[OCC_REASON_BYTES])
{
    struct occ_cupti_search search = {.configured = g->env.cupti};
    while (occ_cupti_find(&search, &g->cupti, reason)) {
        uint32_t result = start_named(g, reason);
        if (result == OCC_CUPTI_SUCCESS)
            return true;
        occ_guest_log("%s", reason);
        if (!occ_cupti_is_version_trouble(result))
            return false;
    }
    if (reason[0] == '\0')
        (void)snprintf(reason, OCC_REASON_BYTES,
                       "no libcupti was found (set OCCTRACE_CUPTI, or LD_LIBRARY_PATH)");
    return false;
}

/* Everything that must be there before CUPTI may call us. */
static bool prepare(struct occ_guest *g, char reason[OCC_REASON_BYTES])
{
    if (!make_ring(g, (uint32_t)g->env.ring_slots, OCC_RING_DEFAULT_LOG_BYTES) ||
        occ_pool_init(&g->pool, (uint32_t)g->env.buffers, (size_t)g->env.buffer_bytes) != 0 ||
        occ_drain_init(&g->drain, &g->ring, &g->cupti, &g->pool) != 0) {
        (void)snprintf(reason, OCC_REASON_BYTES, "memory for the ring or the buffers could not be had");
        return false;
    }
    return true;
}

/* Not having exact values is no reason to record nothing. */
static void start_exact(struct occ_guest *g, char reason[OCC_REASON_BYTES])
{
    if (!occ_exact_start(&g->exact, &g->cupti, reason))
        return;
    if (occ_pairs_init(&g->pairs)) {
        g->drain.pairs = &g->pairs;
        (void)snprintf(reason, OCC_REASON_BYTES, "--exact: kernels run one after the other");
    } else {
        occ_exact_stop(&g->exact);
        (void)snprintf(reason, OCC_REASON_BYTES, "no exact values: no memory");
    }
}

static void run_or_stay_quiet(struct occ_guest *g, uint64_t began_ns)
{
    char reason[OCC_REASON_BYTES] = "";
    if (occ_coexist_must_yield(environ, occ_guest_path(), reason, sizeof reason) || !prepare(g, reason) ||
        !start_cupti(g, reason)) {
        occ_guest_stay_quiet(g, reason);
        return;
    }
    if (g->env.exact)
        start_exact(g, reason);
    else
        reason[0] = '\0'; /* of a libcupti that was passed over */
    occ_guest_say(g, OCC_LEVEL_TRACE, reason);
    (void)occ_link_tend(&g->link, &g->ring, &g->memfd, occ_clock_ns(CLOCK_MONOTONIC));
    g->costs.init_ns = occ_clock_ns(CLOCK_MONOTONIC) - began_ns;
    atomic_store(&g->state, OCC_GUEST_RUNNING);
    if (!occ_helper_start(g)) {
        (void)g->cupti.disable(OCC_CUPTI_KIND_CONCURRENT_KERNEL);
        if (g->drain.pairs) /* nobody would take its sessions */
            occ_exact_stop(&g->exact);
        occ_guest_stay_quiet(g, "the system allowed no further thread");
    }
}

/* A child of fork begins with what its parent left in these. */
static void forget(struct occ_guest *g)
{
    memset(&g->ring, 0, sizeof g->ring);
    g->ring.fd = -1;
    g->memfd = OCC_FD_NONE;
    memset(&g->cupti, 0, sizeof g->cupti);
    memset(&g->pool, 0, sizeof g->pool);
    memset(&g->drain, 0, sizeof g->drain);
    memset(&g->costs, 0, sizeof g->costs);
    memset(&g->exact, 0, sizeof g->exact);
    memset(&g->pairs, 0, sizeof g->pairs);
    atomic_store(&g->wake, 0);
    atomic_store(&g->closing, 0);
    atomic_store(&g->finished, 0);
    atomic_store(&g->foreign_buffer, false);
    g->pid = getpid();
}

static void log_rejected(const struct occ_env *env)
{
    for (unsigned int row = 0; occ_env_name(row); row++)
        if (env->rejected & (1u << row))
            occ_guest_log("%s is not valid: ignored", occ_env_name(row));
}

static void start(struct occ_guest *g)
{
    char *(*get)(const char *) = secure_getenv;
    uint64_t began_ns = occ_clock_ns(CLOCK_MONOTONIC);
    forget(g);
    occ_env_read(&g->env, get);
    if (g->env.disabled || getauxval(AT_SECURE)) {
        atomic_store(&g->state, OCC_GUEST_CLOSED);
        return;
    }
    occ_guest_log_open(g->env.log);
    log_rejected(&g->env);
    occ_link_init(&g->link, g->env.socket, get);
    occ_fork_prepare();
    occ_exit_prepare();
    run_or_stay_quiet(g, began_ns);
}

void occ_guest_start(void)
{
    struct occ_guest *g = &the_guest;
    int idle = OCC_GUEST_IDLE;
    if (!atomic_compare_exchange_strong(&g->state, &idle, OCC_GUEST_STARTING))
        return;
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
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
