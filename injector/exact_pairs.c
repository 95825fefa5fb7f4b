/* See exact_pairs.h. */
#include "exact_pairs.h"

#include <string.h>
#include <sys/mman.h>

#define MINUTE_NS UINT64_C(60000000000)

/* Of the table of sums; the rest keeps searches short. */
#define SUMS_FILLED (OCC_PAIRS_MOST_SUMS / 4 * 3)

static void *get_table(size_t bytes)
{
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return map == MAP_FAILED ? NULL : map;
}

bool occ_pairs_init(struct occ_pairs *pairs)
{
    memset(pairs, 0, sizeof *pairs);
    pairs->last = &pairs->first;
    pairs->pause = 1;
    pairs->records = get_table(OCC_PAIRS_MOST_RECORDS * sizeof *pairs->records);
    pairs->sums = get_table(OCC_PAIRS_MOST_SUMS * sizeof *pairs->sums);
    return pairs->records && pairs->sums;
}

void occ_pairs_add_session(struct occ_pairs *pairs, struct occ_session *session)
{
    session->next = NULL;
    session->rounds = 0;
    *pairs->last = session;
    pairs->last = &session->next;
}

/* Takes the records of a session's context out of the table, and older ones, for which no session can come any more. Returns how many
 * were the session's; the first OCC_PAIRS_MOST_RANGES of them are in `own`. */
static uint32_t take_records(struct occ_pairs *pairs, const struct occ_session *s,
                             struct occ_pairs_record own[OCC_PAIRS_MOST_RANGES])
{
    uint32_t kept = 0, found = 0;
    for (uint32_t i = 0; i < pairs->n; i++) {
        const struct occ_pairs_record r = pairs->records[i];
        if (r.context != s->context || r.start_ns > s->ended_ns)
            pairs->records[kept++] = r;
        else if (r.start_ns >= s->began_ns && found++ < OCC_PAIRS_MOST_RANGES)
            own[found - 1] = r;
    }
    pairs->n = kept;
    return found;
}

/* They are nearly in order already, and few. */
static void sort_by_start(struct occ_pairs_record *records, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct occ_pairs_record r = records[i];
        uint32_t at = i;
        for (; at > 0 && records[at - 1].start_ns > r.start_ns; at--)
            records[at] = records[at - 1];
        records[at] = r;
    }
}

/* Two kernels at the same time were not serialised: then order says nothing. */
static bool overlap(const struct occ_pairs_record *records, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (records[i - 1].start_ns + records[i - 1].duration_ns > records[i].start_ns)
            return true;
    return false;
}

/* A launch alone, as a record. Counters may say anything; NaN fails every comparison. */
static bool measure(const struct occ_pairs_record *r, const struct occ_range_counts *c,
                    struct occ_record_measured *ret)
{
    double ns = (double)r->duration_ns;
    /* it had warps and blocks: counters that say none did not count */
    if (r->shape == OCC_PAIRS_NO_SHAPE ||
        !(c->cycles > 0 && c->sms_active > 0 && c->warps_active > 0 && c->blocks > 0))
        return false;
    *ret = (struct occ_record_measured){.record.type = OCC_RECORD_MEASURED,
                                        .shape = r->shape,
                                        .minute = r->start_ns / MINUTE_NS,
                                        .head = 1,
                                        .launches = 1,
                                        .ns = ns,
                                        .warps_active_ns = c->warps_active / c->sms_active * ns,
                                        .warps_ns = c->warps_active / c->cycles * ns,
                                        .blocks_active_ns = c->blocks / c->sms_active * ns,
                                        .sms_active_ns = c->sms_active / c->cycles * ns};
    return occ_record_measured_is_valid(ret);
}

