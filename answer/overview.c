/* Makes the overview of a history; see answer.h. One thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_totals.h"
#include "support/cleanup.h"

/* Maximum number of rows with a name and an owner, the longest time first: each name costs microseconds. */
enum { NAMED_MAX = 256 };

struct work {
    struct occ_store *store;
    const struct occ_filter *filter;
    const struct occ_top *top;
    struct occ_overview *overview;
    struct occ_arena arena;
    struct occ_gpu_totals *gpus;
    struct occ_device_sums *sums; /* sums[i] belongs to gpus[i] */
    double *durations;            /* see struct occ_overview */
    double *communications;       /* likewise */
    size_t n_gpus;
    struct occ_map gpu_of; /* device -> index in `gpus` */
    struct occ_kernel_totals *kernels;
    struct occ_answer_kernel *texts;
    struct occ_map communication; /* set of communication kernels */
    bool has_times, has_findings;
    size_t n_kernels;
    struct occ_error *err;
};

/* ---- kernels ---- */

/* Returns the index of the device's row, which is added if it is missing; SIZE_MAX: no memory. */
static size_t gpu_of(struct work *w, int64_t device)
{
    uint32_t at = occ_map_put(&w->gpu_of, (uint64_t)device, (uint32_t)w->n_gpus);
    if (at == OCC_MAP_NONE)
        return SIZE_MAX;
    if (at == w->n_gpus) {
        w->gpus[at] = (struct occ_gpu_totals){.gpu = device,
                                              .run = w->filter->run > 0 ? w->filter->run : 0,
                                              .copies_s = NAN,
                                              .communication_s = NAN};
        w->sums[w->n_gpus++] = (struct occ_device_sums){.device = device};
    }
    return at;
}

static double grid_per_sm(const struct occ_dominant_config *config)
{
    return config->sm_count > 0 ? (double)config->grid_blocks / config->sm_count : 0;
}

static struct occ_kernel_totals kernel_of(const struct occ_top_row *row, size_t gpu)
{
    struct occ_kernel_totals kernel = {.gpu = gpu,
                                       .kernel = row->dominant.kernel,
                                       .config = row->dominant.id,
                                       .launches = row->launches,
                                       .time_s = (double)row->total_ns * 1e-9,
                                       .used = row->used,
                                       .measured_ratio = occ_positive(row->measured_ratio),
                                       .waves = row->dominant.waves,
                                       .grid_per_sm = grid_per_sm(&row->dominant),
                                       .by_design = row->dominant.by_design,
                                       .simulated = row->kernel.simulated};
    memcpy(kernel.part, row->part, sizeof kernel.part);
    return kernel;
}

static int add_kernels(struct work *w)
{
    struct occ_overview *o = w->overview;
    double measured_s = 0;
    for (size_t i = 0; i < w->top->n; i++) {
        const struct occ_top_row *row = &w->top->rows[i];
        size_t gpu = gpu_of(w, row->kernel.device);
        if (gpu == SIZE_MAX)
            return occ_no_memory(w->err);
        w->kernels[i] = kernel_of(row, gpu);
        w->texts[i] = (struct occ_answer_kernel){.label = "",
                                                 .row = i,
                                                 .device = row->kernel.device,
                                                 .config = row->dominant,
                                                 .total_ns = row->total_ns};
        w->sums[gpu].duration_ns += (double)row->total_ns;
        w->sums[gpu].launches += row->launches;
        o->launches += row->launches;
        o->kernel_s += w->kernels[i].time_s;
        measured_s += w->kernels[i].time_s * w->kernels[i].measured_ratio;
        o->is_simulated = o->is_simulated || row->kernel.simulated;
    }
    o->measured_ratio = o->kernel_s > 0 ? measured_s / o->kernel_s : NAN;
    return 0;
}

/* ---- names and owners ---- */

static int most_time_first(const void *left, const void *right)
{
    const struct occ_top_row *const *a = left, *const *b = right;
    uint64_t x = (*a)->total_ns, y = (*b)->total_ns;
    return x != y ? (x < y) - (x > y)
                  : ((*a)->dominant.id > (*b)->dominant.id) - ((*a)->dominant.id < (*b)->dominant.id);
}

