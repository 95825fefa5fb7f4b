/* See recording.h. A row of `causes` is a reason to record less; the first one that applies counts. */
#include "recording.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "guest.h"

#define MS_NS          UINT64_C(1000000)
#define FLUSH_FAILURES 3u
#define READY_ROUNDS   10u /* a CUPTI call before the driver is ready could hang: wait this many seconds */
#define SAMPLE_ROUNDS  10u /* at OCC_STEP_SAMPLED one round of this number is recorded */

/* ---- causes ---- */

/* Rows of `causes`, in order of priority. */
enum cause {
    GONE,
    REFUSED,
    TAKEN,
    SUSPECTED,
    PAUSED,
    DELAYED,
    OVER,
    ENOUGH,
    STOPPED,
    TIMELESS,
    SAMPLED,
    UNMEASURED,
    NONE
};

static const struct {
    const char *text;
    enum occ_level level;
    bool is_overhead; /* the governor's figures follow the text */
} causes[] = {
    [GONE] = {"another profiler of the program took CUPTI over", OCC_LEVEL_NOTHING, false},
    [REFUSED] = {"CUPTI refused to record again; another profiler of the program may use it",
                 OCC_LEVEL_NOTHING, false},
    [TAKEN] = {"another profiler of the program used CUPTI (PyTorch's profiler does)", OCC_LEVEL_NOTHING,
               false},
    [SUSPECTED] = {"another profiler of the program seems to use CUPTI: records have stopped arriving",
                   OCC_LEVEL_NOTHING, false},
    [PAUSED] = {"paused by its owner", OCC_LEVEL_NOTHING, false},
    [DELAYED] = {"before the end of --delay", OCC_LEVEL_NOTHING, false},
    [OVER] = {"after the end of --duration", OCC_LEVEL_NOTHING, false},
    [ENOUGH] = {"the launches of --launches are recorded", OCC_LEVEL_NOTHING, false},
    [STOPPED] = {"not recorded", OCC_LEVEL_NOTHING, true},
    [TIMELESS] =
        {"CUPTI returns no times any more (before 13.3 it does so after many launches of CUDA graphs)",
         OCC_LEVEL_CONFIGS, false},
    [SAMPLED] = {"recorded in one second of ten", OCC_LEVEL_CONFIGS, true},
    [UNMEASURED] = {"not measured by hardware counters", OCC_LEVEL_TRACE, true},
    [NONE] = {"", OCC_LEVEL_TRACE, false},
};

static enum cause find_cause(const struct occ_guest *g)
{
    const struct occ_recording *r = &g->recording;
    uint64_t ms = r->elapsed_ns / MS_NS, begin_ms = g->env.delay_ms;
    uint64_t end_ms = g->env.duration_ms > 0 ? begin_ms + g->env.duration_ms : UINT64_MAX;
    const bool holds[] = {
        [GONE] = r->is_gone,
        [REFUSED] = r->is_refused,
        [TAKEN] = r->takeover.state == OCC_TAKEOVER_TAKEN,
        [SUSPECTED] = r->takeover.state == OCC_TAKEOVER_SUSPECTED,
        [PAUSED] = occ_ring_is_paused(&g->ring) && !g->exact.run,
        [DELAYED] = (ms < begin_ms),
        [OVER] = ms >= end_ms,
        [ENOUGH] = g->drain.beyond_ns > 0,
        [STOPPED] = r->governor.step == OCC_STEP_NOTHING,
        [TIMELESS] = r->watch.is_without_times,
        [SAMPLED] = r->governor.step == OCC_STEP_SAMPLED,
        [UNMEASURED] = r->governor.step == OCC_STEP_NO_COUNTERS,
        [NONE] = true,
    };
    enum cause cause = GONE;
    while (!holds[cause])
        cause++;
    return cause;
}

/* ---- CUPTI ---- */

/* CUPTI refuses the kind: another client may have it for a while. The guest waits as after a session of
 * another client. Its callbacks and buffers are still registered. */
static void wait_after_refusal(struct occ_recording *r)
{
    r->is_refused = true;
    r->takeover.state = OCC_TAKEOVER_TAKEN;
    r->takeover.rest_rounds = 0;
}

/* Switches kernel records on or off. CUPTI's kinds belong to the process, not to a client: disabling one
 * while another client's session has just begun would cost that client its records. So the kind is disabled
 * only after CUPTI has requested a buffer from the guest since recording was to stop; until then the guest's
 * records are ignored. */
