/* See matching.h. */
#include "matching.h"

#include <string.h>
#include <sys/mman.h>

#define MINUTE_NS UINT64_C(60000000000)

/* Maximum number of used sums; free entries keep searches short. */
#define SUMS_FILLED (OCC_MATCHING_MAX_SUMS / 4 * 3)

static void *get_table(size_t bytes)
{
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return map == MAP_FAILED ? NULL : map;
}

bool occ_matching_init(struct occ_matching *m)
{
    memset(m, 0, sizeof *m);
    m->pause = 1;
    m->waiting = get_table(OCC_MATCHING_MAX_LAUNCHES * sizeof *m->waiting);
    m->values = get_table(OCC_MATCHING_MAX_LAUNCHES * sizeof *m->values);
    m->sums = get_table(OCC_MATCHING_MAX_SUMS * sizeof *m->sums);
    return m->waiting && m->values && m->sums;
}

struct occ_session *occ_session_new(void)
{
    return get_table(sizeof(struct occ_session));
}

void occ_session_free(struct occ_session *session)
{
    (void)munmap(session, sizeof *session);
}

/* ---- sessions ---- */

/* True if the call is certainly a range: the driver accepted it, and no stream was being captured. */
static bool is_certain(const struct occ_session_call *call)
{
    return call->has_returned && !call->is_refused && !call->may_be_captured;
}

/* True if the ranges can be matched with the calls. Each certain call is a range, so equal numbers exclude
 * other ranges. Any other explanation of the number of ranges could also count the range of an unseen launch.
 */
static bool is_paired(const struct occ_session *s)
{
    uint32_t certain = 0;
    for (uint32_t i = 0; i < s->n; i++)
        certain += is_certain(&s->calls[i]);
    return !s->is_unpaired && s->ranges == certain;
}

/* Stores a call's value; counts NULL: unknown. */
static void set_value(struct occ_matching *m, const struct occ_session_call *call,
                      const struct occ_range_counts *counts)
{
    struct occ_call_value *v = &m->values[call->correlation % OCC_MATCHING_MAX_LAUNCHES];
    m->dropped += v->state == OCC_VALUE_MEASURED; /* the old value has met no record */
    *v = (struct occ_call_value){.correlation = call->correlation,
                                 .state = counts ? OCC_VALUE_MEASURED : OCC_VALUE_UNKNOWN,
                                 .start_ns = call->start_ns};
    if (counts)
        v->counts = *counts;
    m->ranges += counts != NULL;
}

void occ_matching_add_session(struct occ_matching *m, struct occ_session *session)
{
    const struct occ_session *s = session;
    bool pairs = is_paired(s);
    uint32_t range = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        bool is_range = pairs && is_certain(&s->calls[i]);
        set_value(m, &s->calls[i], is_range ? &s->counts[range++] : NULL);
    }
    m->unpaired += pairs ? 0 : s->ranges;
    occ_session_free(session);
}

/* ---- values ---- */

/* Computes the record of one launch. Counters may hold any value; NaN fails every comparison. */
static bool measure(const struct occ_ring_launch *l, const struct occ_range_counts *c,
                    struct occ_record_measured *ret)
{
    double ns = (double)l->duration_ns;
    /* every launch has warps and blocks: 0 means that a counter did not count */
    if (l->config == OCC_EXACT_NO_CONFIG ||
        !(c->cycles > 0 && c->sms_active > 0 && c->warps_active > 0 && c->blocks > 0))
        return false;
    *ret = (struct occ_record_measured){.record.type = OCC_RECORD_MEASURED,
                                        .config = l->config,
                                        .minute = l->start_ns / MINUTE_NS,
                                        .head = 1,
                                        .launches = 1,
                                        .ns = ns,
                                        .warps_active_ns = c->warps_active / c->sms_active * ns,
                                        .warps_ns = c->warps_active / c->cycles * ns,
                                        .blocks_active_ns = c->blocks / c->sms_active * ns,
                                        .sms_active_ns = c->sms_active / c->cycles * ns};
    return occ_record_measured_is_valid(ret);
}

/* Returns the sum for a launch's configuration and minute; NULL: too many sums. */
static struct occ_record_measured *find_sum(struct occ_matching *m, const struct occ_record_measured *launch)
{
    uint64_t key = launch->minute << 32 ^ launch->config;
    uint32_t at = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % OCC_MATCHING_MAX_SUMS;
    struct occ_record_measured *sum = &m->sums[at];
    while (sum->launches > 0 && (sum->config != launch->config || sum->minute != launch->minute))
        sum = &m->sums[at = (at + 1) % OCC_MATCHING_MAX_SUMS];
    if (sum->launches > 0)
        return sum;
    if (m->n_sums >= SUMS_FILLED)
        return NULL;
    m->n_sums++;
    *sum = (struct occ_record_measured){
        .record.type = OCC_RECORD_MEASURED, .config = launch->config, .minute = launch->minute};
    return sum;
}

