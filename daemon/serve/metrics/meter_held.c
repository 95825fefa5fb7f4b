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

static int64_t wall_ns(const struct occ_meter *m)
{
    return m->options.wall_ns ? m->options.wall_ns() : occ_now_ns();
}

/* ---- launches in ---- */

static size_t find_model(struct occ_meter *m, const char *model)
{
    size_t i = 0;
    if (!model[0])
        return OCC_METER_MODELS;
    while (i < m->n_models && strcmp(m->models[i], model) != 0)
        i++;
    if (i == m->n_models && i < OCC_METER_MODELS)
        (void)snprintf(m->models[m->n_models++], sizeof m->models[0], "%s", model);
    return i; /* OCC_METER_MODELS: "(other)" */
}

struct occ_meter_holder *occ_meter_hold(struct occ_meter *m, const struct occ_meter_launches *l, size_t job,
                                        const char *model)
{
    struct occ_meter_holder *h = m->holders;
    while (h < m->holders + m->n_holders &&
           (memcmp(h->run, l->run->uuid, 16) != 0 || memcmp(h->gpu, l->gpu, 16) != 0))
        h++;
    if (h == m->holders + m->n_holders) {
        if (!occ_grow((void **)&m->holders, &m->holders_allocated, m->n_holders, OCC_METER_HOLDERS_MAX,
                      sizeof *m->holders))
            return NULL;
        h = &m->holders[m->n_holders++];
        *h = (struct occ_meter_holder){.model = find_model(m, model)};
        memcpy(h->run, l->run->uuid, 16);
        memcpy(h->gpu, l->gpu, 16);
    }
    h->job = job;
    h->has_ended = false;
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

void occ_meter_hold_launch(struct occ_meter_holder *h, const struct occ_store_launch *launch, double used,
                           bool is_communication)
{
    int64_t start_ns = launch->start_ns, end_ns = start_ns + (int64_t)launch->duration_ns;
    if (h->first_ns == 0 || start_ns < h->first_ns)
        h->first_ns = start_ns;
    if (h->last_ns == 0)
        h->last_ns = h->others_ns = start_ns;
    if (start_ns > h->last_ns &&
        occ_gap_is_launch((uint64_t)(start_ns - h->last_ns), launch->graph_node != 0))
        h->part_ns[OCC_METER_HELD_WAITING] += (double)(start_ns - h->last_ns);
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

/* Adds the time of a run, in parts by its launches; the rest is idle time.
 * Launches beyond this time stay for the next one. */
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
    held_s[OCC_METER_HELD_IDLE] += time->held_s * fmax(1 - all_ns * scale / span_ns, 0);
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

static bool divide(struct occ_meter *m, int64_t until_ns)
{
    _cleanup_(occ_freep) struct occ_holder *times = calloc(m->n_holders + 1, sizeof *times);
    for (size_t i = 0; times && i < m->n_holders; i++) {
        const struct occ_meter_holder *h = &m->holders[i];
        int64_t low_ns = h->first_ns > m->divided_ns ? h->first_ns : m->divided_ns;
        int64_t high_ns = h->has_ended && h->last_ns < until_ns ? h->last_ns : until_ns;
        times[i] = (struct occ_holder){
            .gpu = gpu_key(h->gpu), .first_ns = low_ns, .last_ns = high_ns > low_ns ? high_ns : low_ns};
    }
    if (!times || occ_held_divide(times, m->n_holders) != 0)
        return false;
    for (size_t i = 0; i < m->n_holders; i++)
        count(m, &m->holders[i], &times[i]);
    return true;
}

void occ_meter_divide_held(struct occ_meter *m, int64_t now_ns)
{
    int64_t until_ns = wall_ns(m) - DELAY_NS, ahead_ns = until_ns - now_ns;
    bool was_set = m->ahead_ns != 0 && (ahead_ns - m->ahead_ns > STEP_NS || m->ahead_ns - ahead_ns > STEP_NS);
    if (m->ahead_ns != 0 && !was_set && until_ns - m->divided_ns < SECOND_NS)
        return;
    /* the first call has no time before it but that of the launches */
    bool is_done = was_set || m->n_holders == 0 || divide(m, until_ns);
    if (!is_done)
        return;
    m->ahead_ns = ahead_ns;
    m->divided_ns = until_ns;
    remove_ended(m, until_ns);
}
