/* See meter.h. */
#include "meter_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/array.h"
#include "support/pseudonym.h"
#include "support/text.h"

#define KERNELS_SHOWN 20
#define CONFIGS_MAX   131072
#define MINUTE_NS     INT64_C(60000000000)
#define HOUR_NS       (60 * MINUTE_NS)
#define RUN_LINGER_NS (5 * MINUTE_NS)
#define JOB_LINGER_NS HOUR_NS
#define SILENT_NS     (24 * HOUR_NS) /* then a GPU's series end, unless the driver lists the GPU */
#define OTHER_GPU     OCC_METER_GPUS

static const size_t run_labels[] = {/* members of struct occ_run */
#define OFFSET(label, member) offsetof(struct occ_run, member),
                                    OCC_METER_RUN_LABELS(OFFSET)};

/* A launch configuration of a history, and its launches not yet added to the sums. */
struct occ_meter_config {
    double launches, busy_ns;
    float wasted_warps;
    uint16_t gpu, kernel; /* up to here used for each launch: one cache line */
    float warps, theoretical, expected_high, cause[OCC_CAUSE_COUNT];
    float used; /* NaN: the model does not know the kernel */
    bool is_communication;
};

int occ_meter_new(const struct occ_meter_options *options, struct occ_meter **ret_meter,
                  struct occ_error *err)
{
    struct occ_meter *m = calloc(1, sizeof *m);
    if (!m)
        return occ_no_memory(err);
    m->options = *options;
    m->runs = calloc(options->max_runs + 1, sizeof *m->runs);
    m->run_slots = calloc(options->max_runs + 1, sizeof *m->run_slots);
    if (!m->runs || !m->run_slots) {
        occ_meter_free(m);
        return occ_no_memory(err);
    }
    m->n_kernels = 1;
    m->kernels[0] = (struct occ_meter_kernel){.name = "(other)", .is_shown = true};
    *ret_meter = m;
    return 0;
}

void occ_meter_free(struct occ_meter *meter)
{
    if (meter) {
        occ_map_free(&meter->index);
        free(meter->configs);
        free(meter->runs);
        free(meter->run_slots);
        free(meter->holders);
    }
    free(meter);
}

/* ---- adding up ---- */

static void fold_config(struct occ_meter *m, struct occ_meter_config *c)
{
    struct occ_meter_sums *g = &m->gpus[c->gpu].sums;
    struct occ_meter_kernel *k = &m->kernels[c->kernel];
    double seconds = c->busy_ns / 1e9, wasted = seconds * (double)c->wasted_warps;
    g->launches += c->launches;
    g->busy_s += seconds;
    g->capacity += seconds * (double)c->warps;
    g->wasted += wasted;
    g->theoretical += seconds * (double)c->warps * (double)c->theoretical;
    g->expected_high += seconds * (double)c->warps * (double)c->expected_high;
    for (int i = 0; i < OCC_CAUSE_COUNT; i++)
        g->cause[i] += seconds * (double)c->warps * (double)c->cause[i];
    k->hour += wasted;
    m->kernels[k->is_shown ? c->kernel : 0].wasted += wasted;
    c->launches = c->busy_ns = 0;
}

static void fold(struct occ_meter *m)
{
    for (size_t i = 0; i < m->n_configs; i++)
        fold_config(m, &m->configs[i]);
}

void occ_meter_forget_configs(struct occ_meter *m)
{
    fold(m);
    m->n_configs = 0;
    occ_map_clear(&m->index);
}

static int by_waste(const void *a, const void *b)
{
    const struct occ_meter_kernel *x = a, *y = b;
    return (x->hour < y->hour) - (x->hour > y->hour);
}

/* Chooses the kernels to show from now on; drops all others and the configurations that refer to them. */
static void choose_kernels(struct occ_meter *m)
{
    occ_meter_forget_configs(m);
    qsort(m->kernels + 1, m->n_kernels - 1, sizeof *m->kernels, by_waste);
    m->n_kernels = m->n_kernels < 1 + KERNELS_SHOWN ? m->n_kernels : 1 + KERNELS_SHOWN;
    m->n_shown = m->n_kernels - 1;
    for (size_t i = 0; i < m->n_kernels; i++) {
        m->kernels[i].hour = 0;
        m->kernels[i].is_shown = true;
    }
}

/* Ends series of runs that ended and of GPUs silent for long. A running program's series stay: it holds a
 * GPU. */
static void expire(struct occ_meter *m, int64_t now_ns)
{
    (void)occ_slots_expire(m->run_slots, m->options.max_runs, now_ns - RUN_LINGER_NS, INT64_MIN);
    occ_meter_keep_jobs(m, now_ns);
    occ_meter_expire_jobs(m, now_ns - JOB_LINGER_NS);
    occ_meter_expire_models(m, now_ns, now_ns - JOB_LINGER_NS);
    if (occ_slots_expire(m->gpu_slots, OCC_METER_GPUS, 0, now_ns - SILENT_NS))
        occ_meter_forget_configs(m);
}

