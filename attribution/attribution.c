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
 * Launches that ended get their value, and leave, when take() asks for it.
 */
#include <string.h>

#include "state.h"

/* ---- begin and end ---- */

int occ_attribution_new(const struct occ_attribution_options *options,
                        struct occ_attribution **ret_attribution, struct occ_error *err)
{
    struct occ_attribution *a = options->sm_count && options->max_warps_per_sm ? calloc(1, sizeof *a) : NULL;
    if (!a)
        return options->sm_count && options->max_warps_per_sm
                   ? occ_fail(err, OCC_E_NO_MEMORY, "out of memory")
                   : occ_fail(err, OCC_E_INVALID, "a GPU without SMs or warps");
    a->options = *options;
    a->options.max_launches = options->max_launches ? options->max_launches : LAUNCHES_MAX;
    a->options.watermark_ns = options->watermark_ns ? options->watermark_ns : WATERMARK_NS;
    a->regressors.max = options->max_keys ? options->max_keys : REGRESSORS_MAX;
    a->queue.busy_launch = SIZE_MAX;
    a->advanced_ns = a->joined_ns = INT64_MIN / 2; /* before all times */
    a->estimate.scale = SPREAD_MAX * SPREAD_MAX;
    a->past = calloc(OCC_PAST_MAX, sizeof *a->past);
    if (!a->past) {
        occ_attribution_free(a);
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    }
    *ret_attribution = a;
    return 0;
}

void occ_attribution_free(struct occ_attribution *a)
{
    if (!a)
        return;
    occ_map_free(&a->regressors.index);
    free(a->regressors.items);
    free(a->rows.rows);
    free(a->rows.entries);
    free(a->utilization_rows.rows);
    free(a->utilization_rows.entries);
    free(a->past);
    for (size_t i = 0; i < a->queue.n_launches; i++)
        free(a->queue.launches[i].direct);
    free(a->queue.launches);
    free(a->queue.samples);
    free(a);
}

/* ---- in ---- */

/* How long it runs beside what came before it, for both. */
static void note_overlap(struct occ_attribution *a, struct occ_queued_launch *launch)
{
    struct occ_queue *q = &a->queue;
    if (launch->start_ns < q->busy_until_ns) {
        int64_t end_ns = launch->end_ns < q->busy_until_ns ? launch->end_ns : q->busy_until_ns;
        launch->overlapped_ns = (float)(end_ns - launch->start_ns);
        if (q->busy_launch < q->n_launches && q->launches[q->busy_launch].regressor != OCC_NONE) {
            struct occ_queued_launch *other = &q->launches[q->busy_launch];
            other->overlapped_ns += launch->overlapped_ns;
            a->regressors.items[other->regressor].overlapped_ns += (double)launch->overlapped_ns;
        }
    }
    if (launch->end_ns > q->busy_until_ns) {
        q->busy_until_ns = launch->end_ns;
        q->busy_launch = q->n_launches;
    }
}

static void note_launch(struct occ_attribution *a, struct occ_queued_launch *launch)
{
    struct occ_regressor *r = &a->regressors.items[launch->regressor];
    note_overlap(a, launch);
    r->launches++;
    r->launch_ns += (double)(launch->end_ns - launch->start_ns);
    r->overlapped_ns += (double)launch->overlapped_ns;
    a->queue.latest_ns = launch->start_ns;
}

