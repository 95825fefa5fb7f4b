/* See recording.h. A row of `causes` is a reason to record less; the first that holds is the one that counts.
 */
#include "recording.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "guest.h"

#define MS_NS          UINT64_C(1000000)
#define FLUSH_FAILURES 3u
#define READY_ROUNDS   10u /* a call of CUPTI before the driver is ready could hang: seconds until it is */
#define SAMPLE_ROUNDS  10u /* of these, one is recorded at OCC_STEP_SAMPLED */

/* ---- causes ---- */

static uint64_t elapsed_ms(const struct occ_recording *r)
{
    return (occ_clock_ns(CLOCK_MONOTONIC) - r->began_ns) / MS_NS;
}

static bool is_gone(const struct occ_guest *g)
{
    return g->recording.gone != NULL;
}

static bool is_taken(const struct occ_guest *g)
{
    return g->recording.takeover.state == OCC_TAKEOVER_TAKEN;
}

static bool is_doubted(const struct occ_guest *g)
{
    return g->recording.takeover.state == OCC_TAKEOVER_DOUBTED;
}

static bool is_paused(const struct occ_guest *g)
{
    return occ_ring_is_paused(&g->ring) && !g->exact.run;
}

static bool is_delayed(const struct occ_guest *g)
{
    return elapsed_ms(&g->recording) < g->env.delay_ms;
}

static bool is_over(const struct occ_guest *g)
{
    return g->env.duration_ms > 0 && elapsed_ms(&g->recording) >= g->env.delay_ms + g->env.duration_ms;
}

static bool has_enough(const struct occ_guest *g)
{
    return g->drain.beyond_ns > 0;
}

static bool is_stopped_by_governor(const struct occ_guest *g)
{
    return g->recording.governor.step == OCC_STEP_NOTHING;
}

static bool is_without_times(const struct occ_guest *g)
{
    return g->recording.watch.is_without_times;
}

static bool is_sampled(const struct occ_guest *g)
{
    return g->recording.governor.step == OCC_STEP_SAMPLED;
}

static bool is_without_counters(const struct occ_guest *g)
{
    return g->recording.governor.step == OCC_STEP_NO_COUNTERS;
}

static const struct cause {
    bool (*holds)(const struct occ_guest *guest);
    enum occ_level level;
    bool is_overhead; /* the governor's: figures follow the text */
    const char *text; /* NULL: recording.gone */
} causes[] = {
    {is_gone, OCC_LEVEL_NOTHING, false, NULL},
    {is_taken, OCC_LEVEL_NOTHING, false,
     "another profiler of the program used CUPTI (PyTorch's profiler does)"},
    {is_doubted, OCC_LEVEL_NOTHING, false,
     "another profiler of the program seems to use CUPTI: records have stopped arriving"},
    {is_paused, OCC_LEVEL_NOTHING, false, "paused by its owner"},
    {is_delayed, OCC_LEVEL_NOTHING, false, "before the end of --delay"},
    {is_over, OCC_LEVEL_NOTHING, false, "after the end of --duration"},
    {has_enough, OCC_LEVEL_NOTHING, false, "the launches of --launches are recorded"},
    {is_stopped_by_governor, OCC_LEVEL_NOTHING, true, "not recorded"},
    {is_without_times, OCC_LEVEL_CONFIGS, false,
     "CUPTI returns no times any more (before 13.3 it does so after many launches of CUDA graphs)"},
    {is_sampled, OCC_LEVEL_CONFIGS, true, "recorded in one second of ten"},
    {is_without_counters, OCC_LEVEL_TRACE, true, "not measured by hardware counters"},
};
#define CAUSES ((int)(sizeof causes / sizeof causes[0]))

static int find_cause(const struct occ_guest *g)
{
    int i = 0;
    while (i < CAUSES && !causes[i].holds(g))
        i++;
    return i < CAUSES ? i : -1;
}

/* ---- CUPTI ---- */

static void enable(struct occ_guest *g, bool on)
{
    struct occ_recording *r = &g->recording;
    if (r->is_enabled == on || !occ_recording_has_cupti(r))
        return;
    uint32_t result = on ? g->tracing.call.enable(OCC_CUPTI_KIND_CONCURRENT_KERNEL)
                         : g->tracing.call.disable(OCC_CUPTI_KIND_CONCURRENT_KERNEL);
    if (result == OCC_CUPTI_SUCCESS)
        r->is_enabled = on;
    else if (on)
        r->gone = "CUPTI refuses to record again";
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
    };
    bool is_ready = signs.requested > 0 || r->rounds >= READY_ROUNDS;
    signs.is_reset = r->flush_failures >= FLUSH_FAILURES || (is_ready && occ_tracing_is_reset(&g->tracing));
    signs.has_other_library =
        occ_takeover_is_silent(&r->takeover) && dl_iterate_phdr(has_cupti_client, NULL) != 0;
    return signs;
}

