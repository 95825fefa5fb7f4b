/*
 * Attribution of device-wide samples to launches; see attribution.h. Launches and samples wait in two queues
 * in order of time. When advance() says that all launches up to a time are here, samples up to it are taken
 * in blocks:
 *
 *   join     each sample becomes a row: how much of it each regressor had, what was counted (join.c); the
 *            first block is joined several times, to find the offset between the two clocks
 *   read     launches that last several samples are read from them, less what others had of them (direct.c)
 *   solve    when enough rows are new, all of the last while are solved (solve.c, errors.c)
 *
 * Then launches that ended get their value, and leave.
 */
#include <string.h>

#include "state.h"

#define SECOND_NS INT64_C(1000000000)

int occ_attribution_new(const struct occ_attribution_options *options,
                        struct occ_attribution **ret_attribution, struct occ_error *err)
{
    struct occ_attribution *a = calloc(1, sizeof *a);
    if (!a)
        return occ_no_memory(err);
    a->options = *options;
    a->estimate.scale = SPREAD_MAX * SPREAD_MAX;
    a->stats.residual_ratio = NAN;
    *ret_attribution = a;
    return 0;
}

/* Forgets what was joined from this time on. */
static void forget_rows(struct occ_attribution *a, int64_t from_ns)
{
    occ_rows_keep(&a->rows, 0, from_ns, SIZE_MAX);
    occ_rows_keep(&a->utilization_rows, 0, from_ns, SIZE_MAX);
    a->making.next_launch = a->making.n_parts = 0;
}

void occ_attribution_free(struct occ_attribution *a)
{
    if (!a)
        return;
    forget_rows(a, 0);
    occ_map_free(&a->regressors.index);
    free(a->regressors.items);
    free(a->queue.launches);
    free(a->queue.samples);
    free(a);
}

void occ_attribution_restart(struct occ_attribution *a)
{
    forget_rows(a, 0);
    a->longest_ns = 0;
}

static double known(double value, double max)
{
    return value > 0 ? fmin(value, max) : max;
}

/* What the model expects before anything is measured. */
static void set_prior(struct occ_regressor *r, const struct occ_attribution_key *key)
{
    r->bound = fmax(known(key->bound * BOUND_SLACK, 1), BOUND_MIN);
    r->prior[OCC_RATIO_WARPS] = PRIOR_PART * known(key->expected, r->bound);
    r->prior[OCC_RATIO_ACTIVE] = known(key->active, 1);
    r->prior[OCC_RATIO_BLOCKS] = PRIOR_PART * fmin(fmax(key->blocks, 0), OCC_BLOCKS_MAX);
    for (int i = 0; i < OCC_UTILIZATION_COUNT; i++) {
        r->prior[OCC_RATIO_UTILIZATION + i] = 0.5;
        r->utilization_se[i] = NAN;
    }
    memcpy(r->value, r->prior, sizeof r->value);
}

/* New or old; OCC_NONE: there is no room. */
static uint32_t find_regressor(struct occ_attribution *a, const struct occ_attribution_key *key)
{
    struct occ_regressors *all = &a->regressors;
    uint64_t id = key->shape * UINT64_C(0x9e3779b97f4a7c15) ^ key->graph_node * UINT64_C(0xc2b2ae3d27d4eb4f);
    uint32_t at = occ_map_get(&all->index, id);
    if (at != OCC_MAP_NONE)
        return at;
    if (!occ_grow((void **)&all->items, &all->allocated, all->n, REGRESSORS_MAX, sizeof *all->items) ||
        occ_map_put(&all->index, id, (uint32_t)all->n) == OCC_MAP_NONE) {
        a->stats.keys_refused++;
        return OCC_NONE;
    }
    all->items[all->n] = (struct occ_regressor){.shape = key->shape, .measured = OCC_NOT_MEASURED};
    set_prior(&all->items[all->n], key);
    return (uint32_t)all->n++;
}

