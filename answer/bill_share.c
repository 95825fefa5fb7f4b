/* The time of one run on its GPUs, divided into the bill's rows and parts; see bill_state.h. One thread. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "bill_state.h"
#include "explain/layers.h"
#include "support/cleanup.h"

/* A smaller part of the launches makes parts estimates. */
#define READ_ALL 0.995

/* One run on one GPU. */
struct gpu_run {
    const struct occ_bill_run *run;
    const struct occ_top *top;
    const struct occ_overview *overview;
    const struct occ_gpu_estimates *estimates; /* estimates of the run in the question's time */
    struct occ_top layers;                     /* rows of this GPU by layer and kernel, ordered by kernel */
    const struct occ_gpu_time *time;
    int64_t device;
    /* parts of held_s: with a recording; before the first and after the last launch in the question's time,
     * without holes in the recording */
    double held_s, recorded_s, edges_s;
    double watts, metered; /* mean power over held_s; part of held_s for which it is known */
    bool is_shared;
    const char *model;
};

static void add_part(struct occ_bill_row *row, enum occ_bill_part part, double seconds)
{
    row->part_s[part] += seconds;
    row->held_s += seconds;
}

/* Adds the row with the energy of its time. */
static int put_row(struct occ_bill_work *w, const struct gpu_run *g, struct occ_bill_row *row)
{
    for (size_t i = 0; i < OCC_BILL_PART_COUNT; i++)
        row->part_j[i] = row->part_s[i] * g->watts;
    row->metered_s = row->held_s * g->metered;
    return occ_bill_put_row(w, row);
}

/* Occupancy of launches: used NaN: unknown; the model's interval is of launches that were not measured. */
struct use {
    double used, spread;
    bool is_communication;
};

static struct use use_of(const struct occ_kernel_totals *kernel, const struct occ_top_row *row)
{
    return (struct use){kernel->used, occ_positive(row->tail_spread) + occ_positive(row->small_grid_spread),
                        occ_is_communication(kernel)};
}

static void add_use(const struct use *use, double seconds, struct occ_bill_row *row)
{
    if (use->is_communication) {
        add_part(row, OCC_BILL_COMMUNICATION, seconds);
    } else if (!isfinite(use->used)) {
        add_part(row, OCC_BILL_UNKNOWN, seconds);
    } else {
        double used = occ_at_most(occ_positive(use->used), 1);
        add_part(row, OCC_BILL_USED, seconds * used);
        add_part(row, OCC_BILL_LOST, seconds * (1 - used));
        row->lost_low_s += seconds * occ_positive(1 - used - use->spread);
    }
}

/* ---- layers ---- */

static bool is_by_layer(const struct occ_bill_work *w)
{
    return w->question->by == OCC_BILL_BY_LAYER || w->question->by == OCC_BILL_BY_RANGE;
}

static int by_kernel(const void *left, const void *right)
{
    const struct occ_top_row *a = left, *b = right;
    return (a->kernel.id > b->kernel.id) - (a->kernel.id < b->kernel.id);
}

/* Reads the layers of the run's launches on the GPU. */
static int find_layers(struct occ_bill_work *w, struct gpu_run *g)
{
    char device[24];
    const struct occ_filter filter = {.run = g->run->run,
                                      .since_ns = w->question->since_ns,
                                      .until_ns = w->question->until_ns,
                                      .gpu = device};
    (void)snprintf(device, sizeof device, "%" PRId64, g->device);
    occ_top_free(&g->layers);
    int rc = occ_store_top(w->side->history->store, &filter, OCC_TOP_BY_LAYER, &g->layers, w->err);
    if (rc == 0 && g->layers.n > 1)
        qsort(g->layers.rows, g->layers.n, sizeof *g->layers.rows, by_kernel);
    return rc;
}

/* Copies the path without the numbers of its names, so that equal layers are one row. */
static void fold_path(const char *path, char *folded)
{
    while (*path) {
        size_t bytes = strcspn(path, "/"), kept = occ_layer_name_bytes(path, bytes);
        memcpy(folded, path, kept);
        folded += kept;
        path += bytes;
        if (*path)
            *folded++ = *path++;
    }
    *folded = 0;
}

