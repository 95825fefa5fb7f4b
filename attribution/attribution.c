/* See attribution.h. Launches and samples wait in queues. Once all launches up to a time have arrived, each
 * block of samples passes these steps:
 *     join     makes each sample a row: the share of each regressor in the sample, and the counted ratios
 *     (design.c)
 *     solve    when enough rows are new, estimates all values from the rows of the last WINDOW_NS (gls.c,
 *     inference.c)
 * Then each ended launch gets a value and leaves its queue; the value of a long launch is read directly from
 * its rows (direct.c). */
#include <string.h>

#include "state.h"

#define SECOND_NS INT64_C(1000000000)

struct occ_attribution *occ_attribution_new(const struct occ_attribution_options *options)
{
    struct occ_attribution *a = calloc(1, sizeof *a);
    if (a) {
        a->options = *options;
        a->assumed = options->assumptions ? *options->assumptions : occ_attribution_usual;
        a->estimate.scale = a->assumed.spread_max * a->assumed.spread_max;
        a->estimate.parts_sd = PARTS_SD;
        a->shortest_ns = INFINITY;
        a->stats.residual_ratio = NAN;
    }
    return a;
}

void occ_attribution_free(struct occ_attribution *a)
{
    if (!a)
        return;
    occ_design_undo(a, 0);
    occ_map_free(&a->index);
    occ_map_free(&a->nodes.index);
    free(a->regressors);
    free(a->nodes.at);
    free(a->launches);
    free(a->samples);
    free(a);
}

static double known(double value, double max)
{
    return value > 0 ? fmin(value, max) : max;
}

/* Sets the values that the model expects before any measurement. */
static void set_prior(struct occ_regressor *r, const struct occ_attribution_key *key)
{
    r->bound = fmax(known(key->bound * BOUND_SLACK, 1), BOUND_MIN);
    r->prior[OCC_RATIO_WARPS] = PRIOR_PART * known(key->expected, r->bound);
    r->prior[OCC_RATIO_ACTIVE] = known(key->active, 1);
    r->prior[OCC_RATIO_BLOCKS] = PRIOR_PART * fmin(fmax(key->blocks, 0), OCC_BLOCKS_MAX);
    r->grid = key->grid > 0 ? key->grid : NAN;
    r->is_memory = key->is_memory;
    for (int i = 0; i < OCC_UTILIZATION_COUNT; i++) {
        r->prior[OCC_RATIO_UTILIZATION + i] = 0.5;
        r->utilization_se[i] = NAN;
    }
    memcpy(r->value, r->prior, sizeof r->value);
}

/* The index of the existing or new regressor; OCC_NONE: there is no room. */
static uint32_t find_regressor(struct occ_attribution *a, const struct occ_attribution_key *key)
{
    uint32_t at = occ_map_get(&a->index, key->shape);
    if (at != OCC_MAP_NONE)
        return at;
    if (!occ_grow((void **)&a->regressors, &a->regressors_allocated, a->n_regressors, REGRESSORS_MAX,
                  sizeof *a->regressors) ||
        occ_map_put(&a->index, key->shape, (uint32_t)a->n_regressors) == OCC_MAP_NONE) {
        a->stats.keys_refused++;
        return OCC_NONE;
    }
    a->regressors[a->n_regressors] =
        (struct occ_regressor){.shape = key->shape, .measured = OCC_NOT_MEASURED};
    set_prior(&a->regressors[a->n_regressors], key);
    return (uint32_t)a->n_regressors++;
}

/* Adds the launch's duration, and its overlap with the launch before or after, to the regressors. */
static void note_launch(struct occ_attribution *a, const struct occ_queued_launch *l)
{
    struct occ_regressor *r = &a->regressors[l->regressor];
    int64_t both_ns = (l->end_ns < a->busy_until_ns ? l->end_ns : a->busy_until_ns) - l->start_ns;
    r->launches++;
    r->launch_ns += (double)(l->end_ns - l->start_ns);
    if (l->node != OCC_NONE) {
        a->nodes.at[l->node].launch_ns += (double)(l->end_ns - l->start_ns);
        a->nodes.at[l->node].last_ns = l->start_ns;
    }
    if (both_ns > 0) {
        r->overlapped_ns += (double)both_ns;
        a->regressors[a->busy].overlapped_ns += (double)both_ns;
    }
    if (l->end_ns > a->busy_until_ns) {
        a->busy_until_ns = l->end_ns;
        a->busy = l->regressor;
    }
}

static bool is_possible(int64_t start_ns, int64_t end_ns, int64_t first_ns, int64_t longest_ns)
{
    return start_ns >= first_ns && start_ns <= TIME_MAX && end_ns > start_ns &&
           end_ns - start_ns <= longest_ns;
}

