/* The meter's GPU-seconds held, by job, GPU model and part: see meter.h. */
#include "meter_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/gaps.h"
#include "support/array.h"
#include "support/cleanup.h"
#include "support/clock.h"
#include "support/held.h"

#define SECOND_NS INT64_C(1000000000)
/* Records arrive within about two seconds: time is divided after this delay. */
#define DELAY_NS (5 * SECOND_NS)
/* A larger difference of two clocks means that one was set. */
#define STEP_NS SECOND_NS
/* A launch that ends later is of a clock that was set back since. */
#define FUTURE_NS (60 * SECOND_NS)
/* Limits the time before the first launches of a run arrive, whose start may be forged. */
#define LATE_MAX_NS (86400 * SECOND_NS)

static int64_t wall_ns(const struct occ_meter *m)
{
    return m->options.wall_ns ? m->options.wall_ns() : occ_now_ns();
}

/* ---- launches in ---- */

/* The entry's series begin at 0 for another model. */
static void clear_model(struct occ_meter *m, size_t at)
{
    for (size_t i = 0; i < m->n_holders; i++)
        if (m->holders[i].model == at)
            m->holders[i].model = OCC_METER_MODELS;
    for (size_t i = 0; i < OCC_METER_JOB_SUMS; i++)
        memset(m->jobs[i].held_s[at], 0, sizeof m->jobs[i].held_s[at]);
}

/* OCC_METER_MODELS: "(other)". Programs report the names; GPUs of the driver come first. */
static size_t find_model(struct occ_meter *m, const char *model, uint64_t owner, bool is_listed)
{
    size_t at = 0;
    if (!model[0] || strcmp(model, "(other)") == 0)
        return OCC_METER_MODELS;
    while (at < OCC_METER_MODELS && !(m->model_slots[at].is_used && strcmp(m->models[at], model) == 0))
        at++;
    if (at == OCC_METER_MODELS) {
        at = occ_slots_take(m->model_slots, OCC_METER_MODELS, owner, is_listed);
        if (at == OCC_SLOT_NONE)
            return OCC_METER_MODELS;
        clear_model(m, at);
        (void)snprintf(m->models[at], sizeof m->models[at], "%s", model);
    }
    m->model_slots[at].is_fixed |= is_listed;
    m->model_slots[at].ended_ns = 0;
    return at;
}

void occ_meter_expire_models(struct occ_meter *m, int64_t now_ns, int64_t left_ns)
{
    bool is_held[OCC_METER_MODELS + 1] = {false};
    for (size_t i = 0; i < m->n_holders; i++)
        is_held[m->holders[i].model] |= !m->holders[i].has_ended;
    for (size_t i = 0; i < OCC_METER_MODELS; i++) {
        struct occ_slot *p = &m->model_slots[i];
        p->used_ns = is_held[i] ? now_ns : p->used_ns;
        if (is_held[i] || p->ended_ns == 0)
            p->ended_ns = is_held[i] ? 0 : now_ns;
    }
    (void)occ_slots_expire(m->model_slots, OCC_METER_MODELS, left_ns, INT64_MIN);
}

static struct occ_meter_holder *take_holder(struct occ_meter *m, const struct occ_meter_launches *l,
                                            size_t n_of_owner, const char *model)
{
    enum occ_meter_standing standing = m->options.look_up(m->options.context, l->gpu, l->run->simulated);
    if (standing == OCC_METER_INVENTED || n_of_owner >= OCC_METER_HOLDERS_MAX - m->n_holders ||
        !occ_grow((void **)&m->holders, &m->holders_allocated, m->n_holders, OCC_METER_HOLDERS_MAX,
                  sizeof *m->holders))
        return NULL;
    size_t at = find_model(m, model, l->owner, standing == OCC_METER_LISTED);
    struct occ_meter_holder *h = &m->holders[m->n_holders++];
    *h = (struct occ_meter_holder){.owner = l->owner, .model = at};
    memcpy(h->run, l->run->uuid, 16);
    memcpy(h->gpu, l->gpu, 16);
    return h;
}

