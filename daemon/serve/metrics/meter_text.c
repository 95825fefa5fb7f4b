/* The meter's part of /metrics: see meter.h. */
#include "meter_state.h"

#include "support/text.h"

static const char *const run_labels[] = {
#define LABEL(label, member) label,
    OCC_METER_RUN_LABELS(LABEL)};

/* Storage for the labels of a GPU, with room for one more label. */
struct gpu_labels {
    char ordinal[16], uuid[OCC_GPU_UUID_BYTES];
    struct occ_label rows[5];
};

static void put_occupancy(const struct occ_meter_gpu *g, const struct occ_exposition *e,
                          struct gpu_labels *labels)
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

static void put_causes(const struct occ_meter_gpu *g, const struct occ_exposition *e,
                       struct gpu_labels *labels)
{
    for (int i = 0; i < OCC_CAUSE_COUNT; i++) {
        labels->rows[3] = (struct occ_label){"cause", occ_cause_word((enum occ_cause)i)};
        if (g->sums.cause[i] > 0)
            occ_exposition_put(e, OCC_METRIC_GPU_CAUSE, labels->rows, g->sums.cause[i]);
    }
}

static void put_gpu(const struct occ_meter_gpu *g, const struct occ_exposition *e, enum occ_metric metric,
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
    for (size_t i = 0; i < m->options.max_runs; i++) {
        const struct occ_meter_run *r = &m->runs[i];
        char run[33], gpu[OCC_GPU_UUID_BYTES];
        if (!m->run_slots[i].is_used)
            continue;
        occ_hex_encode(r->uuid, 16, run);
        occ_gpu_uuid_format(r->gpus[0], gpu);
        struct occ_label labels[OCC_METER_N_RUN_LABELS + 3] = {{"run", run}};
        for (size_t k = 0; k < OCC_METER_N_RUN_LABELS && metric == OCC_METRIC_RUN_INFO; k++)
            labels[2 + k] = (struct occ_label){run_labels[k], r->labels[k]};
        if (metric == OCC_METRIC_RUN_INFO)
            labels[1] = (struct occ_label){"UUID", gpu};
        occ_exposition_put(e, metric, labels, metric == OCC_METRIC_RUN_INFO ? 1 : r->wasted);
    }
}

/* The GPUs of programs that have used several. */
static void put_gpus_of_runs(const struct occ_meter *m, const struct occ_exposition *e)
{
    size_t n = 0;
    if (!occ_exposition_begin(e, OCC_METRIC_RUN_GPU))
        return;
    for (size_t i = 0; i < m->options.max_runs; i++) {
        const struct occ_meter_run *r = &m->runs[i];
        char run[33], gpu[OCC_GPU_UUID_BYTES];
        if (!m->run_slots[i].is_used || r->n_gpus < 2)
            continue;
        occ_hex_encode(r->uuid, 16, run);
        for (size_t k = 0; k < r->n_gpus && n < OCC_METER_RUNS_GPUS; k++, n++) {
            occ_gpu_uuid_format(r->gpus[k], gpu);
            occ_exposition_put(e, OCC_METRIC_RUN_GPU,
                               (const struct occ_label[]){{"run", run}, {"UUID", gpu}, {NULL, NULL}}, 1);
        }
    }
}

static void put_gpus(struct occ_meter *m, const struct occ_exposition *e, enum occ_metric metric)
{
    (void)occ_exposition_begin(e, metric);
    for (size_t i = 0; i <= OCC_METER_GPUS; i++) {
        const struct occ_meter_gpu *g = &m->gpus[i];
        struct gpu_labels labels = {.ordinal = "", .uuid = "(other)"};
        bool is_other = i == OCC_METER_GPUS;
        if (is_other ? g->sums.launches <= 0 : !m->gpu_slots[i].is_used)
            continue;
        if (!is_other) {
            m->options.name(m->options.context, g->uuid, labels.ordinal);
            occ_gpu_uuid_format(g->uuid, labels.uuid);
        }
        labels.rows[0] = (struct occ_label){"gpu", labels.ordinal};
        labels.rows[1] = (struct occ_label){"UUID", labels.uuid};
        labels.rows[2] = (struct occ_label){"modelName", g->model};
        put_gpu(g, e, metric, &labels);
    }
}

void occ_meter_write(struct occ_meter *m, const struct occ_exposition *e, int64_t now_ns)
{
    occ_meter_roll_over(m, now_ns);
    occ_meter_divide_held(m, now_ns);
    for (unsigned metric = OCC_METRIC_GPU_LAUNCHES; metric <= OCC_METRIC_GPU_LAST; metric++)
        put_gpus(m, e, (enum occ_metric)metric);
    put_runs(m, e, OCC_METRIC_RUN_INFO);
    put_gpus_of_runs(m, e);
    put_runs(m, e, OCC_METRIC_RUN_WASTED);
    put_kernels(m, e);
    occ_meter_write_jobs(m, e);
}