/* The sum that a launch belongs to; NULL: there are too many. */
static struct occ_record_measured *find_sum(struct occ_pairs *pairs, const struct occ_record_measured *launch)
{
    uint64_t key = launch->minute << 32 ^ launch->shape;
    uint32_t at = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % OCC_PAIRS_MOST_SUMS;
    struct occ_record_measured *sum = &pairs->sums[at];
    while (sum->launches > 0 && (sum->shape != launch->shape || sum->minute != launch->minute))
        sum = &pairs->sums[at = (at + 1) % OCC_PAIRS_MOST_SUMS];
    if (sum->launches > 0)
        return sum;
    if (pairs->n_sums >= SUMS_FILLED)
        return NULL;
    pairs->n_sums++;
    *sum = (struct occ_record_measured){
        .record.type = OCC_RECORD_MEASURED, .shape = launch->shape, .minute = launch->minute};
    return sum;
}

static void add(struct occ_pairs *pairs, const struct occ_record_measured *launch)
{
    struct occ_record_measured *sum = find_sum(pairs, launch);
    if (!sum)
        return;
    sum->launches++;
    sum->ns += launch->ns;
    sum->warps_active_ns += launch->warps_active_ns;
    sum->warps_ns += launch->warps_ns;
    sum->sms_active_ns += launch->sms_active_ns;
    sum->blocks_active_ns += launch->blocks_active_ns;
}

static void settle_one(struct occ_pairs *pairs, const struct occ_session *s)
{
    struct occ_pairs_record own[OCC_PAIRS_MOST_RANGES];
    struct occ_record_measured launch;
    uint32_t n = take_records(pairs, s, own);
    if (n != s->ranges || n > OCC_PAIRS_MOST_RANGES || s->lost != pairs->lost)
        return;
    sort_by_start(own, n);
    if (overlap(own, n))
        return;
    for (uint32_t i = 0; i < n; i++)
        if (measure(&own[i], &s->counts[i], &launch))
            add(pairs, &launch);
}

static void settle_first(struct occ_pairs *pairs)
{
    struct occ_session *s = pairs->first;
    settle_one(pairs, s);
    pairs->first = s->next;
    if (!pairs->first)
        pairs->last = &pairs->first;
    (void)munmap(s, sizeof *s);
}

void occ_pairs_add_record(struct occ_pairs *pairs, const struct occ_pairs_record *record)
{
    uint32_t half = OCC_PAIRS_MOST_RECORDS / 2;
    pairs->launches++;
    while (pairs->n == OCC_PAIRS_MOST_RECORDS && pairs->first) /* the oldest have waited long enough */
        settle_first(pairs);
    if (pairs->n == OCC_PAIRS_MOST_RECORDS) { /* no session came for so long: the older half gets no values */
        memmove(pairs->records, pairs->records + half, half * sizeof *pairs->records);
        pairs->n = half;
    }
    pairs->records[pairs->n++] = *record;
}

static void say_sums(struct occ_pairs *pairs, occ_pairs_sink *sink, void *context)
{
    for (uint32_t i = 0; i < OCC_PAIRS_MOST_SUMS; i++) {
        struct occ_record_measured *sum = &pairs->sums[i];
        if (sum->launches > 0 && sink(context, sum))
            pairs->measured += sum->launches;
        sum->launches = 0;
    }
    pairs->n_sums = pairs->paused = 0;
}

void occ_pairs_settle(struct occ_pairs *pairs, bool all, occ_pairs_sink *sink, void *context)
{
    for (struct occ_session *s = pairs->first; s; s = s->next)
        s->rounds++;
    while (pairs->first && (all || pairs->first->rounds > OCC_PAIRS_ROUNDS)) {
        settle_first(pairs);
        if (pairs->n_sums > SUMS_FILLED - OCC_PAIRS_MOST_RANGES)
            say_sums(pairs, sink, context);
    }
    pairs->paused += pairs->n_sums > 0;
    if (pairs->n_sums == 0 || (!all && pairs->paused < pairs->pause))
        return;
    say_sums(pairs, sink, context);
    pairs->pause = pairs->pause < OCC_PAIRS_MOST_PAUSE / 2 ? pairs->pause * 2 : OCC_PAIRS_MOST_PAUSE;
}