static bool is_of(const struct occ_meter_holder *h, const struct occ_meter_launches *l)
{
    return h->owner == l->owner && memcmp(h->run, l->run->uuid, 16) == 0 && memcmp(h->gpu, l->gpu, 16) == 0;
}

static void set_holes(struct occ_meter_holder *h, const struct occ_holes *holes)
{
    h->hole = (struct occ_span){0, 0};
    for (size_t i = 0; holes && i < holes->n; i++)
        if (holes->list[i].recorded_below_ns == 0)
            h->hole = holes->list[i].time;
}

void occ_meter_set_holes(struct occ_meter *m, uint64_t owner, const uint8_t uuid[16],
                         const struct occ_holes *holes)
{
    for (size_t i = 0; i < m->n_holders; i++)
        if (m->holders[i].owner == owner && memcmp(m->holders[i].run, uuid, 16) == 0)
            set_holes(&m->holders[i], holes);
}

/* Launches were lost at some time since the last arrival, or shortly before. */
static void note_losses(struct occ_meter_holder *h, uint64_t lost, int64_t now_ns)
{
    int64_t from_ns = h->seen_ns ? h->seen_ns - DELAY_NS : INT64_MIN;
    if (lost != h->lost) {
        h->lost_from_ns = h->lost_until_ns >= from_ns ? h->lost_from_ns : from_ns;
        h->lost_until_ns = now_ns;
    }
    h->lost = lost;
    h->seen_ns = now_ns;
}

struct occ_meter_holder *occ_meter_hold(struct occ_meter *m, const struct occ_meter_launches *l, size_t job,
                                        const char *model)
{
    struct occ_meter_holder *h = NULL;
    size_t n_of_owner = 0;
    for (size_t i = 0; i < m->n_holders && !h; i++) {
        n_of_owner += m->holders[i].owner == l->owner;
        if (is_of(&m->holders[i], l))
            h = &m->holders[i];
    }
    h = h ? h : take_holder(m, l, n_of_owner, model);
    if (!h)
        return NULL;
    h->job = job;
    h->has_ended = false;
    note_losses(h, l->lost, wall_ns(m));
    h->latest_ns = wall_ns(m) + FUTURE_NS;
    set_holes(h, l->holes);
    return h;
}

/* Returns the part of a launch after *end_ns, and moves *end_ns to its end. */
static double unite(int64_t start_ns, int64_t launch_end_ns, int64_t *end_ns)
{
    int64_t from_ns = start_ns > *end_ns ? start_ns : *end_ns;
    if (launch_end_ns <= *end_ns)
        return 0;
    *end_ns = launch_end_ns;
    return (double)(launch_end_ns - from_ns);
}

/* The gap before a launch is complete. The sums before may have less of its time as unknown, or more after a
 * withdrawn period. */
static void end_gap(struct occ_meter_holder *h, int64_t start_ns, bool in_graph, struct occ_holes *holes)
{
    int64_t gap_ns = start_ns - h->last_ns, unknown_ns = 0;
    if (holes->n > 0 && occ_holes_hide_gap(holes, h->last_ns, start_ns))
        unknown_ns = gap_ns;
    else if (occ_gap_is_launch((uint64_t)gap_ns, in_graph))
        h->part_ns[OCC_METER_HELD_WAITING] += (double)gap_ns;
    h->part_ns[OCC_METER_HELD_UNKNOWN] += (double)(unknown_ns - h->unknown_ns);
    h->unknown_ns = 0;
}

