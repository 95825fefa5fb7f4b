/* See meter.h. */
#include "meter.h"

#include <stdlib.h>
#include <string.h>

#include "support/array.h"
#include "support/map.h"
#include "support/text.h"

#define GPUS_MAX      32
#define KERNELS_SHOWN 20
#define KERNELS_MAX   1024
#define CONFIGS_MAX   131072
#define LABEL_BYTES   128
#define MINUTE_NS     INT64_C(60000000000)
#define HOUR_NS       (60 * MINUTE_NS)
#define RUN_LINGER_NS (5 * MINUTE_NS)

struct sums {
    double launches, busy_s, capacity, wasted, theoretical,
        expected_high; /* capacity and what follows: warp-seconds */
    double cause[OCC_CAUSE_COUNT];
};

struct gpu {
    uint8_t uuid[16];
    char model[64];
    struct sums sums, minutes[2]; /* now; at the last two ends of minutes */
    int64_t last_ns;
};

struct kernel {
    char name[64];
    double wasted, hour; /* while it is shown; in this hour */
    bool is_shown;
};

static const struct {
    const char *name;
    size_t offset; /* of a text in struct occ_run */
} run_labels[] = {{"user", offsetof(struct occ_run, user)},
                  {"slurm_job", offsetof(struct occ_run, job.slurm_job)},
                  {"namespace", offsetof(struct occ_run, job.k8s_namespace)},
                  {"pod", offsetof(struct occ_run, job.k8s_pod)},
                  {"container", offsetof(struct occ_run, job.container)},
                  {"job_trust", offsetof(struct occ_run, job.trust)}};
#define N_RUN_LABELS (sizeof run_labels / sizeof *run_labels)

struct run {
    uint8_t uuid[16], gpu[16];
    char labels[N_RUN_LABELS][LABEL_BYTES];
    double wasted;
    int64_t ended_ns; /* 0: it has not */
    bool is_used;
};

/* A launch configuration of a history, and its launches since they were added up. */
struct config {
    double launches, busy_ns;
    float wasted_warps;
    uint16_t gpu, kernel; /* so far for each launch: one cache line */
    float warps, theoretical, expected_high, cause[OCC_CAUSE_COUNT];
};

struct occ_meter {
    struct occ_map index; /* history << 32 | config -> configs */
    struct config *configs;
    size_t n_configs, allocated;
    struct gpu gpus[GPUS_MAX];
    size_t n_gpus;
    struct kernel kernels[KERNELS_MAX]; /* the first is "(other)" */
    size_t n_kernels, n_shown;
    int64_t minute_ns, hour_ns; /* when they end */
    size_t max_runs;
    struct run runs[];
};

int occ_meter_new(size_t max_runs, struct occ_meter **ret_meter, struct occ_error *err)
{
    struct occ_meter *m = calloc(1, sizeof *m + max_runs * sizeof *m->runs);
    if (!m)
        return occ_no_memory(err);
    m->max_runs = max_runs;
    m->n_kernels = 1;
    m->kernels[0] = (struct kernel){.name = "(other)", .is_shown = true};
    *ret_meter = m;
    return 0;
}

void occ_meter_free(struct occ_meter *meter)
{
    if (meter) {
        occ_map_free(&meter->index);
        free(meter->configs);
    }
    free(meter);
}

/* ---- adding up ---- */

static void fold_config(struct occ_meter *m, struct config *c)
{
    struct sums *g = &m->gpus[c->gpu].sums;
    struct kernel *k = &m->kernels[c->kernel];
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
    const struct kernel *x = a, *y = b;
    return (x->hour < y->hour) - (x->hour > y->hour);
}

/* The kernels that are shown from now on; all others are forgotten, and what refers to them. */
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

static void turn(struct occ_meter *m, int64_t now_ns)
{
    fold(m);
    for (size_t i = 0; i < m->n_gpus && now_ns >= m->minute_ns; i++) {
        m->gpus[i].minutes[0] = m->gpus[i].minutes[1];
        m->gpus[i].minutes[1] = m->gpus[i].sums;
    }
    m->minute_ns = now_ns >= m->minute_ns ? now_ns + MINUTE_NS : m->minute_ns;
    if (m->hour_ns && now_ns >= m->hour_ns)
        choose_kernels(m);
    m->hour_ns = !m->hour_ns || now_ns >= m->hour_ns ? now_ns + HOUR_NS : m->hour_ns;
}

/* ---- launches in ---- */

/* More GPUs than there is room for count with the last. */
static uint16_t find_gpu(struct occ_meter *m, const uint8_t uuid[16], const char *model)
{
    size_t i = 0;
    while (i < m->n_gpus && memcmp(m->gpus[i].uuid, uuid, 16) != 0)
        i++;
    if (i == GPUS_MAX)
        return GPUS_MAX - 1;
    if (i == m->n_gpus) {
        struct gpu *g = &m->gpus[m->n_gpus++];
        memcpy(g->uuid, uuid, 16);
        (void)snprintf(g->model, sizeof g->model, "%s", model);
        occ_text_sanitise(g->model);
    }
    return (uint16_t)i;
}