/* A buffer of another client in our callback: it had a session when we registered. We never do so again. */
static void follow_takeover(struct occ_guest *g)
{
    struct occ_recording *r = &g->recording;
    if (!r->gone && atomic_load_explicit(&g->foreign_buffer, memory_order_relaxed))
        r->gone = "another profiler of the program took CUPTI over";
    if (r->gone)
        return;
    struct occ_takeover_signs signs = read_signs(g);
    if (!occ_takeover_round(&r->takeover, &signs))
        return;
    bool is_back = occ_tracing_resume(&g->tracing);
    occ_takeover_came_back(&r->takeover, &signs); /* also if it failed: the next try takes longer */
    r->takeover.state = is_back ? OCC_TAKEOVER_NONE : OCC_TAKEOVER_TAKEN;
    r->flush_failures = 0;
    r->is_enabled = is_back;
    if (is_back)
        occ_pool_reclaim(&g->pool);
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
    if (g->exact.run ||
        (r->cause >= 0 && causes[r->cause].level == OCC_LEVEL_NOTHING && !is_stopped_by_governor(g)))
        occ_governor_skip(&r->governor, &cost); /* exact values cost what they cost */
    else
        (void)occ_governor_round(&r->governor, &cost);
}

/* ---- reports ---- */

/* When the cause began: by our knowledge, not when it was noticed. */
static uint64_t begin_of(const struct occ_guest *g, int cause)
{
    if (cause >= 0 && (causes[cause].holds == is_taken || causes[cause].holds == is_doubted))
        return g->recording.takeover.from_ns;
    if (cause >= 0 && causes[cause].holds == has_enough)
        return g->drain.beyond_ns;
    return occ_clock_ns(CLOCK_REALTIME);
}

static void report(struct occ_guest *g, int cause)
{
    struct occ_recording *r = &g->recording;
    char reason[OCC_REASON_BYTES] = "";
    uint64_t from_ns = begin_of(g, cause);
    bool is_withdrawn = cause < 0 && r->cause >= 0 && causes[r->cause].holds == is_doubted;
    const char *text = cause < 0 ? "" : causes[cause].text ? causes[cause].text : r->gone;
    (void)snprintf(reason, sizeof reason, "%s", text);
    if (cause >= 0 && causes[cause].is_overhead)
        (void)snprintf(reason, sizeof reason,
                       "%s: overhead was %.1f %%, the budget is %.1f %% (OCCTRACE_BUDGET)", text,
                       r->governor.share * 100, r->governor.budget * 100);
    r->cause = cause;
    r->reported_from_ns = is_withdrawn ? r->reported_from_ns : from_ns;
    occ_guest_report(g, cause < 0 ? OCC_LEVEL_TRACE : causes[cause].level, r->reported_from_ns, reason);
}

static void apply(struct occ_guest *g)
{
    struct occ_recording *r = &g->recording;
    int cause = find_cause(g);
    bool wants = cause < 0 || causes[cause].level != OCC_LEVEL_NOTHING || is_doubted(g);
    if (is_sampled(g) && r->rounds % SAMPLE_ROUNDS != 0)
        wants = false;
    enable(g, wants);
    cause = find_cause(g);
    if (cause != r->cause)
        report(g, cause);
}

void occ_recording_start(struct occ_guest *guest)
{
    struct occ_recording *r = &guest->recording;
    r->began_ns = occ_clock_ns(CLOCK_MONOTONIC);
    r->is_enabled = true;
    r->cause = -1;
    occ_takeover_init(&r->takeover, occ_clock_ns(CLOCK_REALTIME));
    occ_governor_init(&r->governor,
                      guest->env.budget > 0 ? (double)guest->env.budget / 1e6 : OCC_GOVERNOR_BUDGET);
    if (guest->exact.run) /* every range must find its launch */
        guest->env.delay_ms = guest->env.duration_ms = guest->env.launches = 0;
    guest->drain.max_launches = guest->env.launches;
    apply(guest);
}

void occ_recording_round(struct occ_guest *guest)
{
    struct occ_recording *r = &guest->recording;
    if (occ_drain_is_stopped(&guest->drain)) /* the program ends, and CUPTI before us */
        return;
    r->rounds++;
    follow_takeover(guest);
    (void)occ_watch_round(&r->watch, guest->drain.records, guest->drain.bad_times);
    govern(guest);
    apply(guest);
}

void occ_recording_flushed(struct occ_recording *recording, uint32_t result)
{
    recording->flush_failures = result == OCC_CUPTI_SUCCESS ? 0 : recording->flush_failures + 1;
}

uint64_t occ_recording_wait_ns(const struct occ_guest *guest, uint64_t now_ns)
{
    const struct occ_env *env = &guest->env;
    uint64_t edges_ms[] = {env->delay_ms, env->duration_ms > 0 ? env->delay_ms + env->duration_ms : 0};
    for (size_t i = 0; i < sizeof edges_ms / sizeof edges_ms[0]; i++) {
        uint64_t at_ns = guest->recording.began_ns + edges_ms[i] * MS_NS;
        if (edges_ms[i] > 0 && at_ns > now_ns)
            return at_ns - now_ns;
    }
    return UINT64_MAX;
}