void occ_meter_hold_launch(struct occ_meter_holder *h, const struct occ_store_launch *launch, double used,
                           bool is_communication, struct occ_holes *holes)
{
    int64_t start_ns = launch->start_ns, end_ns = start_ns + (int64_t)launch->duration_ns;
    if (end_ns > h->latest_ns)
        return;
    if (h->first_ns == 0 || start_ns < h->first_ns)
        h->first_ns = start_ns;
    if (h->last_ns == 0)
        h->last_ns = h->others_ns = start_ns;
    if (start_ns > h->last_ns)
        end_gap(h, start_ns, launch->graph_node != 0, holes);
    double more_ns = unite(start_ns, end_ns, &h->last_ns);
    double others_ns = is_communication ? 0 : unite(start_ns, end_ns, &h->others_ns);
    h->part_ns[OCC_METER_HELD_COMMUNICATION] +=
        more_ns - others_ns; /* less, where another kernel overlaps it */
    h->part_ns[OCC_METER_HELD_LOST] += isfinite(used) ? others_ns * (1 - used) : 0;
    h->part_ns[OCC_METER_HELD_USED] += isfinite(used) ? others_ns * used : 0;
    h->part_ns[OCC_METER_HELD_UNKNOWN] += isfinite(used) ? 0 : others_ns;
}

void occ_meter_end_holders(struct occ_meter *m, const uint8_t run[16])
{
    for (size_t i = 0; i < m->n_holders; i++)
        m->holders[i].has_ended |= memcmp(m->holders[i].run, run, 16) == 0;
}

void occ_meter_keep_jobs(struct occ_meter *m, int64_t now_ns)
{
    for (size_t i = 0; i < m->n_holders; i++)
        if (!m->holders[i].has_ended && m->holders[i].job < OCC_METER_JOBS)
            m->job_slots[m->holders[i].job].used_ns = now_ns;
}

void occ_meter_leave_job(struct occ_meter *m, size_t job)
{
    for (size_t i = 0; i < m->n_holders; i++)
        if (m->holders[i].job == job)
            m->holders[i].job = OCC_METER_OTHER_JOB;
}

/* ---- division ---- */

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns the nanoseconds of `time` without recording since the last launch. */
static int64_t unknown_ns(const struct occ_meter_holder *h, const struct occ_holder *time)
{
    int64_t from_ns = latest(latest(h->last_ns, h->hole.low), time->first_ns);
    int64_t until_ns = h->hole.high < time->last_ns ? h->hole.high : time->last_ns;
    return until_ns > from_ns ? until_ns - from_ns : 0;
}

/* Adds the time of a run, in parts by its launches; the rest is idle time, or unknown in a hole or if
 * launches were lost. Launches beyond this time stay for the next one. */
static void count(struct occ_meter *m, struct occ_meter_holder *h, const struct occ_holder *time)
{
    double span_ns = (double)(time->last_ns - time->first_ns), all_ns = 0;
    double *held_s = m->jobs[h->job].held_s[h->model];
    if (!(span_ns > 0) || !(time->held_s > 0))
        return;
    for (size_t i = 0; i < OCC_METER_PARTS; i++)
        all_ns += fmax(h->part_ns[i], 0);
    double scale = all_ns > span_ns ? span_ns / all_ns : 1;
    for (size_t i = 0; i < OCC_METER_PARTS; i++) {
        double part_ns = fmax(h->part_ns[i], 0) * scale;
        held_s[i] += time->held_s * part_ns / span_ns;
        h->part_ns[i] -= part_ns;
    }
    bool has_lost = time->first_ns < h->lost_until_ns && time->last_ns > h->lost_from_ns;
    double rest_ns = fmax(span_ns - all_ns * scale, 0), hole_ns = fmin((double)unknown_ns(h, time), rest_ns);
    double idle_ns = has_lost ? 0 : rest_ns - hole_ns;
    held_s[OCC_METER_HELD_UNKNOWN] += time->held_s * (rest_ns - idle_ns) / span_ns;
    held_s[OCC_METER_HELD_IDLE] += time->held_s * idle_ns / span_ns;
    h->unknown_ns += (int64_t)hole_ns;
}

/* Removes ended runs before `until_ns`. */
static void remove_ended(struct occ_meter *m, int64_t until_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->n_holders; i++)
        if (!m->holders[i].has_ended || m->holders[i].last_ns > until_ns)
            m->holders[kept++] = m->holders[i];
    m->n_holders = kept;
}

static int64_t gpu_key(const uint8_t gpu[16])
{
    int64_t halves[2];
    memcpy(halves, gpu, sizeof halves);
    return halves[0] ^ halves[1];
}

