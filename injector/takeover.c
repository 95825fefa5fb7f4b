/* See takeover.h. */
#include "takeover.h"

#define SILENT_ROUNDS    3u
#define REST_ROUNDS_MIN  3u
#define REST_ROUNDS_MAX  64u
#define SUSPICION_ROUNDS 60u
/* CPU time that a worker uses in a second while it delivers records */
#define WORKING_NS UINT64_C(1000000)
/* CPU time of a program that wakes up in a second and launches a few kernels; one that waits uses none */
#define AWAKE_NS UINT64_C(20000)
/* A thread may be stopped between the start of its launch and the request of the buffer for its record. */
#define LAUNCH_NS UINT64_C(100000000)

void occ_takeover_init(struct occ_takeover *takeover, uint64_t now_ns)
{
    *takeover = (struct occ_takeover){
        .began_ns = now_ns, .cleared_ns = now_ns, .mark_ns = now_ns, .rest_rounds_needed = REST_ROUNDS_MIN};
}

bool occ_takeover_is_silent(const struct occ_takeover *takeover)
{
    return takeover->state == OCC_TAKEOVER_NONE && takeover->silent_rounds + 1 >= SILENT_ROUNDS;
}

/* Every buffer requested before cleared_ns has been delivered to the guest. */
static void advance_cleared(struct occ_takeover *t, const struct occ_takeover_signs *s)
{
    if (s->delivered < t->mark_requested)
        return;
    t->cleared_ns = t->mark_ns;
    t->mark_ns = s->now_ns;
    t->mark_requested = s->requested;
}

/* Counts the rounds of rest. A program that waits may be in a session and launch nothing: no sign of rest. */
static void count_rest(struct occ_takeover *t, bool worker_works, bool program_works)
{
    if (worker_works)
        t->rest_rounds = 0;
    else if (program_works)
        t->rest_rounds++;
}

static void find_takeover(struct occ_takeover *t, const struct occ_takeover_signs *s, bool progresses,
                          bool worker_works, bool program_works)
{
    if (progresses) { /* CUPTI called the guest, so no other client is registered */
        t->suspicion_was_unfounded = t->state == OCC_TAKEOVER_SUSPECTED;
        t->silent_rounds = 0;
        t->state = OCC_TAKEOVER_NONE;
        advance_cleared(t, s);
    } else {
        bool is_silence = !s->keeps_records && (s->requested != s->delivered || worker_works);
        t->silent_rounds = is_silence ? t->silent_rounds + 1 : 0;
    }
    if (t->state == OCC_TAKEOVER_NONE && t->silent_rounds >= SILENT_ROUNDS &&
        (s->has_other_library || worker_works))
        t->state = OCC_TAKEOVER_SUSPECTED;
    if (s->is_reset)
        t->state = OCC_TAKEOVER_TAKEN;
    t->from_ns = t->cleared_ns - t->began_ns > LAUNCH_NS ? t->cleared_ns - LAUNCH_NS : t->began_ns;
    bool may_rest = t->state == OCC_TAKEOVER_SUSPECTED && s->worker_cpu_ns > 0;
    count_rest(t, worker_works || !may_rest, program_works);
}

bool occ_takeover_round(struct occ_takeover *takeover, const struct occ_takeover_signs *signs)
{
    struct occ_takeover *t = takeover;
    const struct occ_takeover_signs *s = signs;
    bool progresses = s->requested != t->requested || s->delivered != t->delivered;
    bool worker_works = s->worker_cpu_ns > t->worker_cpu_ns + WORKING_NS && t->worker_cpu_ns > 0;
    bool program_works = s->program_cpu_ns > t->program_cpu_ns + AWAKE_NS;
    t->requested = s->requested;
    t->delivered = s->delivered;
    t->worker_cpu_ns = s->worker_cpu_ns;
    t->program_cpu_ns = s->program_cpu_ns;
    if (t->state != OCC_TAKEOVER_TAKEN) {
        find_takeover(t, s, progresses, worker_works && !progresses, program_works);
        return t->rest_rounds >= SUSPICION_ROUNDS;
    }
    count_rest(t, worker_works, program_works);
    return t->rest_rounds >= t->rest_rounds_needed;
}

void occ_takeover_registered_again(struct occ_takeover *takeover, const struct occ_takeover_signs *signs)
{
    uint32_t doubled = takeover->rest_rounds_needed * 2;
    occ_takeover_init(takeover, signs->now_ns);
    takeover->rest_rounds_needed = doubled < REST_ROUNDS_MAX ? doubled : REST_ROUNDS_MAX;
    takeover->requested = takeover->mark_requested = signs->requested;
    takeover->delivered = signs->delivered;
    takeover->worker_cpu_ns = signs->worker_cpu_ns;
    takeover->program_cpu_ns = signs->program_cpu_ns;
}