int occ_attribution_launch(struct occ_attribution *a, const struct occ_attribution_launch *launch,
                           struct occ_error *err)
{
    struct occ_queue *q = &a->queue;
    struct occ_queued_launch own = {.start_ns = launch->start_ns,
                                    .end_ns = launch->end_ns,
                                    .tag = launch->tag,
                                    .is_late = launch->start_ns < a->advanced_ns};
    if (launch->start_ns < 0 || launch->end_ns <= launch->start_ns)
        return occ_fail(err, OCC_E_INVALID, "a launch that ends before it starts");
    if (launch->end_ns - launch->start_ns > LAUNCH_NS_MAX)
        return occ_fail(err, OCC_E_INVALID, "a launch that lasts for more than a day");
    if (!own.is_late && launch->start_ns < q->latest_ns)
        return occ_fail(err, OCC_E_INVALID, "launches are not in order of their start");
    if (!occ_grow((void **)&q->launches, &q->launches_allocated, q->n_launches, a->options.max_launches,
                  sizeof *q->launches)) {
        a->stats.dropped_launches++;
        return occ_fail(err, OCC_E_FULL, "too many launches wait for their samples");
    }
    own.regressor = occ_regressors_put(a, &launch->key);
    if (own.regressor == OCC_NONE)
        return occ_fail(err, OCC_E_FULL, "too many kernels");
    if (!own.is_late)
        note_launch(a, &own);
    q->launches[q->n_launches++] = own;
    return 0;
}

/* Fills in the ratios that are regressed; NaN where the sample did not count. False: one cannot be, and the
 * others may be wrong too. */
static bool read_ratios(const struct occ_attribution *a, const struct occ_sample *sample, float *ret)
{
    const double *value = sample->value, sms = a->options.sm_count;
    double cycles = isfinite(value[OCC_COUNTER_ELAPSED])
                        ? value[OCC_COUNTER_ELAPSED]
                        : a->cycles_per_ns * (double)(sample->end_ns - sample->start_ns);
    bool is_possible = true;
    ret[OCC_RESPONSE_WARPS] =
        (float)(value[OCC_COUNTER_WARPS] / (sms * a->options.max_warps_per_sm * cycles));
    ret[OCC_RESPONSE_ACTIVE] = (float)(value[OCC_COUNTER_ACTIVE] / (sms * cycles));
    ret[OCC_RESPONSE_BLOCKS] = (float)(value[OCC_COUNTER_BLOCKS] / (sms * cycles));
    for (int i = 0; i < 5; i++) /* counted by TPC: two SMs */
        ret[OCC_RESPONSE_STALLS + i] = (float)(value[OCC_COUNTER_STALL_REGISTERS + i] / (sms / 2 * cycles));
    for (int i = 0; i < OCC_UTILIZATION_COUNT; i++)
        ret[OCC_RESPONSE_UTILIZATION + i] = (float)(value[OCC_COUNTER_UTILIZATION + i] / 100);
    for (int r = 0; r < OCC_RESPONSE_COUNT; r++) {
        double max = r == OCC_RESPONSE_BLOCKS ? BLOCKS_MAX : RATIO_MAX;
        if (isnan(ret[r]) || ((double)ret[r] >= 0 && (double)ret[r] <= max))
            continue;
        is_possible = false;
        ret[r] = NAN;
    }
    return is_possible;
}

static bool is_sound(const struct occ_attribution *a, const struct occ_sample *sample)
{
    const struct occ_queue *q = &a->queue;
    double cycles = sample->value[OCC_COUNTER_ELAPSED];
    return sample->start_ns >= 0 && sample->end_ns > sample->start_ns &&
           sample->end_ns - sample->start_ns <= SAMPLE_NS_MAX &&
           (q->n_samples == 0 || sample->start_ns >= q->samples[q->n_samples - 1].start_ns) &&
           sample->start_ns >= a->joined_ns && !(cycles <= 0) && !isinf(cycles) &&
           (isfinite(cycles) || a->cycles_per_ns > 0);
}

