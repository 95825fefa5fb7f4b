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

/* ---- begin and end ---- */

int occ_attribution_new(const struct occ_attribution_options *options,
                        struct occ_attribution **ret_attribution, struct occ_error *err)
{
    if (!options->sm_count || !options->max_warps_per_sm)
        return occ_fail(err, OCC_E_INVALID, "a GPU without SMs or warps");
    struct occ_attribution *a = calloc(1, sizeof *a);
    if (!a)
        return occ_no_memory(err);
    a->options = *options;
    a->queue.busy_launch = SIZE_MAX;
    a->estimate.scale = SPREAD_MAX * SPREAD_MAX;
    a->stats.residual_ratio = NAN;
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
    for (size_t i = 0; i < a->queue.n_launches; i++)
        free(a->queue.launches[i].direct);
    free(a->queue.launches);
    free(a->queue.samples);
    free(a);
}

void occ_attribution_restart(struct occ_attribution *a)
{
    a->rows.n = a->rows.n_entries = 0;
    a->utilization_rows.n = a->utilization_rows.n_entries = 0;
    a->longest_ns = 0;
}

/* ---- launches ---- */

/* What the model expects before anything is measured. */
static void set_prior(struct occ_regressor *r, const struct occ_attribution_key *key,
                      const struct occ_attribution_options *options)
{
    double theoretical = isfinite(key->theoretical) && key->theoretical > 0 ? fmin(key->theoretical, 1) : 1;
    double waves =
        key->grid_blocks && key->wave_blocks ? (double)key->grid_blocks / (double)key->wave_blocks : 1;
    double bound = fmin(theoretical * fmin(waves, 1) * BOUND_SLACK, 1);
    double warps = PRIOR_PART * fmin(theoretical * waves / ceil(waves), bound);
    r->bound = (float)bound;
    r->prior[OCC_RESPONSE_WARPS] = (float)warps;
    r->prior[OCC_RESPONSE_ACTIVE] =
        key->grid_blocks ? (float)fmin((double)key->grid_blocks / options->sm_count, 1) : 1;
    if (key->warps_per_block)
        r->prior[OCC_RESPONSE_BLOCKS] = (float)(warps * options->max_warps_per_sm / key->warps_per_block);
    for (int i = 0; i < OCC_UTILIZATION_COUNT; i++) {
        r->prior[OCC_RESPONSE_UTILIZATION + i] = 0.5F;
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
    set_prior(&all->items[all->n], key, &a->options);
    return (uint32_t)all->n++;
}

/* For its regressor; and how long it runs beside what came before it, for both. */
static void note_launch(struct occ_attribution *a, struct occ_queued_launch *launch)
{
    struct occ_regressor *r = &a->regressors.items[launch->regressor];
    struct occ_queue *q = &a->queue;
    if (launch->start_ns < q->busy_until_ns) {
        int64_t end_ns = launch->end_ns < q->busy_until_ns ? launch->end_ns : q->busy_until_ns;
        launch->overlapped_ns = (float)(end_ns - launch->start_ns);
        if (q->busy_launch < q->n_launches) {
            struct occ_queued_launch *other = &q->launches[q->busy_launch];
            other->overlapped_ns += launch->overlapped_ns;
            a->regressors.items[other->regressor].overlapped_ns += (double)launch->overlapped_ns;
        }
    }
    if (launch->end_ns > q->busy_until_ns) {
        q->busy_until_ns = launch->end_ns;
        q->busy_launch = q->n_launches;
    }
    r->launches++;
    r->launch_ns += (double)(launch->end_ns - launch->start_ns);
    r->overlapped_ns += (double)launch->overlapped_ns;
}

int occ_attribution_launch(struct occ_attribution *a, const struct occ_attribution_launch *launch,
                           struct occ_error *err)
{
    struct occ_queue *q = &a->queue;
    struct occ_queued_launch own = {.start_ns = launch->start_ns,
                                    .end_ns = launch->end_ns,
                                    .tag = launch->tag,
                                    .is_late = launch->start_ns < a->advanced_ns};
    if (launch->start_ns < 0 || launch->end_ns <= launch->start_ns ||
        launch->end_ns - launch->start_ns > LAUNCH_NS_MAX)
        return occ_fail(err, OCC_E_INVALID, "a launch of no time or of more than a day");
    if (!occ_grow((void **)&q->launches, &q->launches_allocated, q->n_launches, LAUNCHES_MAX,
                  sizeof *q->launches))
        return occ_fail(err, OCC_E_FULL, "too many launches wait for their samples");
    own.regressor = find_regressor(a, &launch->key);
    if (own.regressor == OCC_NONE)
        return occ_fail(err, OCC_E_FULL, "too many kernels");
    if (!own.is_late)
        note_launch(a, &own);
    q->launches[q->n_launches++] = own;
    return 0;
}

/* ---- samples ---- */

/* Fills in the ratios that are regressed; NaN where the sample did not count. False: one cannot be (it is NaN
 * too), and the others may be wrong. */
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
    if (!is_sound(a, sample))
        return occ_fail(err, OCC_E_INVALID, "a sample of no time, without cycles, or back in time");
    if (!occ_grow((void **)&q->samples, &q->samples_allocated, q->n_samples, SAMPLES_MAX, sizeof *q->samples))
        return occ_fail(err, OCC_E_FULL, "too many samples wait for their launches");
    a->longest_ns = fmax(a->longest_ns, length);
    if (isfinite(sample->value[OCC_COUNTER_ELAPSED]))
        a->cycles_per_ns = sample->value[OCC_COUNTER_ELAPSED] / length;
    own.is_possible = read_ratios(a, sample, own.ratio);
    if (most > 0)
        own.imbalance = (float)(1 - sample->value[OCC_COUNTER_ACTIVE_MIN] / most);
    q->samples[q->n_samples++] = own;
    return own.is_possible ? 0 : occ_fail(err, OCC_E_INVALID, "a counter cannot be");
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
    int64_t end_ns = q->samples[n - 1].end_ns;
    a->joined_ns = end_ns > a->joined_ns ? end_ns : a->joined_ns;
    int status = a->estimate.known ? 0 : begin(a, n, err);
    if (status != 0)
        return status;
    occ_join_block(a, n, false);
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

/* Launches that ended before leave with their values. */
static void report_launches(struct occ_attribution *a, int64_t before_ns)
{
    struct occ_queue *q = &a->queue;
    size_t kept = 0, busy = SIZE_MAX;
    for (size_t i = 0; i < q->n_launches; i++) {
        struct occ_queued_launch *l = &q->launches[i];
        if (l->end_ns > before_ns) {
            busy = i == q->busy_launch ? kept : busy;
            q->launches[kept++] = *l;
            continue;
        }
        struct occ_attribution_value value = {.tag = l->tag,
                                              .shape = a->regressors.items[l->regressor].shape,
                                              .start_ns = l->start_ns,
                                              .end_ns = l->end_ns};
        if (find_value(a, l, &value.measured))
            a->options.add_value(a->options.context, &value);
        else
            a->stats.late_launches++;
    }
    q->n_launches = kept;
    q->busy_launch = busy;
}

static void report_second(struct occ_attribution *a, int64_t second)
{
    const int64_t bins = SECOND_NS / OCC_PAST_NS;
    struct occ_sums sums = {0};
    size_t n = occ_direct_sum_past(a, second * bins, (second + 1) * bins, &sums);
    double residual = sums.sum[OCC_RESPONSE_WARPS];
    const struct occ_attribution_second value = {second, residual / sums.ns[OCC_RESPONSE_WARPS]};
    if (n > 0)
        a->options.add_second(a->options.context, &value);
    a->stats.residual_ratio = residual / sums.counted; /* of nothing: NaN */
}

int occ_attribution_advance(struct occ_attribution *a, int64_t until_ns, bool final, struct occ_error *err)
{
    int64_t second = a->joined_ns / SECOND_NS, settled_ns;
    int status = 0;
    a->advanced_ns = until_ns > a->advanced_ns ? until_ns : a->advanced_ns;
    for (size_t n; status == 0 && (n = next_block(a, final)) > 0;)
        status = process_block(a, n, final && n == a->queue.n_samples, err);
    if (status != 0)
        return status;
    settled_ns = a->joined_ns - CLOCKS_NS;
    if (a->queue.n_samples == 0 && a->advanced_ns - WATERMARK_NS > settled_ns)
        settled_ns = a->advanced_ns - WATERMARK_NS; /* no samples of these will come */
    report_launches(a, final ? INT64_MAX : settled_ns);
    int64_t end = a->joined_ns / SECOND_NS;
    for (second = second > end - SECONDS_MAX ? second : end - SECONDS_MAX; second < end; second++)
        report_second(a, second);
    return 0;
}

void occ_attribution_get_stats(const struct occ_attribution *a, struct occ_attribution_stats *ret_stats)
{
    *ret_stats = a->stats;
    ret_stats->offset_ns = llround(a->estimate.offset_ns);
    ret_stats->drift_ppm = a->estimate.drift * 1e6;
    ret_stats->waiting = a->queue.n_launches;
}