bool occ_attribution_launch(struct occ_attribution *a, const struct occ_attribution_launch *launch)
{
    struct occ_queued_launch own = {launch->start_ns, launch->end_ns, launch->tag, OCC_NONE,
                                    OCC_NONE,         false,          false};
    if (!is_possible(own.start_ns, own.end_ns, 0, LAUNCH_NS_MAX) ||
        !occ_grow((void **)&a->launches, &a->launches_allocated, a->n_launches, WAITING_MAX,
                  sizeof *a->launches) ||
        (own.regressor = find_regressor(a, &launch->key)) == OCC_NONE)
        return false;
    own.node = occ_nodes_find(a, &launch->key, own.regressor);
    own.is_late = own.start_ns < a->advanced_ns;
    if (!own.is_late)
        note_launch(a, &own);
    a->launches[a->n_launches++] = own;
    return true;
}

bool occ_attribution_sample(struct occ_attribution *a, const struct occ_attribution_sample *sample)
{
    int64_t last_ns = a->n_samples > 0 ? a->samples[a->n_samples - 1].start_ns : a->joined_ns;
    if (!is_possible(sample->start_ns, sample->end_ns, last_ns, SAMPLE_NS_MAX) ||
        !occ_grow((void **)&a->samples, &a->samples_allocated, a->n_samples, WAITING_MAX, sizeof *a->samples))
        return false;
    a->longest_ns = fmax(a->longest_ns, (double)(sample->end_ns - sample->start_ns));
    a->samples[a->n_samples++] = *sample;
    return true;
}

/* Reports each launch that ended before `before_ns` with its value and removes it. Late launches are marked
 * first. */
static void report_launches(struct occ_attribution *a, int64_t before_ns)
{
    size_t kept = 0, n_late = 0;
    for (size_t i = 0; i < a->n_launches; i++)
        if (a->launches[i].is_late && a->launches[i].end_ns <= before_ns && n_late++ < LATE_MAX)
            occ_direct_mark(a, &a->launches[i]);
    if (n_late > LATE_MAX) {
        occ_design_undo(a, 0);
        memset(a->past, 0, sizeof a->past);
    }
    for (size_t i = 0; i < a->n_launches; i++) {
        const struct occ_queued_launch *l = &a->launches[i];
        const struct occ_regressor *r = &a->regressors[l->regressor];
        struct occ_attribution_value value = {l->tag, r->shape, l->start_ns, l->end_ns, OCC_NOT_MEASURED};
        value.measured = l->covered ? r->measured : value.measured;
        bool is_lost = l->is_late && n_late > LATE_MAX;
        if (l->end_ns > before_ns) {
            a->launches[kept++] = *l;
        } else if (is_lost || (!occ_direct_read(a, l, &value.measured) && l->is_late)) {
            a->stats.late_launches++;
        } else {
            occ_inference_fill_utilization(a, r, &value.measured);
            a->options.add_value(a->options.context, &value);
        }
    }
    a->n_launches = kept;
    occ_shrink((void **)&a->launches, &a->launches_allocated, kept, sizeof *a->launches);
    a->next_launch = a->n_running = 0;
}

/* Reports the mean over the remaining rows that start in this second. */
static void report_second(struct occ_attribution *a, int64_t second)
{
    double unexplained[OCC_RATIO_DIRECT], residual = 0, counted = 0, sum_ns = 0;
    for (const struct occ_row *row = a->rows.last; row && row->start_ns / SECOND_NS >= second;
         row = row->before) {
        double ns = (double)(row->end_ns - row->start_ns);
        if (row->start_ns / SECOND_NS == second)
            (void)occ_design_residual(a, row, unexplained);
        if (row->start_ns / SECOND_NS > second || !isfinite(unexplained[OCC_RATIO_WARPS]))
            continue;
        residual += unexplained[OCC_RATIO_WARPS] * ns;
        counted += (double)row->ratio[OCC_RATIO_WARPS] * ns;
        sum_ns += ns;
    }
    const struct occ_attribution_second value = {second, residual / sum_ns};
    if (sum_ns > 0)
        a->options.add_second(a->options.context, &value);
    a->stats.residual_ratio = residual / counted; /* not finite if nothing was counted */
}

/* Joins the next n samples. The first samples, and samples that are finer than any before, are joined and
 * solved several times to find the clocks' offset, because the offset, the values and the profiles of fine
 * samples depend on each other. */