/* Returns the rows of `top`, the longest time first. The caller frees the list. NULL: no memory. */
static const struct occ_top_row **sort_rows(const struct occ_top *top)
{
    const struct occ_top_row **rows = calloc(top->n + 1, sizeof *rows);
    for (size_t i = 0; rows && i < top->n; i++)
        rows[i] = &top->rows[i];
    if (rows && top->n > 1)
        qsort(rows, top->n, sizeof *rows, most_time_first);
    return rows;
}

/* Sets the names, label and owner of row `at`. Rows of one kernel on several devices share the texts.
 * `named`: kernel -> index of its first row. Returns false without memory. */
static bool name_kernel(struct work *w, size_t at, struct occ_map *named)
{
    const struct occ_row_kernel *row = &w->top->rows[at].kernel;
    struct occ_answer_kernel *text = &w->texts[at];
    char label[OCC_KERNEL_LABEL_BYTES];
    uint32_t first = occ_map_put(named, (uint64_t)w->kernels[at].kernel, (uint32_t)at);
    if (first == OCC_MAP_NONE)
        return false;
    if (first == at) {
        struct occ_kernel_owner *owner = occ_arena_get(&w->arena, 1, sizeof *owner);
        if (!owner)
            return false;
        occ_kernel_owner(row->demangled ? row->demangled : "", owner);
        w->kernels[at].owner = owner;
        text->demangled = occ_arena_copy(&w->arena, row->demangled);
        text->name = occ_arena_copy(&w->arena, row->short_name);
        text->label =
            owner->library[0] ? occ_arena_copy(&w->arena, occ_kernel_label(owner, label)) : text->label;
    } else {
        w->kernels[at].owner = w->kernels[first].owner;
        text->demangled = w->texts[first].demangled;
        text->name = w->texts[first].name;
        text->label = w->texts[first].label;
    }
    text->device_name = occ_arena_copy(&w->arena, row->device_name);
    return !occ_is_communication(&w->kernels[at]) ||
           occ_map_put(&w->communication, (uint64_t)w->kernels[at].kernel, 0) != OCC_MAP_NONE;
}

static int name_kernels(struct work *w)
{
    _cleanup_(occ_freep) const struct occ_top_row **rows = sort_rows(w->top);
    _cleanup_(occ_map_free) struct occ_map named = {0};
    size_t n = w->top->n < NAMED_MAX ? w->top->n : NAMED_MAX;
    if (!rows)
        return occ_no_memory(w->err);
    for (size_t i = 0; i < n; i++)
        if (!name_kernel(w, (size_t)(rows[i] - w->top->rows), &named))
            return occ_no_memory(w->err);
    return 0;
}

/* ---- times and findings ---- */

static int add_times(struct work *w)
{
    _cleanup_(occ_gpu_estimates_free) struct occ_gpu_estimates estimates = {0};
    int rc = occ_store_gpu_estimates(w->store, w->filter, &w->communication, &estimates, w->err);
    if (rc == 0)
        rc = occ_gpu_totals_fill(&estimates, w->sums, w->gpus, w->n_gpus, w->overview);
    return rc == OCC_E_NO_MEMORY ? occ_no_memory(w->err) : rc;
}

/* Returns the part of the time with a model that is in other configurations than the dominant one. */
static double rest_ratio_of(const struct occ_top_row *row)
{
    double known_ns = (double)row->total_ns * (row->analysed_ratio > 0 ? row->analysed_ratio : 1);
    double ratio = known_ns > 0 ? 1 - (double)row->dominant.total_ns / known_ns : 0;
    return ratio > 1e-9 ? ratio : 0;
}

/* Moves a kernel's time in configurations without a model to a row of its own, which has no `used`. */
static void split_unknown(struct work *w)
{
    w->n_kernels = w->top->n;
    for (size_t i = 0; i < w->top->n; i++) {
        double known = w->top->rows[i].analysed_ratio;
        w->kernels[i].rest_ratio = rest_ratio_of(&w->top->rows[i]);
        struct occ_kernel_totals *kernel = &w->kernels[i], *rest = &w->kernels[w->n_kernels];
        if (!(known > 0) || known > 1 - 1e-9)
            continue;
        *rest = *kernel;
        rest->used = NAN;
        rest->launches = 0;
        rest->time_s = kernel->time_s * (1 - known);
        kernel->time_s *= known;
        w->texts[w->n_kernels++] = w->texts[i];
    }
}

