/* The functions of exact.h: the life of one run of the profiler, and the helper's part. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "callbacks.h"

/* ---- the beginning ---- */

static void init_lock(struct occ_exact *e)
{
    pthread_condattr_t monotonic;
    (void)pthread_mutex_init(&e->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&e->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

/* Binds CUPTI's functions. Returns the name of a missing function, or NULL. */
static const char *bind_functions(struct occ_exact *e)
{
    static const char *const names[] = {OCC_CUPTI_RANGE(OCC_CUPTI_NAME) NULL};
    size_t n = sizeof names / sizeof names[0] - 1;
    const char *missing = occ_cupti_host_bind(e->cupti, &e->host);
    return missing ? missing : names[occ_library_bind(e->cupti->handle, names, n, &e->call)];
}

static bool begin(struct occ_exact *e)
{
    if (e->cupti->version < OCC_CUPTI_VERSION_13_0) {
        (void)snprintf(e->problem, sizeof e->problem,
                       "no exact values: libcupti (version %u) is older than CUDA 13.0", e->cupti->version);
        return false;
    }
    const char *missing = bind_functions(e);
    if (missing)
        (void)snprintf(e->problem, sizeof e->problem, "no exact values: libcupti lacks %s", missing);
    else if (!occ_matching_init(&e->matching))
        (void)snprintf(e->problem, sizeof e->problem, "no exact values: no memory");
    else if (occ_exact_watch(e))
        return true;
    return false;
}

static struct occ_exact *start(const struct occ_cupti *cupti, const _Atomic bool *is_stopped,
                               char reason[OCC_REASON_BYTES])
{
    struct occ_exact *e = mmap(NULL, sizeof *e, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (e == MAP_FAILED) {
        (void)snprintf(reason, OCC_REASON_BYTES, "no exact values: no memory");
        return NULL;
    }
    init_lock(e);
    e->cupti = cupti;
    e->is_stopped = is_stopped;
    e->pid = getpid();
    e->queue.last = &e->queue.first;
    e->queue.max = occ_exact_max_waiting((uint64_t)sysconf(_SC_PAGESIZE));
    if (begin(e)) {
        (void)snprintf(reason, OCC_REASON_BYTES, "--exact: kernels run one after the other");
        return e;
    }
    memcpy(reason, e->problem, sizeof e->problem);
    return NULL; /* the mapping stays: a process comes here once */
}

/* ---- the helper's side ---- */

static void retire(struct occ_exact *e)
{
    atomic_store(&e->is_retired, true);
}

/* Naps at most twice as long as one wait: for the lock, and for threads inside CUPTI. */
static void finish(struct occ_exact *e, bool may_call)
{
    atomic_store(&e->is_on, false);
    occ_exact_limit_naps(2 * OCC_EXACT_NAPS);
    if (may_call && !occ_exact_is_stopped(e) && occ_exact_lock(e) && occ_exact_end_all(e))
        (void)pthread_mutex_unlock(&e->lock);
    occ_exact_unlimit_naps();
    atomic_store(&e->is_over, true); /* threads with a claimed context stop calling CUPTI */
}

/* cuptiUnsubscribe() is documented as safe in any thread; a callback that runs meanwhile finds is_over. */
static void stop(struct occ_exact *e)
{
    finish(e, true);
    if (!atomic_load(e->is_stopped))
        (void)e->call.unsubscribe(e->subscriber);
}

static bool add_launch(struct occ_exact *e, const struct occ_exact_launch *launch)
{
    return occ_matching_add_launch(&e->matching, launch);
}

/* True if CUPTI refused every context that launched. */
static bool has_failed(const struct occ_exact *e)
{
    uint32_t failed = 0, used = 0;
    for (uint32_t i = 0; i < OCC_EXACT_MAX_CONTEXTS; i++) {
        int state = atomic_load(&e->contexts[i].state);
        failed += state == OCC_EXACT_FAILED;
        used += state != OCC_EXACT_FREE;
    }
    return failed > 0 && failed == used;
}

/* Moves the ended sessions to the matching and copies the problem; does nothing if the lock is not free in
 * time. */
static void take(struct occ_exact *e, struct occ_exact_report *report)
{
    occ_exact_limit_naps(OCC_EXACT_NAPS);
    bool has_lock = occ_exact_lock(e);
    occ_exact_unlimit_naps();
    if (!has_lock)
        return;
    struct occ_session *next, *first = e->queue.first;
    e->queue.first = NULL;
    e->queue.last = &e->queue.first;
    e->queue.n = 0;
    e->matching.unpaired += atomic_exchange(&e->queue.dropped, 0);
    report->is_new = e->problem_is_new;
    report->has_failed = has_failed(e);
    e->problem_is_new = false;
    memcpy(report->reason, e->problem, sizeof e->problem);
    (void)pthread_mutex_unlock(&e->lock);
    for (struct occ_session *s = first; s; s = next) {
        next = s->next;
        occ_matching_add_session(&e->matching, s);
    }
}

/* Retires the run when the log is full: serialising kernels is useless if their values cannot be stored. */
static void end_when_full(struct occ_exact *e, struct occ_exact_report *report)
{
    if (!e->matching.is_full || atomic_load(&e->is_retired))
        return;
    retire(e);
    report->is_new = true;
    (void)snprintf(report->reason, sizeof report->reason,
                   "exact values only of the beginning: half of the log is full");
}

static void summarise(const struct occ_matching *m, char reason[OCC_REASON_BYTES])
{
    int n = snprintf(reason, OCC_REASON_BYTES,
                     "--exact: kernels ran one after the other; %llu of %llu launches measured%s",
                     (unsigned long long)m->measured, (unsigned long long)m->launches,
                     m->by_call > 0 ? "; they start when they were called and last as the counter says" : "");
    if (m->unpaired + m->dropped > 0 && n > 0 && n < (int)OCC_REASON_BYTES)
        (void)snprintf(reason + n, OCC_REASON_BYTES - (size_t)n,
                       "; dropped: %llu ranges, %llu launches or values", (unsigned long long)m->unpaired,
                       (unsigned long long)m->dropped);
}

static void poll_round(struct occ_exact *e, bool is_last, const struct occ_exact_sink *sink,
                       struct occ_exact_report *ret_report)
{
    struct occ_matching *m = &e->matching;
    *ret_report = (struct occ_exact_report){0};
    take(e, ret_report);
    occ_matching_run(m, is_last, sink);
    end_when_full(e, ret_report);
    ret_report->measured = m->measured;
    ret_report->launches = m->launches;
    ret_report->has_failed &= m->ranges == 0 && !atomic_load(&e->is_retired);
    if (is_last && (ret_report->reason[0] == '\0' || m->measured > 0))
        summarise(m, ret_report->reason);
}

__attribute__((visibility("default"))) const struct occ_exact_library occ_exact_library = {
    .abi = OCC_EXACT_ABI,
    .start = start,
    .stop = stop,
    .add_launch = add_launch,
    .poll = poll_round,
    .retire = retire,
    .finish = finish,
};