static uint16_t find_kernel(struct occ_meter *m, char *name)
{
    size_t i = 0;
    occ_text_sanitise(name);
    while (i < m->n_kernels && strcmp(m->kernels[i].name, name) != 0)
        i++;
    if (i == KERNELS_MAX)
        return 0;
    if (i == m->n_kernels) {
        struct kernel *k = &m->kernels[m->n_kernels++];
        *k = (struct kernel){.is_shown = m->n_shown < KERNELS_SHOWN};
        memcpy(k->name, name, sizeof k->name);
        m->n_shown += k->is_shown;
    }
    return (uint16_t)i;
}

static void describe(struct occ_meter *m, const struct occ_meter_launches *l, uint32_t id, struct config *c)
{
    struct occ_config_summary summary = {.kernel = ""};
    (void)occ_store_summarize_config(l->store, id, &summary, NULL);
    *c = (struct config){.warps = (float)summary.warps,
                         .wasted_warps = (float)(summary.warps * (1 - summary.expected_elapsed_low)),
                         .theoretical = (float)summary.theoretical,
                         .expected_high = (float)summary.expected_elapsed_high,
                         .gpu = find_gpu(m, l->gpu, summary.device),
                         .kernel = find_kernel(m, summary.kernel)};
    for (int i = 0; i < OCC_CAUSE_COUNT; i++) /* threads are not warps */
        c->cause[i] = i == OCC_CAUSE_PARTIAL_WARP ? 0 : (float)summary.cause[i];
}

/* NULL: no memory. */
static struct config *find_config(struct occ_meter *m, const struct occ_meter_launches *l, uint32_t id)
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

/* NULL: it has none. *ret_place, where it is wanted: one that is free, else that of the run that ended first;
 * NULL: all are live. */
static struct run *find_run(struct occ_meter *m, const uint8_t uuid[16], struct run **ret_place)
{
    struct run *best = NULL;
    for (struct run *r = m->runs; r < m->runs + m->max_runs; r++) {
        if (r->is_used && memcmp(r->uuid, uuid, 16) == 0)
            return r;
        if (!r->is_used || (r->ended_ns && (!best || (best->is_used && r->ended_ns < best->ended_ns))))
            best = r;
    }
    if (ret_place)
        *ret_place = best;
    return NULL;
}

static void add_to_run(struct occ_meter *m, const struct occ_meter_launches *l, double wasted)
{
    struct run *place = NULL, *r = find_run(m, l->run->uuid, &place);
    if (!r && (r = place)) {
        *r = (struct run){.is_used = true};
        memcpy(r->uuid, l->run->uuid, 16);
        for (size_t i = 0; i < N_RUN_LABELS; i++) {
            const char *text;
            memcpy(&text, (const char *)l->run + run_labels[i].offset, sizeof text);
            (void)snprintf(r->labels[i], LABEL_BYTES, "%s", text ? text : "");
            occ_text_sanitise(r->labels[i]);
        }
    }
    if (!r)
        return;
    memcpy(r->gpu, l->gpu, 16);
    r->wasted += wasted;
    r->ended_ns = 0;
}

void occ_meter_add(struct occ_meter *m, const struct occ_meter_launches *l, int64_t now_ns)
{
    double wasted_ns = 0;
    int64_t last_ns = 0;
    uint16_t gpu = GPUS_MAX;
    if (now_ns >= m->minute_ns || now_ns >= m->hour_ns)
        turn(m, now_ns);
    for (size_t i = 0; i < l->n; i++) {
        struct config *c = find_config(m, l, l->rows[i].config);
        if (!c)
            return;
        double duration_ns = (double)l->rows[i].duration_ns;
        int64_t end_ns = l->rows[i].start_ns + (int64_t)l->rows[i].duration_ns;
        c->launches++;
        c->busy_ns += duration_ns;
        wasted_ns += duration_ns * (double)c->wasted_warps;
        last_ns = last_ns > end_ns ? last_ns : end_ns;
        gpu = c->gpu;
    }
    if (gpu < GPUS_MAX && last_ns > m->gpus[gpu].last_ns)
        m->gpus[gpu].last_ns = last_ns;
    add_to_run(m, l, wasted_ns / 1e9);
}

void occ_meter_end_run(struct occ_meter *m, const uint8_t uuid[16], int64_t now_ns)
{
    struct run *r = find_run(m, uuid, NULL);
    if (r)
        r->ended_ns = now_ns;
}

/* ---- text out ---- */

/* The texts that the labels of a GPU point at, and one more. */
struct gpu_labels {
    char ordinal[16], uuid[OCC_GPU_UUID_BYTES];
    struct occ_label rows[5];
};