void occ_meter_roll_over(struct occ_meter *m, int64_t now_ns)
{
    fold(m);
    for (size_t i = 0; i <= OTHER_GPU && now_ns >= m->minute_ns; i++) {
        m->gpus[i].minutes[0] = m->gpus[i].minutes[1];
        m->gpus[i].minutes[1] = m->gpus[i].sums;
    }
    m->minute_ns = now_ns >= m->minute_ns ? now_ns + MINUTE_NS : m->minute_ns;
    if (m->hour_ns && now_ns >= m->hour_ns)
        choose_kernels(m);
    m->hour_ns = !m->hour_ns || now_ns >= m->hour_ns ? now_ns + HOUR_NS : m->hour_ns;
    expire(m, now_ns);
}

/* ---- launches in ---- */

/* Later launches of known configurations count for "(other)": the GPU's entry belongs to another GPU now. */
static void leave_gpu(struct occ_meter *m, uint16_t gpu)
{
    for (struct occ_meter_config *c = m->configs; c < m->configs + m->n_configs; c++)
        if (c->gpu == gpu) {
            fold_config(m, c);
            c->gpu = OTHER_GPU;
        }
}

/* A GPU that cannot exist and GPUs beyond their owner's share count for "(other)". */
static uint16_t find_gpu(struct occ_meter *m, const struct occ_meter_launches *l, const char *model)
{
    for (uint16_t i = 0; i < OTHER_GPU; i++)
        if (m->gpu_slots[i].is_used && memcmp(m->gpus[i].uuid, l->gpu, 16) == 0)
            return i;
    enum occ_meter_standing standing = m->options.look_up(m->options.context, l->gpu, l->run->simulated);
    size_t at = standing == OCC_METER_INVENTED
                    ? OCC_SLOT_NONE
                    : occ_slots_take(m->gpu_slots, OTHER_GPU, l->owner, standing == OCC_METER_LISTED);
    if (at == OCC_SLOT_NONE)
        return OTHER_GPU;
    struct occ_meter_gpu *g = &m->gpus[at];
    leave_gpu(m, (uint16_t)at);
    *g = (struct occ_meter_gpu){.counted_ns = occ_meter_counted_ns(m, l->gpu)};
    memcpy(g->uuid, l->gpu, 16);
    (void)snprintf(g->model, sizeof g->model, "%s", model);
    occ_text_sanitise(g->model);
    return (uint16_t)at;
}

static uint16_t find_kernel(struct occ_meter *m, char *name)
{
    size_t i = 0;
    occ_text_sanitise(name);
    while (i < m->n_kernels && strcmp(m->kernels[i].name, name) != 0)
        i++;
    if (i == OCC_METER_KERNELS)
        return 0;
    if (i == m->n_kernels) {
        struct occ_meter_kernel *k = &m->kernels[m->n_kernels++];
        *k = (struct occ_meter_kernel){.is_shown = m->n_shown < KERNELS_SHOWN};
        memcpy(k->name, name, sizeof k->name);
        m->n_shown += k->is_shown;
    }
    return (uint16_t)i;
}

static void describe(struct occ_meter *m, const struct occ_meter_launches *l, uint32_t id,
                     struct occ_meter_config *c)
{
    struct occ_config_summary summary = {.kernel = ""};
    (void)occ_store_summarize_config(l->store, id, &summary, NULL);
    *c =
        (struct occ_meter_config){.warps = (float)summary.warps,
                                  .wasted_warps = (float)(summary.warps * (1 - summary.expected_elapsed_low)),
                                  .theoretical = (float)summary.theoretical,
                                  .expected_high = (float)summary.expected_elapsed_high,
                                  .used = summary.is_refused ? NAN : (float)summary.expected_elapsed_low,
                                  .is_communication = summary.is_communication,
                                  .gpu = find_gpu(m, l, summary.device),
                                  .kernel = find_kernel(m, summary.kernel)};
    for (int i = 0; i < OCC_CAUSE_COUNT; i++) /* a partial warp wastes threads, not warps */
        c->cause[i] = i == OCC_CAUSE_PARTIAL_WARP ? 0 : (float)summary.cause[i];
}

/* NULL: no memory. */
static struct occ_meter_config *find_config(struct occ_meter *m, const struct occ_meter_launches *l,
                                            uint32_t id)
{
    uint64_t key = (uint64_t)l->history << 32 | id;
    uint32_t at = occ_map_get(&m->index, key);
    if (at != OCC_MAP_NONE)
        return &m->configs[at];
    if (m->n_configs == CONFIGS_MAX)
        occ_meter_forget_configs(m);
    if (!occ_grow((void **)&m->configs, &m->allocated, m->n_configs, CONFIGS_MAX, sizeof *m->configs))
        return NULL;
    if (occ_map_put(&m->index, key, (uint32_t)m->n_configs) == OCC_MAP_NONE)
        return NULL;
    describe(m, l, id, &m->configs[m->n_configs]);
    return &m->configs[m->n_configs++];
}

