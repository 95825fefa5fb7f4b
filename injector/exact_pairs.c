/* See exact_pairs.h. */
#include "exact_pairs.h"

#include <string.h>
#include <sys/mman.h>

#define MINUTE_NS UINT64_C(60000000000)

bool occ_pairs_init(struct occ_pairs *pairs)
{
    memset(pairs, 0, sizeof *pairs);
    pairs->last = &pairs->first;
    void *map = mmap(NULL, OCC_PAIRS_MOST_RECORDS * sizeof *pairs->records, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return false;
    pairs->records = map;
    return true;
}

void occ_pairs_add_record(struct occ_pairs *pairs, const struct occ_pairs_record *record)
{
    uint32_t half = OCC_PAIRS_MOST_RECORDS / 2;
    pairs->launches++;
    if (pairs->n == OCC_PAIRS_MOST_RECORDS) { /* no session came for so long: the older half gets no values */
        memmove(pairs->records, pairs->records + half, half * sizeof *pairs->records);
        pairs->n = half;
    }
    pairs->records[pairs->n++] = *record;
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

/* A launch has warps and blocks: counters that say none did not count. NaN fails every comparison. */
static bool has_value(const struct occ_pairs_record *r, const struct occ_range_counts *c)
{
    return r->shape != OCC_PAIRS_NO_SHAPE && r->duration_ns > 0 && c->cycles > 0 && c->sms_active > 0 &&
           c->warps_active > 0 && c->blocks > 0;
}

static void add(struct occ_frame_measured *frame, const struct occ_pairs_record *r,
                const struct occ_range_counts *c)
{
    double ns = (double)r->duration_ns;
    frame->launches++;
    frame->ns += ns;
    frame->warps_active_ns += c->warps_active / c->sms_active * ns;
    frame->warps_ns += c->warps_active / c->cycles * ns;
    frame->blocks_active_ns += c->blocks / c->sms_active * ns;
    frame->sms_active_ns += c->sms_active / c->cycles * ns;
}

/* One frame for each shape and minute. */
static void emit(struct occ_pairs *pairs, const struct occ_session *s, struct occ_pairs_record *records,
                 occ_pairs_sink *sink, void *context)
{
    for (uint32_t i = 0; i < s->ranges; i++) {
        if (!has_value(&records[i], &s->counts[i]))
            continue;
        struct occ_frame_measured frame = {.frame.type = OCC_FRAME_MEASURED,
                                           .shape = records[i].shape,
                                           .minute = records[i].start_ns / MINUTE_NS};
        for (uint32_t k = i; k < s->ranges; k++) {
            struct occ_pairs_record *r = &records[k];
            if (r->shape != frame.shape || r->start_ns / MINUTE_NS != frame.minute ||
                !has_value(r, &s->counts[k]))
                continue;
            add(&frame, r, &s->counts[k]);
            r->shape = OCC_PAIRS_NO_SHAPE; /* done */
        }
        if (sink(context, &frame))
            pairs->measured += frame.launches;
    }
}

static void settle_one(struct occ_pairs *pairs, const struct occ_session *s, occ_pairs_sink *sink,
                       void *context)
{
    struct occ_pairs_record own[OCC_PAIRS_MOST_RANGES];
    uint32_t n = take_records(pairs, s, own);
    if (n != s->ranges || n > OCC_PAIRS_MOST_RANGES)
        return;
    sort_by_start(own, n);
    if (!overlap(own, n))
        emit(pairs, s, own, sink, context);
}

void occ_pairs_settle(struct occ_pairs *pairs, bool all, occ_pairs_sink *sink, void *context)
{
    for (struct occ_session *s = pairs->first; s; s = s->next)
        s->rounds++;
    while (pairs->first && (all || pairs->first->rounds > OCC_PAIRS_ROUNDS)) {
        struct occ_session *s = pairs->first;
        settle_one(pairs, s, sink, context);
        pairs->first = s->next;
        if (!pairs->first)
            pairs->last = &pairs->first;
        (void)munmap(s, sizeof *s);
    }
}