static void process_block(struct occ_attribution *a, size_t n, bool is_last)
{
    int64_t end_ns = a->samples[n - 1].end_ns, first_ns = a->samples[0].start_ns;
    int64_t second = (a->joined_ns > first_ns ? a->joined_ns : first_ns) / SECOND_NS;
    double length = (double)(end_ns - a->samples[n - 1].start_ns);
    bool is_finer = a->estimate.known && 2 * length < a->shortest_ns;
    a->shortest_ns = fmin(a->shortest_ns, length);
    a->estimate.clock_ns = a->estimate.known ? a->estimate.clock_ns : first_ns;
    a->joined_ns = end_ns > a->joined_ns ? end_ns : a->joined_ns;
    bool is_first = !a->estimate.known;
    a->estimate.begun_ns = is_first ? first_ns : a->estimate.begun_ns;
    if (is_first && a->n_launches > 0)
        occ_clock_search(a, n);
    int trials = is_first ? BEGIN_ROUNDS : is_finer ? BEGIN_ROUNDS / 2 : 0;
    for (int next; trials >= 0; trials = next) {
        a->rejoin_from_ns = trials > 0 ? first_ns : INT64_MAX;
        /* coarse samples may not show the clocks' offset: with finer samples the first trials find it */
        bool is_young = a->joined_ns - a->estimate.begun_ns < WINDOW_NS && !(is_finer && trials > 0);
        a->estimate.drift_sd_us = is_young ? CLOCK_DRIFT_US : CLOCK_SD_US;
        a->estimate.profile_columns_max = is_finer && trials > 1 ? 0 : PROFILES_MAX;
        for (size_t i = 0; i < n; i++)
            occ_design_add(a, &a->samples[i]);
        bool is_old = 2 * (a->joined_ns - a->estimate.made_ns) >= WINDOW_NS && a->rows.fresh > 0;
        bool is_due = a->joined_ns >= a->estimate.due_ns && (is_old || FRESH * a->rows.fresh >= a->rows.busy);
        if (trials > 0 || (a->estimate.known && (is_due || is_last)))
            occ_gls_fit(a);
        if (trials > 0)
            occ_design_undo(a, first_ns);
        next = trials > 2 && a->estimate.due_ns > a->joined_ns + DEAR_NS ? 1 : trials - 1;
    }
    a->n_samples -= n;
    memmove(a->samples, a->samples + n, a->n_samples * sizeof *a->samples);
    for (; second < a->joined_ns / SECOND_NS; second++)
        report_second(a, second);
}

/* Discards the estimate: after WINDOW_NS without launches, clocks and launches may have changed. */
static void begin_anew(struct occ_attribution *a)
{
    a->estimate.known = false;
    a->estimate.drift = 0;
    a->busy_until_ns = 0;
    for (struct occ_regressor *r = a->regressors; r < a->regressors + a->n_regressors; r++)
        r->launches = r->launch_ns = r->overlapped_ns = 0;
    for (size_t i = 0; i < a->nodes.n; i++)
        a->nodes.at[i].launch_ns = 0;
    for (size_t i = 0; i < a->n_launches; i++)
        if (!a->launches[i].is_late)
            note_launch(a, &a->launches[i]);
}

/* The number of samples in the next block of BLOCK_NS whose launches have all arrived. The first block is
 * longer, since the clocks' offset needs more samples. */
static size_t next_block(const struct occ_attribution *a, bool final)
{
    int64_t until_ns = a->advanced_ns - CLOCKS_NS + (int64_t)fmin(occ_clock_offset(a, a->advanced_ns), 0);
    int64_t end_ns = a->n_samples > 0 ? a->samples[0].start_ns + BLOCK_NS : 0;
    bool is_first = !a->estimate.known && a->n_launches > 0 && a->launches[0].start_ns < end_ns;
    int64_t more_ns = a->n_regressors > BEGIN_FEW ? BEGIN_MANY_NS : a->n_launches < BEGIN_MAX ? BEGIN_NS : 0;
    end_ns += is_first ? more_ns : 0;
    bool is_enough = a->estimate.known || until_ns >= end_ns || final;
    size_t n = 0;
    while (is_enough && n < a->n_samples && a->samples[n].end_ns <= until_ns &&
           a->samples[n].start_ns < end_ns)
        n++;
    return n;
}

void occ_attribution_advance(struct occ_attribution *a, int64_t until_ns, bool final)
{
    a->advanced_ns = until_ns > a->advanced_ns ? until_ns : a->advanced_ns;
    for (size_t n; (n = next_block(a, final)) > 0;) {
        occ_design_forget(a, &a->rows, 0, a->samples[0].start_ns - WINDOW_NS, SIZE_MAX);
        if (a->estimate.known && a->rows.busy == 0)
            begin_anew(a);
        else
            process_block(a, n, final && n == a->n_samples);
    }
    int64_t settled_ns = a->joined_ns - CLOCKS_NS - (int64_t)fmax(occ_clock_offset(a, a->joined_ns), 0);
    if (a->n_samples == 0 && a->advanced_ns - WATERMARK_NS > settled_ns)
        settled_ns = a->advanced_ns - WATERMARK_NS; /* samples of earlier launches will no longer come */
    report_launches(a, final ? INT64_MAX : settled_ns);
}

void occ_attribution_get_stats(const struct occ_attribution *a, struct occ_attribution_stats *ret_stats)
{
    *ret_stats = a->stats;
    ret_stats->offset_ns = llround(a->estimate.offset_ns);
    ret_stats->drift_ppm = a->estimate.drift * 1e6;
    ret_stats->waiting = a->n_launches;
}