static void sum_durations(const struct work *w)
{
    for (size_t i = 0; i < w->n_gpus; i++)
        w->durations[i] = w->gpus[i].unlisted_s;
    for (size_t i = 0; i < w->n_kernels; i++) {
        const struct occ_kernel_totals *kernel = &w->kernels[i];
        w->durations[kernel->gpu] += kernel->time_s;
        w->communications[kernel->gpu] += occ_is_communication(kernel) ? kernel->time_s : 0;
    }
}

static int conclude(struct work *w)
{
    struct occ_overview *o = w->overview;
    _cleanup_(occ_freep) struct occ_gpu_time *rows = NULL;
    struct occ_finding *findings = NULL;
    size_t n = 0;
    split_unknown(w);
    sum_durations(w);
    o->totals = (struct occ_totals){w->gpus, w->n_gpus, w->kernels, w->n_kernels};
    if (occ_gpu_times(&o->totals, OCC_TIME_BY_ALL, &rows, &n) != 0 ||
        (w->has_findings && occ_find(&o->totals, &findings, &o->n_findings) != 0))
        return occ_no_memory(w->err);
    o->findings = findings;
    if (n > 0)
        o->time = rows[0];
    return 0;
}

static int make(struct work *w)
{
    size_t n = w->top->n + 1, n_rows = 2 * w->top->n + 1; /* see split_unknown() */
    w->gpus = occ_arena_get(&w->arena, n, sizeof *w->gpus);
    w->sums = occ_arena_get(&w->arena, n, sizeof *w->sums);
    w->kernels = occ_arena_get(&w->arena, n_rows, sizeof *w->kernels);
    w->texts = occ_arena_get(&w->arena, n_rows, sizeof *w->texts);
    w->durations = occ_arena_get(&w->arena, n, sizeof *w->durations);
    w->overview->kernels = w->texts;
    w->communications = occ_arena_get(&w->arena, n, sizeof *w->communications);
    w->overview->duration_s = w->durations;
    w->overview->communication_s = w->communications;
    if (w->arena.failed)
        return occ_no_memory(w->err);
    int rc = add_kernels(w);
    if (rc == 0)
        rc = name_kernels(w);
    if (rc == 0 && w->has_times)
        rc = add_times(w);
    if (rc == 0 && w->has_findings)
        rc = occ_candidates_add(
            w->store, w->filter,
            &(struct occ_candidate_rows){w->overview->kernels, w->kernels, w->top->n, &w->arena}, w->err);
    if (rc == 0)
        rc = conclude(w);
    return rc == 0 && w->arena.failed ? occ_no_memory(w->err) : rc;
}

static int start(struct work *w, const struct occ_filter *filter)
{
    struct occ_filter all = occ_overview_filter(filter);
    struct occ_overview *o = w->overview;
    w->filter = &all;
    *o = (struct occ_overview){.read_ratio = NAN, .measured_ratio = NAN};
    int rc = make(w);
    o->memory = w->arena.blocks;
    occ_map_free(&w->gpu_of);
    occ_map_free(&w->communication);
    if (rc != 0)
        occ_overview_free(o);
    return rc;
}

int occ_overview_make(struct occ_store *store, const struct occ_filter *filter, const struct occ_top *kernels,
                      struct occ_overview *ret_overview, struct occ_error *err)
{
    return start(&(struct work){.store = store,
                                .top = kernels,
                                .overview = ret_overview,
                                .err = err,
                                .has_times = true,
                                .has_findings = true},
                 filter);
}

int occ_overview_make_times(struct occ_store *store, const struct occ_filter *filter,
                            const struct occ_top *kernels, struct occ_overview *ret_overview,
                            struct occ_error *err)
{
    return start(
        &(struct work){
            .store = store, .top = kernels, .overview = ret_overview, .err = err, .has_times = true},
        filter);
}

int occ_overview_make_kernels(struct occ_store *store, const struct occ_filter *filter,
                              const struct occ_top *kernels, struct occ_overview *ret_overview,
                              struct occ_error *err)
{
    return start(&(struct work){.store = store, .top = kernels, .overview = ret_overview, .err = err},
                 filter);
}