static struct occ_meter_gpu *find_entry(struct occ_meter *m, const uint8_t uuid[16])
{
    size_t i = 0;
    while (i < OCC_METER_GPUS && memcmp(m->gpus[i].uuid, uuid, 16) != 0)
        i++;
    return &m->gpus[i];
}

int64_t occ_meter_counted_ns(const struct occ_meter *m, const uint8_t gpu[16])
{
    int64_t counted_ns = 0;
    for (size_t i = 0; i < m->n_holders; i++)
        if (memcmp(m->holders[i].gpu, gpu, 16) == 0)
            counted_ns = latest(counted_ns, m->holders[i].counted_ns);
    return counted_ns;
}

/* The run's time that is not counted yet. A first launch may have begun long ago: it was recorded at its end.
 * Such time counts as far as the GPU was not held, so that no moment of a GPU counts twice. */
static struct occ_holder time_of(struct occ_meter *m, const struct occ_meter_holder *h, int64_t until_ns)
{
    int64_t from_ns =
        latest(latest(h->first_ns, m->set_ns), latest(h->counted_ns, find_entry(m, h->gpu)->counted_ns));
    int64_t end_ns = h->has_ended && h->last_ns < until_ns ? h->last_ns : until_ns;
    if (h->counted_ns == 0)
        from_ns = latest(from_ns, h->first_ns ? until_ns - LATE_MAX_NS : until_ns);
    return (struct occ_holder){
        .gpu = gpu_key(h->gpu), .first_ns = from_ns, .last_ns = latest(end_ns, from_ns)};
}

static void note_counted(struct occ_meter *m, struct occ_meter_holder *h, const struct occ_holder *time)
{
    struct occ_meter_gpu *gpu = find_entry(m, h->gpu);
    if (time->last_ns <= time->first_ns)
        return;
    h->counted_ns = time->last_ns;
    gpu->counted_ns = latest(gpu->counted_ns, time->last_ns);
}

static bool divide(struct occ_meter *m, int64_t until_ns)
{
    _cleanup_(occ_freep) struct occ_holder *times = calloc(m->n_holders + 1, sizeof *times);
    for (size_t i = 0; times && i < m->n_holders; i++)
        times[i] = time_of(m, &m->holders[i], until_ns);
    if (!times || occ_held_divide(times, m->n_holders) != 0)
        return false;
    for (size_t i = 0; i < m->n_holders; i++) {
        count(m, &m->holders[i], &times[i]);
        note_counted(m, &m->holders[i], &times[i]);
    }
    return true;
}

/* Launches of the clock before say nothing about the time from now on. */
static void begin_anew(struct occ_meter *m, int64_t until_ns)
{
    m->set_ns = until_ns;
    for (size_t i = 0; i < OCC_METER_GPUS; i++)
        m->gpus[i].counted_ns = 0;
    for (size_t i = 0; i < m->n_holders; i++) {
        struct occ_meter_holder *h = &m->holders[i];
        h->first_ns = h->last_ns = h->others_ns = until_ns;
        h->counted_ns = h->unknown_ns = h->seen_ns = 0;
        h->lost_from_ns = h->lost_until_ns = 0;
        memset(h->part_ns, 0, sizeof h->part_ns);
    }
}

void occ_meter_divide_held(struct occ_meter *m, int64_t now_ns)
{
    int64_t until_ns = wall_ns(m) - DELAY_NS, ahead_ns = until_ns - now_ns;
    bool was_set = m->ahead_ns != 0 && (ahead_ns - m->ahead_ns > STEP_NS || m->ahead_ns - ahead_ns > STEP_NS);
    if (m->ahead_ns != 0 && !was_set && until_ns - m->divided_ns < SECOND_NS)
        return;
    if (was_set)
        begin_anew(m, until_ns);
    bool is_done = was_set || m->n_holders == 0 || divide(m, until_ns);
    if (!is_done)
        return;
    m->ahead_ns = ahead_ns;
    m->divided_ns = m->gpus[OCC_METER_GPUS].counted_ns = until_ns;
    remove_ended(m, until_ns);
}