/* How long launches of its regressor run, and how long of that beside one that came before or after it. */
static void note_launch(struct occ_regressors *all, const struct occ_queued_launch *l)
{
    struct occ_regressor *r = &all->items[l->regressor];
    int64_t both_until_ns = l->end_ns < all->busy_until_ns ? l->end_ns : all->busy_until_ns;
    r->launches++;
    r->launch_ns += (double)(l->end_ns - l->start_ns);
    if (both_until_ns > l->start_ns) {
        r->overlapped_ns += (double)(both_until_ns - l->start_ns);
        all->items[all->busy].overlapped_ns += (double)(both_until_ns - l->start_ns);
    }
    if (l->end_ns > all->busy_until_ns) {
        all->busy_until_ns = l->end_ns;
        all->busy = l->regressor;
    }
}

int occ_attribution_launch(struct occ_attribution *a, const struct occ_attribution_launch *launch,
                           struct occ_error *err)
{
    struct occ_queue *q = &a->queue;
    struct occ_queued_launch own = {.start_ns = launch->start_ns,
                                    .end_ns = launch->end_ns,
                                    .tag = launch->tag,
                                    .is_late = launch->start_ns < a->advanced_ns};
    if (launch->start_ns < 0 || launch->start_ns > TIME_MAX || launch->end_ns <= launch->start_ns ||
        launch->end_ns - launch->start_ns > LAUNCH_NS_MAX)
        return occ_fail(err, OCC_E_INVALID, "a launch of no time or of more than a day");
    if (!occ_grow((void **)&q->launches, &q->launches_allocated, q->n_launches, LAUNCHES_MAX,
                  sizeof *q->launches))
        return occ_fail(err, OCC_E_FULL, "too many launches wait for their samples");
    own.regressor = find_regressor(a, &launch->key);
    if (own.regressor == OCC_NONE)
        return occ_fail(err, OCC_E_FULL, "too many kernels");
    if (!own.is_late)
        note_launch(&a->regressors, &own);
    q->launches[q->n_launches++] = own;
    return 0;
}

int occ_attribution_sample(struct occ_attribution *a, const struct occ_attribution_sample *sample,
                           struct occ_error *err)
{
    struct occ_queue *q = &a->queue;
    int64_t last_ns = q->n_samples > 0 ? q->samples[q->n_samples - 1].start_ns : a->joined_ns;
    if (sample->start_ns < last_ns || sample->start_ns > TIME_MAX || sample->end_ns <= sample->start_ns ||
        sample->end_ns - sample->start_ns > SAMPLE_NS_MAX)
        return occ_fail(err, OCC_E_INVALID, "a sample of no time, of more than a minute, or back in time");
    if (!occ_grow((void **)&q->samples, &q->samples_allocated, q->n_samples, SAMPLES_MAX, sizeof *q->samples))
        return occ_fail(err, OCC_E_FULL, "too many samples wait for their launches");
    a->longest_ns = fmax(a->longest_ns, (double)(sample->end_ns - sample->start_ns));
    q->samples[q->n_samples++] = *sample;
    return 0;
}

/* Launches that ended before leave with their values. */
static void report_launches(struct occ_attribution *a, int64_t before_ns)
{
    struct occ_queue *q = &a->queue;
    size_t kept = 0;
    for (size_t i = 0; i < q->n_launches; i++) {
        const struct occ_queued_launch *l = &q->launches[i];
        const struct occ_regressor *r = &a->regressors.items[l->regressor];
        struct occ_attribution_value value = {.tag = l->tag,
                                              .shape = r->shape,
                                              .start_ns = l->start_ns,
                                              .end_ns = l->end_ns,
                                              .measured = l->covered ? r->measured : OCC_NOT_MEASURED};
        if (l->end_ns > before_ns) {
            q->launches[kept++] = *l;
        } else if (occ_direct_read(a, l, &value.measured) || !l->is_late) {
            occ_errors_fill_utilization(a, r, &value.measured);
            a->options.add_value(a->options.context, &value);
        } else {
            a->stats.late_launches++;
        }
    }
    q->n_launches = kept;
    a->making.next_launch = a->making.n_parts = 0;
}