static void enable(struct occ_guest *g, bool on)
{
    struct occ_recording *r = &g->recording;
    uint64_t requested = atomic_load_explicit(&g->pool.taken, memory_order_relaxed);
    if (on)
        occ_drain_resume(&g->drain, r->round_ns);
    else if (occ_drain_pause(&g->drain, r->round_ns))
        r->off_requested = requested;
    bool is_ours = r->rounds == 0 || requested != r->off_requested;
    if (r->is_enabled == on || !occ_recording_has_cupti(r) || (!on && !is_ours))
        return;
    uint32_t result = occ_tracing_enable(&g->tracing, on);
    if (result == OCC_CUPTI_SUCCESS)
        r->is_enabled = on;
    else if (on)
        wait_after_refusal(r);
}

static int has_cupti_client(struct dl_phdr_info *info, size_t size, void *unused)
{
    static const char *const names[] = {"libtorch", "libkineto", "libtensorflow", "xla_extension"};
    (void)size;
    (void)unused;
    for (size_t i = 0; info->dlpi_name && i < sizeof names / sizeof names[0]; i++)
        if (strstr(info->dlpi_name, names[i]))
            return 1;
    return 0;
}

static struct occ_takeover_signs read_signs(struct occ_guest *g)
{
    struct occ_recording *r = &g->recording;
    int worker = atomic_load_explicit(&g->worker_clock, memory_order_relaxed);
    struct occ_takeover_signs signs = {
        .now_ns = occ_clock_ns(CLOCK_REALTIME),
        .requested = atomic_load_explicit(&g->pool.taken, memory_order_relaxed),
        .delivered = atomic_load_explicit(&g->pool.delivered, memory_order_relaxed),
        .worker_cpu_ns = worker ? occ_clock_ns(worker) : 0,
        .keeps_records = g->exact.run != NULL,
    };
    bool is_ready = signs.requested > 0 || r->rounds >= READY_ROUNDS;
    uint64_t process_ns = occ_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t own_ns = occ_clock_ns(CLOCK_THREAD_CPUTIME_ID) + signs.worker_cpu_ns;
    signs.program_cpu_ns = process_ns > own_ns ? process_ns - own_ns : 0;
    signs.is_reset = r->flush_failures >= FLUSH_FAILURES || (is_ready && occ_tracing_is_reset(&g->tracing));
    signs.has_other_library =
        occ_takeover_is_silent(&r->takeover) && dl_iterate_phdr(has_cupti_client, NULL) != 0;
    return signs;
}

/* Registers again, or only enables the kind after a refusal: to register would take another client's
 * callbacks. Buffers that went to another client are reclaimed before CUPTI can request one: a thread
 * may launch while CUPTI enables the kind, and its buffer is in use from then on. Reclaiming once per session
 * is enough; a suspicion is no session, as CUPTI may still have the guest's buffers. */
static void register_again(struct occ_guest *g, const struct occ_takeover_signs *signs)
{
    struct occ_recording *r = &g->recording;
    if (r->must_reclaim) {
        if (g->tracing.nvtx) /* delivers records of launch calls since the session to the session's client */
            (void)g->tracing.call.flush_all(0);
        occ_pool_reclaim(&g->pool);
        r->must_reclaim = false;
    }
    r->is_enabled = r->is_refused ? occ_tracing_enable(&g->tracing, true) == OCC_CUPTI_SUCCESS
                                  : occ_tracing_resume(&g->tracing);
    occ_takeover_registered_again(&r->takeover, signs); /* also after a failure: the next try waits longer */
    r->takeover.state = r->is_enabled ? OCC_TAKEOVER_NONE : OCC_TAKEOVER_TAKEN;
    r->is_refused &= !r->is_enabled;
    r->flush_failures = 0;
}

/* A buffer of another client in the guest's callback means that the client had a session when the guest
 * registered. The guest never registers again then. */
static void follow_takeover(struct occ_guest *g)
{
    struct occ_recording *r = &g->recording;
    r->is_gone |= atomic_load_explicit(&g->foreign_buffer, memory_order_relaxed);
    if (r->is_gone)
        return;
    struct occ_takeover_signs signs = read_signs(g);
    bool was_taken = r->takeover.state == OCC_TAKEOVER_TAKEN;
    bool is_time = occ_takeover_round(&r->takeover, &signs);
    r->must_reclaim |= !was_taken && r->takeover.state == OCC_TAKEOVER_TAKEN;
    occ_tracing_record_calls(&g->tracing, r->takeover.state == OCC_TAKEOVER_NONE && r->is_enabled);
    if (is_time)
        register_again(g, &signs);
}

/* ---- the budget ---- */