int occ_attribution_sample(struct occ_attribution *a, const struct occ_sample *sample, struct occ_error *err)
{
    struct occ_queue *q = &a->queue;
    struct occ_queued_sample own = {.start_ns = sample->start_ns, .end_ns = sample->end_ns, .imbalance = NAN};
    double length = (double)(sample->end_ns - sample->start_ns), most = sample->value[OCC_COUNTER_ACTIVE_MAX];
    if (!is_sound(a, sample)) {
        a->stats.bad_samples++;
        return 0;
    }
    if (!occ_grow((void **)&q->samples, &q->samples_allocated, q->n_samples, SAMPLES_MAX,
                  sizeof *q->samples)) {
        if (q->n_samples < SAMPLES_MAX)
            return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
        a->stats.dropped_samples++;
        return 0;
    }
    a->longest_ns = fmax(a->longest_ns, length);
    if (isfinite(sample->value[OCC_COUNTER_ELAPSED]))
        a->cycles_per_ns = sample->value[OCC_COUNTER_ELAPSED] / length;
    own.is_possible = read_ratios(a, sample, own.ratio);
    a->stats.bad_samples += !own.is_possible;
    if (most > 0)
        own.imbalance = (float)(1 - sample->value[OCC_COUNTER_ACTIVE_MIN] / most);
    q->samples[q->n_samples++] = own;
    return 0;
}

/* ---- blocks ---- */

/* Joins and solves the first samples several times, to find the clocks' offset: what it does to rows depends
 * on values, and they on it. */
static int begin(struct occ_attribution *a, size_t n, struct occ_error *err)
{
    int status = 0;
    a->estimate.clock_ns = a->queue.samples[0].start_ns;
    for (int round = 0; round < BEGIN_ROUNDS && status == 0; round++) {
        size_t n_rows = a->rows.n, n_entries = a->rows.n_entries; /* of blocks without an estimate */
        occ_join_block(a, n, true);
        status = occ_solve(a, err);
        a->rows.n = n_rows < a->rows.n ? n_rows : a->rows.n;
        a->rows.n_entries = n_entries < a->rows.n_entries ? n_entries : a->rows.n_entries;
    }
    return status;
}

static int process_block(struct occ_attribution *a, size_t n, bool final, struct occ_error *err)
{
    struct occ_queue *q = &a->queue;
    a->joined_ns = q->samples[n - 1].end_ns;
    int status = a->estimate.known ? 0 : begin(a, n, err);
    if (status != 0)
        return status;
    occ_join_block(a, n, false);
    a->settled_ns = a->joined_ns - CLOCKS_NS;
    q->n_samples -= n;
    memmove(q->samples, q->samples + n, q->n_samples * sizeof *q->samples);
    bool is_due = a->joined_ns >= a->estimate.due_ns && FRESH * a->rows.fresh >= a->rows.n;
    return a->estimate.known && (is_due || final) ? occ_solve(a, err) : 0;
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
    a->settled_ns = a->joined_ns - CLOCKS_NS;
    for (size_t n; status == 0 && (n = next_block(a, final)) > 0;)
        status = process_block(a, n, final && n == a->queue.n_samples, err);
    if (a->queue.n_samples == 0 && a->advanced_ns - a->options.watermark_ns > a->settled_ns)
        a->settled_ns = a->advanced_ns - a->options.watermark_ns; /* no samples of these will come */
    if (final && status == 0)
        a->settled_ns = INT64_MAX;
    return status;
}

void occ_attribution_restart(struct occ_attribution *a)
{
    a->rows.n = a->rows.n_entries = 0;
    a->utilization_rows.n = a->utilization_rows.n_entries = 0;
    a->longest_ns = 0;
}

/* ---- out ---- */

/* False: it was read by no sample. */
static bool find_value(struct occ_attribution *a, struct occ_queued_launch *l, struct occ_measured *ret)
{
    const struct occ_regressor *r = &a->regressors.items[l->regressor];
    *ret = OCC_NOT_MEASURED;
    if (l->is_late && !occ_direct_lookup(a, l, ret))
        return false;
    if (!l->is_late && !occ_direct_report(a, l, ret) && l->covered)
        *ret = r->measured;
    occ_errors_fill_utilization(a, r, ret);
    return true;
}

/* Launches whose values were taken leave. */
static void remove_taken(struct occ_queue *q)
{
    size_t kept = 0, busy = SIZE_MAX;
    for (size_t i = 0; i < q->n_launches; i++) {
        if (q->launches[i].regressor == OCC_NONE)
            continue;
        busy = i == q->busy_launch ? kept : busy;
        q->launches[kept++] = q->launches[i];
    }
    q->n_launches = kept;
    q->busy_launch = busy;
    q->taken = 0;
    q->latest_ns = kept > 0 ? q->latest_ns : 0;
}