static void add(struct occ_matching *m, const struct occ_record_measured *launch)
{
    struct occ_record_measured *sum = find_sum(m, launch);
    if (!sum)
        return;
    sum->launches++;
    sum->ns += launch->ns;
    sum->warps_active_ns += launch->warps_active_ns;
    sum->warps_ns += launch->warps_ns;
    sum->sms_active_ns += launch->sms_active_ns;
    sum->blocks_active_ns += launch->blocks_active_ns;
}

static void write_sums(struct occ_matching *m, const struct occ_exact_sink *sink)
{
    for (uint32_t i = 0; i < OCC_MATCHING_MAX_SUMS; i++) {
        struct occ_record_measured *sum = &m->sums[i];
        int written = sum->launches > 0 ? sink->measured(sink->context, sum) : 0;
        m->measured += written > 0 ? sum->launches : 0;
        m->is_full |= written < 0;
        sum->launches = 0;
    }
    m->n_sums = m->paused = 0;
}

/* ---- launches ---- */

/* Keeps the launches of `waiting` from index `from` on, without the timed launches before index `until`: the
 * ring already has these, so that only their values are lost. */
static void keep(struct occ_matching *m, uint32_t from, uint32_t until)
{
    uint32_t kept = 0;
    for (uint32_t i = from; i < m->n; i++)
        if (i >= until || !m->waiting[i].is_timed)
            m->waiting[kept++] = m->waiting[i];
    m->dropped += m->n - kept;
    m->n = kept;
}

/* Drops the timed launches of the older half; if it has none, gives up the whole older half. */
static void make_room(struct occ_matching *m)
{
    uint32_t half = OCC_MATCHING_MAX_LAUNCHES / 2;
    keep(m, 0, half);
    if (m->n < OCC_MATCHING_MAX_LAUNCHES)
        return;
    for (uint32_t i = 0; i < half; i++)
        m->forgotten[m->waiting[i].cause]++;
    keep(m, half, 0);
}

bool occ_matching_add_launch(struct occ_matching *m, const struct occ_exact_launch *launch)
{
    m->launches++;
    if (launch->launch.graph_node != 0)
        return false;
    if (m->n == OCC_MATCHING_MAX_LAUNCHES)
        make_room(m);
    m->waiting[m->n++] = *launch;
    return true;
}

/* Sets the times of a launch whose record has none. Returns false if the counter has no possible duration. */
static bool set_times(struct occ_ring_launch *l, const struct occ_call_value *v)
{
    if (v->state != OCC_VALUE_MEASURED || !(v->counts.ns >= 1 && v->counts.ns < (double)INT64_MAX))
        return false;
    l->start_ns = v->start_ns;
    l->duration_ns = (uint64_t)(v->counts.ns + 0.5);
    return occ_ring_times_are_valid(l->start_ns, l->duration_ns);
}

/* Gives the launch to the ring unless its record had times. Returns false if the ring does not have the
 * launch. */
static bool record(struct occ_matching *m, struct occ_exact_launch *l, const struct occ_call_value *v,
                   const struct occ_exact_sink *sink)
{
    if (l->is_timed)
        return true;
    if (!set_times(&l->launch, v)) {
        sink->lost(sink->context, l->cause, 1);
        return false;
    }
    m->by_call++;
    return sink->launch(sink->context, &l->launch);
}

/* Matches a launch with the value of its call. Returns false if the value has not arrived yet. */
static bool settle(struct occ_matching *m, struct occ_exact_launch *l, const struct occ_exact_sink *sink)
{
    struct occ_call_value *v = &m->values[l->launch.correlation % OCC_MATCHING_MAX_LAUNCHES];
    struct occ_record_measured measured;
    if (v->state == OCC_VALUE_NONE || v->correlation != l->launch.correlation)
        return false;
    if (record(m, l, v, sink) && v->state == OCC_VALUE_MEASURED && measure(&l->launch, &v->counts, &measured))
        add(m, &measured);
    v->state = OCC_VALUE_UNKNOWN;
    if (m->n_sums >= SUMS_FILLED)
        write_sums(m, sink);
    return true;
}

static void settle_all(struct occ_matching *m, bool is_last, const struct occ_exact_sink *sink)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        struct occ_exact_launch l = m->waiting[i];
        if (settle(m, &l, sink))
            continue;
        if (!is_last)
            m->waiting[kept++] = l;
        else if (!l.is_timed)
            m->forgotten[l.cause]++;
    }
    m->n = kept;
    for (uint32_t cause = 0; cause < OCC_LOSS_COUNT; cause++) {
        if (m->forgotten[cause] > 0)
            sink->lost(sink->context, cause, m->forgotten[cause]);
        m->forgotten[cause] = 0;
    }
}

void occ_matching_run(struct occ_matching *m, bool is_last, const struct occ_exact_sink *sink)
{
    settle_all(m, is_last, sink);
    m->paused += m->n_sums > 0;
    if (m->n_sums == 0 || (!is_last && m->paused < m->pause))
        return;
    write_sums(m, sink);
    m->pause = m->pause < OCC_MATCHING_MAX_PAUSE / 2 ? m->pause * 2 : OCC_MATCHING_MAX_PAUSE;
}
