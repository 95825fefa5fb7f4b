/* See matching.h. */
#include "matching.h"

#include <string.h>
#include <sys/mman.h>

#define MINUTE_NS UINT64_C(60000000000)

/* Of the table of sums; the rest keeps searches short. */
#define SUMS_FILLED (OCC_MATCHING_MAX_SUMS / 4 * 3)

static void *get_table(size_t bytes)
{
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return map == MAP_FAILED ? NULL : map;
}

bool occ_matching_init(struct occ_matching *m)
{
    memset(m, 0, sizeof *m);
    m->last = &m->first;
    m->pause = 1;
    m->recent = get_table(OCC_MATCHING_MAX_LAUNCHES * sizeof *m->recent);
    m->sums = get_table(OCC_MATCHING_MAX_SUMS * sizeof *m->sums);
    return m->recent && m->sums;
}

struct occ_session *occ_session_new(void)
{
    return get_table(sizeof(struct occ_session));
}

void occ_session_free(struct occ_session *session)
{
    (void)munmap(session, sizeof *session);
}

void occ_matching_add_session(struct occ_matching *m, struct occ_session *session)
{
    session->next = NULL;
    session->rounds = 0;
    *m->last = session;
    m->last = &session->next;
}

/* Removes the launches of a session's context, and older ones of it, for which no session can follow. Returns
 * the number of the session's; the first OCC_SESSION_MAX_RANGES of them are in `own`. */
static uint32_t take_launches(struct occ_matching *m, const struct occ_session *s,
                              struct occ_exact_launch own[OCC_SESSION_MAX_RANGES])
{
    uint32_t kept = 0, found = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const struct occ_exact_launch l = m->recent[i];
        if (l.context != s->context || l.start_ns > s->ended_ns)
            m->recent[kept++] = l;
        else if (l.start_ns >= s->began_ns && found++ < OCC_SESSION_MAX_RANGES)
            own[found - 1] = l;
    }
    m->n = kept;
    return found;
}

/* By insertion: they are few and nearly in order. */
static void sort_by_start(struct occ_exact_launch *launches, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct occ_exact_launch l = launches[i];
        uint32_t at = i;
        for (; at > 0 && launches[at - 1].start_ns > l.start_ns; at--)
            launches[at] = launches[at - 1];
        launches[at] = l;
    }
}

/* Kernels that overlap were not serialised, so their order does not identify ranges. */
static bool overlap(const struct occ_exact_launch *launches, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (launches[i - 1].start_ns + launches[i - 1].duration_ns > launches[i].start_ns)
            return true;
    return false;
}

/* The record of one launch. Counters may hold any value; NaN fails every comparison. */
static bool measure(const struct occ_exact_launch *l, const struct occ_range_counts *c,
                    struct occ_record_measured *ret)
{
    double ns = (double)l->duration_ns;
    /* a launch has warps and blocks: counters of 0 did not count */
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

/* The sum of a launch's configuration and minute; NULL: there are too many. */
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

static void settle_one(struct occ_matching *m, const struct occ_session *s)
{
    struct occ_exact_launch own[OCC_SESSION_MAX_RANGES];
    struct occ_record_measured launch;
    uint32_t n = take_launches(m, s, own);
    if (n != s->ranges || n > OCC_SESSION_MAX_RANGES || s->lost != m->lost)
        return;
    sort_by_start(own, n);
    if (overlap(own, n))
        return;
    for (uint32_t i = 0; i < n; i++)
        if (measure(&own[i], &s->counts[i], &launch))
            add(m, &launch);
}

static void settle_first(struct occ_matching *m)
{
    struct occ_session *s = m->first;
    settle_one(m, s);
    m->first = s->next;
    if (!m->first)
        m->last = &m->first;
    occ_session_free(s);
}

void occ_matching_add_launch(struct occ_matching *m, const struct occ_exact_launch *launch)
{
    uint32_t half = OCC_MATCHING_MAX_LAUNCHES / 2;
    m->launches++;
    while (m->n == OCC_MATCHING_MAX_LAUNCHES && m->first) /* the oldest have waited long enough */
        settle_first(m);
    if (m->n == OCC_MATCHING_MAX_LAUNCHES) { /* no session for so long: the older half gets no values */
        memmove(m->recent, m->recent + half, half * sizeof *m->recent);
        m->n = half;
    }
    m->recent[m->n++] = *launch;
}

static void write_sums(struct occ_matching *m, occ_exact_sink *sink, void *context)
{
    for (uint32_t i = 0; i < OCC_MATCHING_MAX_SUMS; i++) {
        struct occ_record_measured *sum = &m->sums[i];
        int written = sum->launches > 0 ? sink(context, sum) : 0;
        m->measured += written > 0 ? sum->launches : 0;
        m->is_full |= written < 0;
        sum->launches = 0;
    }
    m->n_sums = m->paused = 0;
}

void occ_matching_run(struct occ_matching *m, bool is_last, occ_exact_sink *sink, void *context)
{
    for (struct occ_session *s = m->first; s; s = s->next)
        s->rounds++;
    while (m->first && (is_last || m->first->rounds > OCC_MATCHING_ROUNDS)) {
        settle_first(m);
        if (m->n_sums > SUMS_FILLED - OCC_SESSION_MAX_RANGES)
            write_sums(m, sink, context);
    }
    m->paused += m->n_sums > 0;
    if (m->n_sums == 0 || (!is_last && m->paused < m->pause))
        return;
    write_sums(m, sink, context);
    m->pause = m->pause < OCC_MATCHING_MAX_PAUSE / 2 ? m->pause * 2 : OCC_MATCHING_MAX_PAUSE;
}