static void govern(struct occ_guest *g)
{
    struct occ_recording *r = &g->recording;
    int worker = atomic_load_explicit(&g->worker_clock, memory_order_relaxed);
    struct occ_governor_cost cost = {
        .now_ns = occ_clock_ns(CLOCK_MONOTONIC),
        .own_cpu_ns = occ_clock_ns(CLOCK_THREAD_CPUTIME_ID) + (worker ? occ_clock_ns(worker) : 0) +
                      atomic_load_explicit(&g->pool.callback_ns, memory_order_relaxed),
        .process_cpu_ns = occ_clock_ns(CLOCK_PROCESS_CPUTIME_ID),
    };
    uint32_t given_ppm = occ_ring_budget_ppm(&g->ring);
    if (g->env.budget == 0 && given_ppm > 0 && given_ppm <= 1000000)
        r->governor.budget = given_ppm / 1e6;
    /* exact values have no budget; while another cause has stopped recording there is nothing to limit */
    if (g->exact.run || (causes[r->cause].level == OCC_LEVEL_NOTHING && r->cause != STOPPED))
        occ_governor_skip(&r->governor, &cost);
    else
        (void)occ_governor_round(&r->governor, &cost);
}

/* ---- reports ---- */

/* The known start of the cause, which is earlier than its detection. An unfounded suspicion is corrected from
 * its start. */
static uint64_t begin_of(const struct occ_guest *g, enum cause cause)
{
    const struct occ_recording *r = &g->recording;
    if (cause == NONE && r->cause == SUSPECTED && r->takeover.suspicion_was_unfounded)
        return r->reported_from_ns;
    if (cause == TAKEN || cause == SUSPECTED)
        return r->takeover.from_ns;
    return cause == ENOUGH ? g->drain.beyond_ns : r->round_ns;
}

/* Before CUPTI is called: it may record a launch before its call returns. A window that has its length by the
 * first clock has it by the second too, as occ_recording_start() reads them the other way round. */
static void read_clocks(struct occ_recording *r)
{
    r->elapsed_ns = occ_clock_ns(CLOCK_MONOTONIC) - r->began_ns;
    r->round_ns = occ_clock_ns(CLOCK_REALTIME);
}

static void report(struct occ_guest *g)
{
    struct occ_recording *r = &g->recording;
    enum cause cause = find_cause(g);
    if (cause == r->cause)
        return;
    char reason[OCC_REASON_BYTES], figures[112] = "";
    if (causes[cause].is_overhead)
        occ_governor_describe(&r->governor, figures, sizeof figures);
    (void)snprintf(reason, sizeof reason, "%s%s", causes[cause].text, figures);
    r->reported_from_ns = begin_of(g, cause);
    r->cause = cause;
    occ_guest_report(g, causes[cause].level, r->reported_from_ns, reason);
}

void occ_recording_report(struct occ_guest *guest)
{
    read_clocks(&guest->recording);
    report(guest);
}

static void apply(struct occ_guest *g)
{
    struct occ_recording *r = &g->recording;
    enum cause cause = find_cause(g);
    bool is_on = causes[cause].level != OCC_LEVEL_NOTHING || cause == SUSPECTED;
    enable(g, is_on && (cause != SAMPLED || r->rounds % SAMPLE_ROUNDS == 0));
    report(g);
}

void occ_recording_start(struct occ_guest *guest)
{
    struct occ_recording *r = &guest->recording;
    r->round_ns = occ_clock_ns(CLOCK_REALTIME);
    r->began_ns = occ_clock_ns(CLOCK_MONOTONIC);
    r->is_enabled = true;
    r->cause = NONE;
    occ_takeover_init(&r->takeover, occ_clock_ns(CLOCK_REALTIME));
    occ_governor_init(&r->governor,
                      guest->env.budget > 0 ? (double)guest->env.budget / 1e6 : OCC_GOVERNOR_BUDGET);
    if (guest->exact.run) /* each range must find its launch */
        guest->env.delay_ms = guest->env.duration_ms = guest->env.launches = 0;
    guest->drain.max_launches = guest->env.launches;
    apply(guest);
}

void occ_recording_round(struct occ_guest *guest)
{
    struct occ_recording *r = &guest->recording;
    if (occ_drain_is_stopped(&guest->drain)) /* CUPTI may be torn down by the program's exit */
        return;
    r->rounds++;
    read_clocks(r);
    follow_takeover(guest);
    (void)occ_watch_round(&r->watch, guest->drain.records, guest->drain.bad_times);
    govern(guest);
    apply(guest);
}

bool occ_recording_is_full(const struct occ_recording *recording)
{
    return recording->cause == NONE;
}

void occ_recording_flushed(struct occ_recording *recording, uint32_t result)
{
    recording->flush_failures = result == OCC_CUPTI_SUCCESS ? 0 : recording->flush_failures + 1;
}

uint64_t occ_recording_wait_ns(const struct occ_guest *guest, uint64_t now_ns)
{
    const struct occ_env *env = &guest->env;
    uint64_t begin_ns = guest->recording.began_ns + env->delay_ms * MS_NS;
    uint64_t end_ns = begin_ns + env->duration_ms * MS_NS;
    if (begin_ns > now_ns)
        return begin_ns - now_ns;
    return end_ns > now_ns ? end_ns - now_ns : UINT64_MAX;
}