static void report_second(struct occ_attribution *a, int64_t second)
{
    const int64_t bins = SECOND_NS / OCC_PAST_NS;
    struct occ_sums sums = {0};
    size_t n = occ_direct_sum_past(a, second * bins, (second + 1) * bins, &sums);
    double residual = sums.sum[OCC_RATIO_WARPS];
    const struct occ_attribution_second value = {second, residual / sums.ns[OCC_RATIO_WARPS]};
    if (n > 0)
        a->options.add_second(a->options.context, &value);
    a->stats.residual_ratio = residual / sums.counted; /* of nothing: NaN */
}

static void join(struct occ_attribution *a, size_t n, bool is_trial)
{
    for (size_t i = 0; i < n; i++) {
        struct occ_row row = occ_join_make(a, &a->queue.samples[i]);
        if (!is_trial)
            occ_direct_note(a, &row);
        occ_join_keep(a, &row);
    }
}

/* Joins and solves samples several times, to find the clocks' offset: what it does to rows depends on values,
 * and they on it. */
static int begin(struct occ_attribution *a, size_t n, struct occ_error *err)
{
    int status = 0;
    a->estimate.clock_ns = a->queue.samples[0].start_ns;
    for (int round = 0; round < BEGIN_ROUNDS && status == 0; round++) {
        join(a, n, true);
        status = occ_solve(a, err);
        forget_rows(a, a->queue.samples[0].start_ns);
    }
    return status;
}

static int process_block(struct occ_attribution *a, size_t n, bool is_last, struct occ_error *err)
{
    struct occ_queue *q = &a->queue;
    int64_t second = a->joined_ns / SECOND_NS, end_ns = q->samples[n - 1].end_ns;
    a->joined_ns = end_ns > a->joined_ns ? end_ns : a->joined_ns;
    int status = a->estimate.known ? 0 : begin(a, n, err);
    if (status != 0)
        return status;
    join(a, n, false);
    q->n_samples -= n;
    memmove(q->samples, q->samples + n, q->n_samples * sizeof *q->samples);
    bool is_due = a->joined_ns >= a->estimate.due_ns && FRESH * a->rows.fresh >= a->rows.busy;
    if (a->estimate.known && (is_due || is_last))
        status = occ_solve(a, err);
    if (a->joined_ns / SECOND_NS != second)
        report_second(a, second);
    return status;
}

/* Number of samples whose launches are all here; of BLOCK_NS, and the first ones all at once: fewer have led
 * the clock astray. */
static size_t next_block(const struct occ_attribution *a, bool final)
{
    const struct occ_queue *q = &a->queue;
    int64_t end_ns = q->n_samples > 0 ? q->samples[0].start_ns + BLOCK_NS : 0,
            until_ns = a->advanced_ns - CLOCKS_NS;
    size_t n = 0;
    if (!a->estimate.known && until_ns < end_ns && !final)
        return 0;
    while (n < q->n_samples && q->samples[n].end_ns <= until_ns && q->samples[n].start_ns < end_ns)
        n++;
    return n;
}

int occ_attribution_advance(struct occ_attribution *a, int64_t until_ns, bool final, struct occ_error *err)
{
    int status = 0;
    a->advanced_ns = until_ns > a->advanced_ns ? until_ns : a->advanced_ns;
    for (size_t n; status == 0 && (n = next_block(a, final)) > 0;)
        status = process_block(a, n, final && n == a->queue.n_samples, err);
    int64_t settled_ns = a->joined_ns - CLOCKS_NS;
    if (a->queue.n_samples == 0 && a->advanced_ns - WATERMARK_NS > settled_ns)
        settled_ns = a->advanced_ns - WATERMARK_NS; /* no samples of these will come */
    report_launches(a, final ? INT64_MAX : settled_ns);
    return status;
}

void occ_attribution_get_stats(const struct occ_attribution *a, struct occ_attribution_stats *ret_stats)
{
    *ret_stats = a->stats;
    ret_stats->offset_ns = llround(a->estimate.offset_ns);
    ret_stats->drift_ppm = a->estimate.drift * 1e6;
    ret_stats->waiting = a->queue.n_launches;
}