size_t occ_attribution_take(struct occ_attribution *a, struct occ_attribution_value *values, size_t max)
{
    size_t n = 0;
    for (; a->queue.taken < a->queue.n_launches && n < max; a->queue.taken++) {
        struct occ_queued_launch *l = &a->queue.launches[a->queue.taken];
        if (l->end_ns > a->settled_ns || l->regressor == OCC_NONE)
            continue;
        values[n] = (struct occ_attribution_value){.tag = l->tag,
                                                   .shape = a->regressors.items[l->regressor].model.shape,
                                                   .start_ns = l->start_ns,
                                                   .end_ns = l->end_ns};
        if (find_value(a, l, &values[n].measured))
            n++;
        else
            a->stats.late_launches++;
        l->regressor = OCC_NONE;
    }
    if (n < max)
        remove_taken(&a->queue);
    return n;
}

/* Adds up the second's bins of the past: what no launch explains, and all that was counted. */
static bool sum_second(const struct occ_attribution *a, int64_t second, double *ret_residual,
                       double *ret_counted)
{
    const int64_t bins = 1000000000 / OCC_PAST_NS;
    double residual = 0, counted = 0, ns = 0;
    bool was_sampled = false;
    for (int64_t bin = second * bins; bin < (second + 1) * bins; bin++) {
        const struct occ_past *past = &a->past[bin % OCC_PAST_MAX];
        if (past->bin != bin)
            continue;
        was_sampled = true;
        residual += (double)past->sum[OCC_RESPONSE_WARPS];
        counted += (double)past->counted;
        ns += (double)past->ns[OCC_RESPONSE_WARPS];
    }
    *ret_residual = residual / ns; /* of nothing: NaN */
    *ret_counted = counted / ns;
    return was_sampled;
}

size_t occ_attribution_take_seconds(struct occ_attribution *a, struct occ_attribution_second *seconds,
                                    size_t max)
{
    int64_t end = a->joined_ns / 1000000000, oldest = end - OCC_SECONDS_MAX;
    size_t n = 0;
    double counted;
    a->next_second = a->next_second > oldest ? a->next_second : oldest;
    for (; a->next_second < end && n < max; a->next_second++)
        if (a->next_second >= 0 && sum_second(a, a->next_second, &seconds[n].unexplained, &counted))
            seconds[n++].second = a->next_second;
    return n;
}

void occ_attribution_read(const struct occ_attribution *a, const struct occ_sample *sample,
                          struct occ_measured *ret)
{
    float ratio[OCC_RESPONSE_COUNT], active;
    (void)read_ratios(a, sample, ratio);
    active = ratio[OCC_RESPONSE_ACTIVE];
    *ret = (struct occ_measured){.elapsed = (double)ratio[OCC_RESPONSE_WARPS],
                                 .sm_active = (double)active,
                                 .blocks = active > 0 ? (double)(ratio[OCC_RESPONSE_BLOCKS] / active) : NAN};
    for (int i = 0; i < 5; i++)
        ret->stall[i] = (double)ratio[OCC_RESPONSE_STALLS + i];
}

void occ_attribution_get_stats(const struct occ_attribution *a, struct occ_attribution_stats *ret_stats)
{
    double residual, counted;
    (void)sum_second(a, a->joined_ns > 0 ? a->joined_ns / 1000000000 - 1 : 0, &residual, &counted);
    *ret_stats = a->stats;
    ret_stats->residual_ratio = residual / counted;
    ret_stats->offset_ns = llround(a->estimate.offset_ns);
    ret_stats->drift_ppm = a->estimate.drift * 1e6;
    ret_stats->waiting = a->queue.n_launches;
    ret_stats->keys = a->regressors.n;
    ret_stats->keys_refused = a->regressors.refused;
}
