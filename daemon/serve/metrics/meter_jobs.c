/* The meter's sums by job: see meter.h. Each launch counts for one job, for "(none)" or, beyond the owner's
 * share of entries, for "(other)". */
#include "meter_state.h"

#include <stdio.h>
#include <string.h>

#include "support/text.h"

static const char *const label_names[OCC_METER_JOB_LABELS] = {[OCC_METER_JOB_SLURM] = "slurm_job",
                                                              [OCC_METER_JOB_NAMESPACE] = "namespace",
                                                              [OCC_METER_JOB_ACCOUNT] = "slurm_account",
                                                              [OCC_METER_JOB_PARTITION] = "slurm_partition",
                                                              [OCC_METER_JOB_TRUST] = "job_trust"};

static void describe(const struct occ_run *run, char labels[OCC_METER_JOB_LABELS][OCC_METER_LABEL_BYTES])
{
    const char *const texts[OCC_METER_JOB_LABELS] = {[OCC_METER_JOB_SLURM] = run->job.slurm_job,
                                                     [OCC_METER_JOB_NAMESPACE] = run->job.k8s_namespace,
                                                     [OCC_METER_JOB_ACCOUNT] = run->job.slurm_account,
                                                     [OCC_METER_JOB_PARTITION] = run->job.slurm_partition,
                                                     [OCC_METER_JOB_TRUST] = run->job.trust};
    memset(labels, 0, OCC_METER_JOB_LABELS * sizeof *labels); /* compared as bytes */
    for (size_t i = 0; i < OCC_METER_JOB_LABELS; i++)
        if (texts[i]) {
            (void)snprintf(labels[i], sizeof labels[i], "%s", texts[i]);
            occ_text_sanitise(labels[i]);
        }
}

static void clear_job(struct occ_meter *m, size_t at)
{
    m->jobs[at] = (struct occ_meter_job){.launches = 0};
    occ_meter_leave_job(m, at);
    for (size_t i = 0; i < m->n_kernels; i++)
        m->kernels[i].job_wasted_ns[at] = 0;
}

size_t occ_meter_find_job(struct occ_meter *m, const struct occ_run *run, uint64_t owner, int64_t now_ns)
{
    char labels[OCC_METER_JOB_LABELS][OCC_METER_LABEL_BYTES];
    size_t at = 0;
    if (!run->job.slurm_job && !run->job.k8s_namespace)
        return OCC_METER_NO_JOB;
    describe(run, labels);
    while (at < OCC_METER_JOBS &&
           !(m->job_slots[at].is_used && memcmp(m->jobs[at].labels, labels, sizeof labels) == 0))
        at++;
    if (at == OCC_METER_JOBS) {
        at = occ_slots_take(m->job_slots, OCC_METER_JOBS, owner, false);
        if (at == OCC_SLOT_NONE)
            return OCC_METER_OTHER_JOB;
        clear_job(m, at);
        memcpy(m->jobs[at].labels, labels, sizeof labels);
    }
    m->job_slots[at].used_ns = now_ns;
    return at;
}

void occ_meter_expire_jobs(struct occ_meter *m, int64_t used_ns)
{
    (void)occ_slots_expire(m->job_slots, OCC_METER_JOBS, 0, used_ns);
}

/* ---- text ---- */

/* false: the job has no series. */
static bool fill_labels(const struct occ_meter *m, size_t at, struct occ_label *labels)
{
    const struct occ_meter_job *j = &m->jobs[at];
    if (at < OCC_METER_JOBS ? !m->job_slots[at].is_used : j->launches <= 0)
        return false;
    for (size_t i = 0; i < OCC_METER_JOB_LABELS; i++)
        labels[i] = (struct occ_label){label_names[i], j->labels[i]};
    if (at == OCC_METER_OTHER_JOB)
        labels[OCC_METER_JOB_SLURM].value = "(other)";
    if (at == OCC_METER_NO_JOB)
        labels[OCC_METER_JOB_SLURM].value = "(none)";
    return true;
}

static void put_sums(const struct occ_meter *m, const struct occ_exposition *e, enum occ_metric metric)
{
    struct occ_label labels[OCC_METER_JOB_LABELS + 1] = {{NULL, NULL}};
    if (!occ_exposition_begin(e, metric))
        return;
    for (size_t at = 0; at < OCC_METER_JOB_SUMS; at++) {
        const struct occ_meter_job *j = &m->jobs[at];
        const double values[] = {[OCC_METRIC_JOB_LAUNCHES] = j->launches,
                                 [OCC_METRIC_JOB_BUSY] = j->busy_ns / 1e9,
                                 [OCC_METRIC_JOB_CAPACITY] = j->capacity_ns / 1e9, /* warp-seconds */
                                 [OCC_METRIC_JOB_WASTED] = j->wasted_ns / 1e9 /* warp-seconds */};
        if (fill_labels(m, at, labels))
            occ_exposition_put(e, metric, labels, values[metric]);
    }
}

static void put_held(const struct occ_meter *m, const struct occ_exposition *e)
{
#define WORD(name, word) word,
    static const char *const words[] = {OCC_METER_HELD(WORD)};
    struct occ_label labels[OCC_METER_JOB_LABELS + 3] = {{NULL, NULL}};
    if (!occ_exposition_begin(e, OCC_METRIC_JOB_HELD))
        return;
    for (size_t at = 0; at < OCC_METER_JOB_SUMS; at++) {
        if (!fill_labels(m, at, labels))
            continue;
        for (size_t i = 0; i < (size_t)(OCC_METER_MODELS + 1) * OCC_METER_PARTS; i++) {
            size_t model = i / OCC_METER_PARTS, part = i % OCC_METER_PARTS;
            if (model < OCC_METER_MODELS && !m->model_slots[model].is_used)
                continue;
            labels[OCC_METER_JOB_LABELS] =
                (struct occ_label){"modelName", model < OCC_METER_MODELS ? m->models[model] : "(other)"};
            labels[OCC_METER_JOB_LABELS + 1] = (struct occ_label){"part", words[part]};
            if (m->jobs[at].held_s[model][part] > 0)
                occ_exposition_put(e, OCC_METRIC_JOB_HELD, labels, m->jobs[at].held_s[model][part]);
        }
    }
}

static void put_kernels(const struct occ_meter *m, const struct occ_exposition *e)
{
    struct occ_label labels[OCC_METER_JOB_LABELS + 2] = {{NULL, NULL}};
    if (!occ_exposition_begin(e, OCC_METRIC_JOB_KERNEL_WASTED))
        return;
    for (size_t at = 0; at < OCC_METER_JOB_SUMS; at++) {
        if (!fill_labels(m, at, labels))
            continue;
        for (size_t i = 0; i < m->n_kernels; i++) {
            const struct occ_meter_kernel *k = &m->kernels[i];
            labels[OCC_METER_JOB_LABELS] = (struct occ_label){"kernel", k->name};
            if (k->is_shown && k->job_wasted_ns[at] > 0)
                occ_exposition_put(e, OCC_METRIC_JOB_KERNEL_WASTED, labels, k->job_wasted_ns[at] / 1e9);
        }
    }
}

void occ_meter_write_jobs(const struct occ_meter *m, const struct occ_exposition *e)
{
    for (unsigned metric = OCC_METRIC_JOB_LAUNCHES; metric <= OCC_METRIC_JOB_WASTED; metric++)
        put_sums(m, e, (enum occ_metric)metric);
    put_held(m, e);
    put_kernels(m, e);
}