/* Returns the row's name for the layer, which lives as long as the bill; NULL: no memory. */
static const char *layer_name(struct occ_bill_work *w, const struct occ_row_kernel *layer)
{
    static const char backward[] = " (backward)";
    if (!layer->range || !*layer->range)
        return OCC_BILL_NO_LAYER;
    _cleanup_(occ_freep) char *name = malloc(strlen(layer->range) + sizeof backward);
    if (!name)
        return NULL;
    if (w->question->by == OCC_BILL_BY_LAYER)
        fold_path(layer->range, name);
    else
        memcpy(name, layer->range, strlen(layer->range) + 1);
    if (layer->is_backward)
        memcpy(name + strlen(name), backward, sizeof backward);
    return occ_bill_intern(w, name);
}

/* Returns the first of the kernel's layers. */
static size_t first_layer(const struct occ_top *layers, int64_t kernel)
{
    size_t low = 0, high = layers->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (layers->rows[middle].kernel.id < kernel)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the row's time in configurations that the model knows, or refuses: the time of a kernel's totals.
 */
static double layer_ns(const struct occ_top_row *layer, bool is_known)
{
    double known = layer->analysed_ratio > 0 ? occ_at_most(layer->analysed_ratio, 1) : 0;
    return (double)layer->total_ns * (is_known ? known : 1 - known);
}

static int put_unit(struct occ_bill_work *w, const struct gpu_run *g, const char *name, const struct use *use,
                    double seconds, const struct occ_bill_row *all)
{
    struct occ_bill_row row = {
        .key = name, .model = all->model, .is_estimate = all->is_estimate, .simulated = all->simulated};
    if (!name)
        return occ_no_memory(w->err);
    add_use(use, seconds, &row);
    return put_row(w, g, &row);
}

/* Adds `seconds` of kernel `at` to the layers in which it was launched, in proportion to durations. Launches
 * that are no longer stored individually have no layer. */
static int add_layers(struct occ_bill_work *w, const struct gpu_run *g, size_t at, double seconds,
                      const struct occ_bill_row *all)
{
    const struct occ_kernel_totals *kernel = &g->overview->totals.kernels[at];
    const struct occ_top_row *of = &g->top->rows[g->overview->kernels[at].row];
    const struct use use = use_of(kernel, of);
    bool is_known = isfinite(kernel->used);
    size_t first = first_layer(&g->layers, of->kernel.id), end = first;
    double stored_ns = 0, all_ns = kernel->time_s * 1e9, rest_s = seconds;
    int rc = 0;
    while (end < g->layers.n && g->layers.rows[end].kernel.id == of->kernel.id)
        stored_ns += layer_ns(&g->layers.rows[end++], is_known);
    double scale = seconds / (stored_ns > all_ns ? stored_ns : all_ns);
    for (size_t i = first; i < end && rc == 0 && isfinite(scale); i++) {
        const struct occ_top_row *layer = &g->layers.rows[i];
        struct use own = use;
        double own_s = layer_ns(layer, is_known) * scale;
        if (is_known && isfinite(layer->used)) {
            own.used = layer->used;
            own.spread = occ_positive(layer->tail_spread) + occ_positive(layer->small_grid_spread);
        }
        rest_s -= own_s;
        rc = own_s > 0 ? put_unit(w, g, layer_name(w, &layer->kernel), &own, own_s, all) : 0;
    }
    return rc == 0 && rest_s > 1e-9 * seconds ? put_unit(w, g, OCC_BILL_NO_LAYER, &use, rest_s, all) : rc;
}

/* ---- kernels ---- */

/* Adds `seconds` of kernel `at` to `all`, or to the rows of its unit. */
static int add_kernel(struct occ_bill_work *w, const struct gpu_run *g, size_t at, double seconds,
                      struct occ_bill_row *all)
{
    const struct occ_kernel_totals *kernel = &g->overview->totals.kernels[at];
    const struct occ_top_row *of = &g->top->rows[g->overview->kernels[at].row];
    const struct use use = use_of(kernel, of);
    if (is_by_layer(w))
        return add_layers(w, g, at, seconds, all);
    if (w->question->by == OCC_BILL_BY_KERNEL) {
        const struct occ_bill_question *q = w->question;
        const char *name =
            q->kernel_name ? q->kernel_name(w->side->history->names, of->kernel.id) : of->kernel.short_name;
        name = name ? name : "?";
        return put_unit(w, g, occ_bill_intern(w, name), &use, seconds, all);
    }
    add_use(&use, seconds, all);
    return 0;
}

/* Adds the kernels. *told: their seconds are added. */
static int add_kernels(struct occ_bill_work *w, const struct gpu_run *g, struct occ_bill_row *all,
                       double *told)
{
    const struct occ_overview *o = g->overview;
    int rc = 0;
    for (size_t i = 0; i < o->totals.n_kernels && rc == 0; i++) {
        const struct occ_kernel_totals *kernel = &o->totals.kernels[i];
        bool is_communication = occ_is_communication(kernel);
        double communication_s = o->communication_s[kernel->gpu];
        double of = is_communication ? communication_s : o->duration_s[kernel->gpu] - communication_s;
        double part = is_communication ? g->time->communication : g->time->kernels;
        if (o->kernels[i].device != g->device || !(of > 0))
            continue;
        double seconds = g->recorded_s * part * (kernel->time_s / of);
        *told += seconds;
        rc = add_kernel(w, g, i, seconds, all);
    }
    return rc;
}

/* Returns the part of pauses and waits in which no lost launch ran, if the lost launches took as long as the
 * recorded ones. */
static double gaps_ratio(const struct occ_overview *o, const struct occ_gpu_time *time)
{
    double gaps = time->pause + time->launch_wait,
           lost = (time->communication + time->kernels) * o->lost_ratio;
    return gaps > 0 ? occ_positive(1 - lost / gaps) : 1;
}

static int add_gpu_run(struct occ_bill_work *w, const struct gpu_run *g)
{
    const struct occ_gpu_time *time = g->time;
    struct occ_bill_row row = {.key = w->question->by == OCC_BILL_BY_RUN ? g->run->key : NULL,
                               .model = g->model,
                               .is_estimate = g->is_shared || g->overview->is_busy_most ||
                                              g->overview->lost > 0 || time->is_divided ||
                                              !(g->overview->read_ratio >= READ_ALL),
                               .simulated = g->overview->is_simulated};
    double known = gaps_ratio(g->overview, time);
    add_part(&row, OCC_BILL_IDLE, g->edges_s + g->recorded_s * time->pause * known);
    add_part(&row, OCC_BILL_WAITING, g->recorded_s * time->launch_wait * known);
    double told = row.held_s;
    int rc = add_kernels(w, g, &row, &told);
    add_part(&row, OCC_BILL_UNKNOWN, occ_positive(g->held_s - told));
    return rc == 0 ? put_row(w, g, &row) : rc;
}

/* True if the question is about a part of time. */
static bool has_time(const struct occ_bill_work *w)
{
    return w->question->since_ns > 0 || w->question->until_ns > 0;
}

/* Returns the GPU's name among kernels; NULL: unknown. */
static const char *name_in(const struct occ_top *top, int64_t device)
{
    for (size_t i = 0; i < top->n; i++)
        if (top->rows[i].kernel.device == device && top->rows[i].kernel.device_name)
            return top->rows[i].kernel.device_name;
    return NULL;
}

/* Sets the GPU's name, a copy, by the kernels of the run; NULL: unknown. A run without a kernel in the
 * question's time has kernels at other times. */
static int find_model(struct occ_bill_work *w, struct gpu_run *g)
{
    const struct occ_filter whole = {.run = g->run->run};
    _cleanup_(occ_top_free) struct occ_top other = {0};
    g->model = name_in(g->top, g->device);
    if (!g->model && has_time(w)) {
        int rc = occ_store_top(w->side->history->store, &whole, OCC_TOP_BY_KERNEL, &other, w->err);
        if (rc != 0)
            return rc;
        g->model = name_in(&other, g->device);
    }
    if (g->model && !(g->model = occ_bill_intern(w, g->model)))
        return occ_no_memory(w->err);
    return 0;
}

/* Seconds without launches at the ends of a time. */
struct edges {
    double all_s, recorded_s;
};

static int add_edge(struct occ_bill_work *w, const struct gpu_run *g, int64_t low_ns, int64_t high_ns,
                    struct edges *edges)
{
    uint64_t unrecorded_ns = 0;
    if (low_ns >= high_ns)
        return 0;
    int rc =
        occ_store_unrecorded(w->side->history->store, g->run->run, low_ns, high_ns, &unrecorded_ns, w->err);
    double all_s = (double)(high_ns - low_ns) * 1e-9;
    edges->all_s += all_s;
    edges->recorded_s += occ_positive(all_s - (double)unrecorded_ns * 1e-9);
    return rc;
}

/* Sets the parts of [first_ns, last_ns] outside the run's launches on the GPU. has_launches: launches of the
 * run are stored, at any time. */
static int find_edges(struct occ_bill_work *w, const struct gpu_run *g, const struct occ_holder *holder,
                      bool has_launches, struct edges *edges)
{
    int64_t first_ns = holder->first_ns, last_ns = holder->last_ns;
    for (size_t i = 0; i < g->estimates->n; i++) {
        const struct occ_gpu_estimate *e = &g->estimates->list[i];
        if (e->device != g->device || (e->launches == 0 && has_launches))
            continue;
        int rc = add_edge(w, g, first_ns, e->first_ns, edges);
        return rc == 0 ? add_edge(w, g, e->last_ns, last_ns, edges) : rc;
    }
    return add_edge(w, g, first_ns, last_ns, edges);
}

/* Adds the run's time on the GPU of estimate `at`. */
static int add_gpu(struct occ_bill_work *w, struct gpu_run *g, size_t at, const struct occ_gpu_time *times,
                   size_t n)
{
    const struct occ_holder *holder = &w->side->holders[at];
    static const struct occ_gpu_time nothing;
    double span_s = (double)(holder->last_ns - holder->first_ns) * 1e-9;
    g->device = w->side->estimates.list[at].device;
    g->held_s = holder->held_s;
    if (!(span_s > 0) || !(g->held_s > 0))
        return 0;
    g->time = &nothing;
    for (size_t i = 0; i < n; i++)
        if (times[i].key == g->device)
            g->time = &times[i];
    struct edges edges = {0, 0};
    int rc = has_time(w) ? find_edges(w, g, holder, w->side->estimates.list[at].launches > 0, &edges) : 0;
    double edges_ratio = occ_at_most(edges.all_s / span_s, 1);
    g->edges_s = g->held_s * occ_at_most(edges.recorded_s / span_s, 1);
    g->recorded_s = g->held_s * occ_at_most(g->time->window_s / span_s, 1 - edges_ratio);
    g->watts = occ_positive(w->side->energies[at].joules) / g->held_s;
    g->metered = occ_at_most(occ_positive(w->side->energies[at].seconds) / g->held_s, 1);
    g->is_shared = g->held_s < span_s * (1 - 1e-9);
    rc = rc == 0 ? find_model(w, g) : rc;
    if (rc == 0 && is_by_layer(w))
        rc = find_layers(w, g);
    return rc == 0 ? add_gpu_run(w, g) : rc;
}

int occ_bill_add_run(struct occ_bill_work *w, const struct occ_bill_run *run, size_t low, size_t high)
{
    const struct occ_filter filter = {
        .run = run->run, .since_ns = w->question->since_ns, .until_ns = w->question->until_ns};
    _cleanup_(occ_top_free) struct occ_top top = {0};
    _cleanup_(occ_overview_free) struct occ_overview overview = {0};
    _cleanup_(occ_gpu_estimates_free) struct occ_gpu_estimates estimates = {0};
    _cleanup_(occ_freep) struct occ_gpu_time *times = NULL;
    struct gpu_run gpu = {.run = run, .top = &top, .overview = &overview, .estimates = &estimates};
    size_t n = 0;
    int rc = occ_store_top(w->side->history->store, &filter, OCC_TOP_BY_KERNEL, &top, w->err);
    if (rc == 0)
        rc = occ_overview_make_times(w->side->history->store, &filter, &top, &overview, w->err);
    if (rc == 0 && has_time(w))
        rc = occ_store_gpu_estimates(w->side->history->store, &filter, NULL, &estimates, w->err);
    if (rc == 0 && occ_gpu_times(&overview.totals, OCC_TIME_BY_GPU, &times, &n) != 0)
        rc = occ_no_memory(w->err);
    for (size_t i = low; i < high && rc == 0; i++)
        rc = add_gpu(w, &gpu, i, times, n);
    occ_top_free(&gpu.layers);
    return rc;
}