static void put_occupancy(const struct gpu *g, const struct occ_exposition *e, struct gpu_labels *labels)
{
    double capacity = g->sums.capacity - g->minutes[0].capacity;
    if (capacity <= 0)
        return;
    const double warp_seconds[3] = {g->sums.theoretical - g->minutes[0].theoretical,
                                    capacity - (g->sums.wasted - g->minutes[0].wasted),
                                    g->sums.expected_high - g->minutes[0].expected_high};
    static const char *const definitions[3] = {"theoretical", "expected_low", "expected_high"};
    for (int i = 0; i < 3; i++) {
        labels->rows[3] = (struct occ_label){"definition", definitions[i]};
        occ_exposition_put(e, OCC_METRIC_GPU_OCCUPANCY, labels->rows, warp_seconds[i] / capacity);
    }
}

static void put_causes(const struct gpu *g, const struct occ_exposition *e, struct gpu_labels *labels)
{
    for (int i = 0; i < OCC_CAUSE_COUNT; i++) {
        labels->rows[3] = (struct occ_label){"cause", occ_cause_word((enum occ_cause)i)};
        if (g->sums.cause[i] > 0)
            occ_exposition_put(e, OCC_METRIC_GPU_CAUSE, labels->rows, g->sums.cause[i]);
    }
}

static void put_gpu(const struct gpu *g, const struct occ_exposition *e, enum occ_metric metric,
                    struct gpu_labels *labels)
{
    const double values[] = {[OCC_METRIC_GPU_LAUNCHES] = g->sums.launches,
                             [OCC_METRIC_GPU_BUSY] = g->sums.busy_s,
                             [OCC_METRIC_GPU_CAPACITY] = g->sums.capacity,
                             [OCC_METRIC_GPU_WASTED] = g->sums.wasted,
                             [OCC_METRIC_GPU_LAST] = (double)g->last_ns / 1e9};
    if (metric == OCC_METRIC_GPU_OCCUPANCY)
        put_occupancy(g, e, labels);
    else if (metric == OCC_METRIC_GPU_CAUSE)
        put_causes(g, e, labels);
    else
        occ_exposition_put(e, metric, labels->rows, values[metric]);
}

static void put_kernels(const struct occ_meter *m, const struct occ_exposition *e)
{
    if (!occ_exposition_begin(e, OCC_METRIC_KERNEL_WASTED))
        return;
    for (size_t i = 0; i < m->n_kernels; i++)
        if (m->kernels[i].is_shown)
            occ_exposition_put(e, OCC_METRIC_KERNEL_WASTED,
                               (const struct occ_label[]){{"kernel", m->kernels[i].name}, {NULL, NULL}},
                               m->kernels[i].wasted);
}

static void put_runs(const struct occ_meter *m, const struct occ_exposition *e, enum occ_metric metric)
{
    if (!occ_exposition_begin(e, metric))
        return;
    for (const struct run *r = m->runs; r < m->runs + m->max_runs; r++) {
        char run[33], gpu[OCC_GPU_UUID_BYTES];
        if (!r->is_used)
            continue;
        occ_hex_encode(r->uuid, 16, run);
        occ_gpu_uuid_format(r->gpu, gpu);
        struct occ_label labels[N_RUN_LABELS + 3] = {{"run", run}};
        for (size_t i = 0; i < N_RUN_LABELS && metric == OCC_METRIC_RUN_INFO; i++)
            labels[2 + i] = (struct occ_label){run_labels[i].name, r->labels[i]};
        if (metric == OCC_METRIC_RUN_INFO)
            labels[1] = (struct occ_label){"UUID", gpu};
        occ_exposition_put(e, metric, labels, metric == OCC_METRIC_RUN_INFO ? 1 : r->wasted);
    }
}

void occ_meter_write(struct occ_meter *m, const struct occ_exposition *e, int64_t now_ns,
                     void (*ordinal)(void *context, const uint8_t uuid[16], char text[16]), void *context)
{
    turn(m, now_ns);
    for (struct run *r = m->runs; r < m->runs + m->max_runs; r++)
        r->is_used &= !r->ended_ns || now_ns - r->ended_ns < RUN_LINGER_NS;
    for (unsigned metric = OCC_METRIC_GPU_LAUNCHES; metric <= OCC_METRIC_GPU_LAST; metric++) {
        (void)occ_exposition_begin(e, (enum occ_metric)metric);
        for (size_t i = 0; i < m->n_gpus; i++) {
            struct gpu *g = &m->gpus[i];
            struct gpu_labels labels = {.ordinal = ""};
            ordinal(context, g->uuid, labels.ordinal);
            occ_gpu_uuid_format(g->uuid, labels.uuid);
            labels.rows[0] = (struct occ_label){"gpu", labels.ordinal};
            labels.rows[1] = (struct occ_label){"UUID", labels.uuid};
            labels.rows[2] = (struct occ_label){"modelName", g->model};
            put_gpu(g, e, (enum occ_metric)metric, &labels);
        }
    }
    put_runs(m, e, OCC_METRIC_RUN_INFO);
    put_runs(m, e, OCC_METRIC_RUN_WASTED);
    put_kernels(m, e);
}