int occ_overview_ask(struct occ_store *store, const struct occ_filter *filter,
                     struct occ_overview *ret_overview, struct occ_error *err)
{
    struct occ_filter all = occ_overview_filter(filter);
    _cleanup_(occ_top_free) struct occ_top top = {0};
    int rc = occ_store_top(store, &all, OCC_TOP_BY_KERNEL, &top, err);
    return rc == 0 ? occ_overview_make(store, filter, &top, ret_overview, err) : rc;
}

void occ_overview_free(struct occ_overview *overview)
{
    free((void *)overview->findings);
    occ_arena_free(overview->memory);
    *overview = (struct occ_overview){0};
}

/* ---- the filter ---- */

struct occ_filter occ_overview_filter(const struct occ_filter *filter)
{
    struct occ_filter all = *filter;
    all.stream = 0;
    all.range_regex = all.kernel_regex = all.kernel = all.exclude_regex = NULL;
    all.graphs = false;
    all.below_achieved = 0;
    return all;
}

bool occ_overview_is_partial(const struct occ_filter *f)
{
    return f->stream != 0 || f->range_regex || f->kernel_regex || f->kernel || f->exclude_regex ||
           f->graphs || f->below_achieved > 0;
}

/* ---- for people ---- */

struct occ_gpu_steps occ_overview_steps(const struct occ_gpu_time *time, unsigned steps)
{
    enum { OTHERS = 6 };
    double shares[OTHERS + OCC_PART_COUNT] = {time->launch_wait, time->pause, time->communication,
                                              time->copies,      time->used,  time->unknown};
    unsigned rounded[OTHERS + OCC_PART_COUNT];
    struct occ_gpu_steps ret;
    memcpy(shares + OTHERS, time->lost, sizeof time->lost);
    occ_round_shares(shares, OTHERS + OCC_PART_COUNT, steps, rounded);
    ret = (struct occ_gpu_steps){rounded[0], rounded[1], rounded[2], rounded[3], rounded[4], rounded[5], {0}};
    memcpy(ret.lost, rounded + OTHERS, sizeof ret.lost);
    return ret;
}

/* The time in which kernels ran, and the sum of their durations, which is larger if they overlap. */
struct busy {
    double busy_s, duration_s;
};

static struct busy busy_of(const struct occ_overview *o, size_t gpu, enum occ_share_of of)
{
    const struct busy all = {o->totals.gpus[gpu].busy_s, o->duration_s[gpu]};
    const struct busy communication = {o->totals.gpus[gpu].communication_s, o->communication_s[gpu]};
    if (of == OCC_SHARE_OF_ALL || !isfinite(communication.busy_s))
        return all;
    if (of == OCC_SHARE_OF_COMMUNICATION)
        return communication;
    return (struct busy){all.busy_s - communication.busy_s, all.duration_s - communication.duration_s};
}

double occ_overview_share(const struct occ_overview *o, enum occ_share_of of, int64_t device, double total_ns)
{
    double window_s = 0;
    struct busy sum = {0, 0};
    for (size_t i = 0; i < o->totals.n_gpus; i++) {
        window_s += o->totals.gpus[i].window_s;
        if (device != 0 && o->totals.gpus[i].gpu != device)
            continue;
        struct busy gpu = busy_of(o, i, of);
        sum.busy_s += gpu.busy_s;
        sum.duration_s += gpu.duration_s;
    }
    return window_s > 0 && sum.duration_s > 0 ? total_ns * 1e-9 / sum.duration_s * sum.busy_s / window_s
                                              : NAN;
}

enum occ_share_of occ_overview_share_of(const struct occ_overview *o, size_t kernel)
{
    return occ_is_communication(&o->totals.kernels[kernel]) ? OCC_SHARE_OF_COMMUNICATION
                                                            : OCC_SHARE_OF_OTHERS;
}

const char *occ_confidence_text(const struct occ_finding *finding, char *text, size_t size)
{
    double percent = finding->measured_ratio * 100;
    if (finding->confidence == OCC_CONFIDENCE_MEASURED)
        (void)snprintf(text, size,
                       percent < 1 ? "measured in less than 1 %% of its time"
                                   : "measured in %.0f %% of its time",
                       percent);
    else
        (void)snprintf(text, size, "%s", occ_confidence_word(finding->confidence));
    return text;
}