/* OCC_SLOT_NONE: the run has no entry. */
static size_t find_run(const struct occ_meter *m, const uint8_t uuid[16])
{
    for (size_t i = 0; i < m->options.max_runs; i++)
        if (m->run_slots[i].is_used && memcmp(m->runs[i].uuid, uuid, 16) == 0)
            return i;
    return OCC_SLOT_NONE;
}

static size_t take_run(struct occ_meter *m, const struct occ_meter_launches *l)
{
    size_t at = occ_slots_take(m->run_slots, m->options.max_runs, l->owner, false);
    if (at == OCC_SLOT_NONE)
        return at;
    struct occ_meter_run *r = &m->runs[at];
    *r = (struct occ_meter_run){.wasted = 0};
    memcpy(r->uuid, l->run->uuid, 16);
    for (size_t i = 0; i < OCC_METER_N_RUN_LABELS; i++) {
        const char *text;
        char hash[OCC_PSEUDONYM_BYTES];
        memcpy(&text, (const char *)l->run + run_labels[i], sizeof text);
        if (text && m->options.users && run_labels[i] == offsetof(struct occ_run, user))
            text = occ_pseudonym_of(m->options.users, text, hash);
        (void)snprintf(r->labels[i], OCC_METER_LABEL_BYTES, "%s", text ? text : "");
        occ_text_sanitise(r->labels[i]);
    }
    return at;
}

static void note_gpu(struct occ_meter_run *r, const uint8_t gpu[16])
{
    for (size_t i = 0; i < r->n_gpus; i++)
        if (memcmp(r->gpus[i], gpu, 16) == 0)
            return;
    if (r->n_gpus < OCC_METER_RUN_GPUS)
        memcpy(r->gpus[r->n_gpus++], gpu, 16);
}

static void add_to_run(struct occ_meter *m, const struct occ_meter_launches *l, double wasted, int64_t now_ns)
{
    size_t at = find_run(m, l->run->uuid);
    if (at == OCC_SLOT_NONE)
        at = take_run(m, l);
    if (at == OCC_SLOT_NONE)
        return;
    note_gpu(&m->runs[at], l->gpu);
    m->runs[at].wasted += wasted;
    m->run_slots[at].used_ns = now_ns;
    m->run_slots[at].ended_ns = 0;
}

static void add_to_job(struct occ_meter *m, size_t job, const struct occ_meter_config *c, double duration_ns)
{
    struct occ_meter_job *j = &m->jobs[job];
    double wasted_ns = duration_ns * (double)c->wasted_warps;
    j->launches++;
    j->busy_ns += duration_ns;
    j->capacity_ns += duration_ns * (double)c->warps;
    j->wasted_ns += wasted_ns;
    m->kernels[m->kernels[c->kernel].is_shown ? c->kernel : 0].job_wasted_ns[job] += wasted_ns;
}

void occ_meter_add(struct occ_meter *m, const struct occ_meter_launches *l, int64_t now_ns)
{
    double wasted_ns = 0;
    int64_t last_ns = 0;
    uint16_t gpu = OTHER_GPU;
    if (now_ns >= m->minute_ns || now_ns >= m->hour_ns)
        occ_meter_roll_over(m, now_ns);
    size_t job = occ_meter_find_job(m, l->run, l->owner, now_ns);
    struct occ_holes holes = l->holes ? *l->holes : (struct occ_holes){.n = 0};
    holes.at = 0;
    struct occ_meter_holder *holder = NULL;
    for (size_t i = 0; i < l->n; i++) {
        struct occ_meter_config *c = find_config(m, l, l->rows[i].config);
        if (!c)
            return;
        double duration_ns = (double)l->rows[i].duration_ns;
        int64_t end_ns = l->rows[i].start_ns + (int64_t)l->rows[i].duration_ns;
        c->launches++;
        c->busy_ns += duration_ns;
        wasted_ns += duration_ns * (double)c->wasted_warps;
        add_to_job(m, job, c, duration_ns);
        if (i == 0) /* all rows are of one GPU */
            holder = occ_meter_hold(m, l, job, m->gpus[c->gpu].model);
        if (holder)
            occ_meter_hold_launch(holder, &l->rows[i], (double)c->used, c->is_communication, &holes);
        last_ns = last_ns > end_ns ? last_ns : end_ns;
        gpu = c->gpu;
    }
    if (last_ns > m->gpus[gpu].last_ns)
        m->gpus[gpu].last_ns = last_ns;
    if (gpu != OTHER_GPU)
        m->gpu_slots[gpu].used_ns = now_ns;
    add_to_run(m, l, wasted_ns / 1e9, now_ns);
    occ_meter_divide_held(m, now_ns);
}

void occ_meter_end_run(struct occ_meter *m, const uint8_t uuid[16], int64_t now_ns)
{
    size_t at = find_run(m, uuid);
    if (at != OCC_SLOT_NONE)
        m->run_slots[at].ended_ns = now_ns;
    occ_meter_end_holders(m, uuid);
}
