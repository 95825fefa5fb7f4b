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
    a->estimate.scale = FIRST_SCALE;
    a->stats.residual_ratio = NAN;
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
    free(a->queue.late);
    free(a->queue.samples);
    free(a);
}

/* ---- in ---- */

/* How long it runs beside what came before it, for both. */
static void note_overlap(struct occ_attribution *a, struct occ_queued_launch *launch)
{
    if (launch->start_ns < a->queue.busy_until_ns) {
        int64_t end = launch->end_ns < a->queue.busy_until_ns ? launch->end_ns : a->queue.busy_until_ns;
        launch->overlapped_ns = (float)(end - launch->start_ns);
        if (a->queue.busy_launch < a->queue.n_launches)
            a->queue.launches[a->queue.busy_launch].overlapped_ns += launch->overlapped_ns;
    }
    if (launch->end_ns > a->queue.busy_until_ns) {
        a->queue.busy_until_ns = launch->end_ns;
        a->queue.busy_launch = a->queue.n_launches;
    }
}

/* The oldest time that rows, or samples to come, have launches of. */
static int64_t oldest_ns(const struct occ_attribution *a)
{
    int64_t oldest = a->rows.n > 0 ? a->rows.rows[0].start_ns : a->joined_ns;
    if (a->utilization_rows.n > 0 && a->utilization_rows.rows[0].start_ns < oldest)
        oldest = a->utilization_rows.rows[0].start_ns;
    return oldest - CLOCKS_NS;
}

/* Launches that start before `until_ns` are about to be joined, and count in their regressors: those that
 * overlap others get the regressor for that. Where there is no room for it, they keep the other. */
static void count_launches(struct occ_attribution *a, int64_t until_ns)
{
    for (size_t i = 0; i < a->queue.n_launches && a->queue.launches[i].start_ns < until_ns; i++) {
        struct occ_queued_launch *l = &a->queue.launches[i];
        double duration = (double)(l->end_ns - l->start_ns);
        if (l->counted || l->regressor == OCC_NONE)
            continue;
        l->counted = true;
        if ((double)l->overlapped_ns > OVERLAPPED * duration) {
            const struct occ_attribution_key model = a->regressors.items[l->regressor].model;
            uint32_t other = occ_regressors_put(&a->regressors, &a->options, &model, true, oldest_ns(a));
            if (other != OCC_NONE) {
                a->regressors.items[l->regressor].waiting--;
                a->regressors.items[other].waiting++;
                l->regressor = other;
            }
        }
        struct occ_regressor *r = &a->regressors.items[l->regressor];
        r->launches++;
        r->launch_ns += duration;
        r->used_ns = l->end_ns > r->used_ns ? l->end_ns : r->used_ns;
    }
}

/* A kernel that ran for long is reported when it ends: most of its samples are joined by then, and it waits
 * for the last. */
static bool put_late(struct occ_attribution *a, const struct occ_attribution_launch *launch)
{
    if (!occ_grow((void **)&a->queue.late, &a->queue.late_allocated, a->queue.n_late, LATE_MAX,
                  sizeof *a->queue.late))
        return false;
    a->queue.late[a->queue.n_late++] = *launch;
    return true;
}

int occ_attribution_launch(struct occ_attribution *a, const struct occ_attribution_launch *launch,
                           struct occ_error *err)
{
    struct occ_queued_launch own = {
        .start_ns = launch->start_ns, .end_ns = launch->end_ns, .tag = launch->tag};
    if (launch->start_ns < 0 || launch->end_ns <= launch->start_ns)
        return occ_fail(err, OCC_E_INVALID, "a launch that ends before it starts");
    if (launch->end_ns - launch->start_ns > LAUNCH_NS_MAX)
        return occ_fail(err, OCC_E_INVALID, "a launch that lasts for more than a day");
    if (launch->start_ns < a->advanced_ns)
        return put_late(a, launch) ? 0 : occ_fail(err, OCC_E_FULL, "too many launches come late");
    if (a->queue.n_launches > 0 && launch->start_ns < a->queue.launches[a->queue.n_launches - 1].start_ns)
        return occ_fail(err, OCC_E_INVALID, "launches are not in order of their start");
    if (!occ_grow((void **)&a->queue.launches, &a->queue.launches_allocated, a->queue.n_launches,
                  a->options.max_launches, sizeof *a->queue.launches)) {
        a->stats.dropped_launches++;
        return occ_fail(err, OCC_E_FULL, "too many launches wait for their samples");
    }
    own.regressor = occ_regressors_put(&a->regressors, &a->options, &launch->key, false, oldest_ns(a));
    if (own.regressor == OCC_NONE)
        return occ_fail(err, OCC_E_FULL, "too many kernels");
    note_overlap(a, &own);
    a->regressors.items[own.regressor].waiting++;
    a->queue.launches[a->queue.n_launches++] = own;
    return 0;
}

static bool is_sound(const struct occ_attribution *a, const struct occ_sample *sample)
{
    double cycles = sample->value[OCC_COUNTER_ELAPSED];
    return sample->start_ns >= 0 && sample->end_ns > sample->start_ns &&
           sample->end_ns - sample->start_ns <= SAMPLE_NS_MAX &&
           (a->queue.n_samples == 0 ||
            sample->start_ns >= a->queue.samples[a->queue.n_samples - 1].start_ns) &&
           sample->start_ns >= a->joined_ns && !(cycles <= 0) && !isinf(cycles) &&
           (isfinite(cycles) || a->cycles_per_ns > 0);
}

int occ_attribution_sample(struct occ_attribution *a, const struct occ_sample *sample, struct occ_error *err)
{
    if (!is_sound(a, sample)) {
        a->stats.bad_samples++;
        return 0;
    }
    if (!occ_grow((void **)&a->queue.samples, &a->queue.samples_allocated, a->queue.n_samples, SAMPLES_MAX,
                  sizeof *a->queue.samples)) {
        if (a->queue.n_samples < SAMPLES_MAX)
            return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
        a->stats.dropped_samples++;
        return 0;
    }
    double length = (double)(sample->end_ns - sample->start_ns);
    a->longest_ns = fmax(a->longest_ns, length);
    if (isfinite(sample->value[OCC_COUNTER_ELAPSED]))
        a->cycles_per_ns = sample->value[OCC_COUNTER_ELAPSED] / length;
    double ratio[OCC_RESPONSE_COUNT];
    a->stats.bad_samples += !occ_join_ratios(a, sample, ratio);
    a->queue.samples[a->queue.n_samples++] = *sample;
    return 0;
}

/* ---- settling ---- */

static struct occ_measured value_of(struct occ_attribution *a, struct occ_queued_launch *l)
{
    const struct occ_regressor *r = &a->regressors.items[l->regressor];
    struct occ_measured value = OCC_NOT_MEASURED;
    if (!occ_direct_report(a, l, &value) && l->covered)
        value = r->measured;
    occ_utilization_fill(a, r, &value);
    return value;
}

/* ---- blocks ---- */

/* Joins and solves the first samples several times, to find the clocks' offset: what it does to rows depends
 * on values, and they on it. */
static int begin(struct occ_attribution *a, size_t n, struct occ_error *err)
{
    int status = 0;
    a->estimate.clock_ns = a->queue.samples[0].start_ns;
    for (int round = 0; round < BEGIN_ROUNDS && status == 0; round++) {
        a->rows.n = a->rows.n_entries = 0;
        occ_join_block(a, n, true);
        status = a->rows.n_entries >= BEGIN_ENTRIES ? occ_solve(a, err) : 0;
    }
    a->rows.n = a->rows.n_entries = 0;
    return status;
}

static int process_block(struct occ_attribution *a, size_t n, bool final, struct occ_error *err)
{
    struct occ_queue *q = &a->queue;
    count_launches(a, q->samples[n - 1].end_ns + CLOCKS_NS);
    a->joined_ns = q->samples[n - 1].end_ns;
    int status = a->estimate.known ? 0 : begin(a, n, err);
    if (status != 0)
        return status;
    occ_join_block(a, n, false);
    a->settled_ns = a->joined_ns - CLOCKS_NS;
    q->n_samples -= n;
    memmove(q->samples, q->samples + n, q->n_samples * sizeof *q->samples);
    bool is_due = a->joined_ns >= a->estimate.due_ns && FRESH * a->rows.fresh >= a->rows.n;
    status = a->estimate.known && (is_due || final) ? occ_solve(a, err) : 0;
    return status == 0 ? occ_utilization_solve(a, final, err) : status;
}

/* Number of samples whose launches are all here; of BLOCK_NS. */
static size_t next_block(const struct occ_attribution *a)
{
    const struct occ_queue *q = &a->queue;
    size_t n = 0;
    while (n < q->n_samples && q->samples[n].end_ns <= a->advanced_ns - CLOCKS_NS &&
           q->samples[n].start_ns - q->samples[0].start_ns < BLOCK_NS)
        n++;
    return n;
}

int occ_attribution_advance(struct occ_attribution *a, int64_t until_ns, bool final, struct occ_error *err)
{
    int status = 0;
    a->advanced_ns = until_ns > a->advanced_ns ? until_ns : a->advanced_ns;
    a->settled_ns = a->joined_ns - CLOCKS_NS;
    for (size_t n; status == 0 && (n = next_block(a)) > 0;)
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

static size_t take_late(struct occ_attribution *a, struct occ_attribution_value *values, size_t max)
{
    size_t kept = 0, n = 0;
    for (size_t i = 0; i < a->queue.n_late; i++) {
        const struct occ_attribution_launch *l = &a->queue.late[i];
        struct occ_measured measured;
        if (l->end_ns > a->settled_ns || n == max)
            a->queue.late[kept++] = *l;
        else if (occ_direct_lookup(a, l, &measured))
            values[n++] =
                (struct occ_attribution_value){l->tag, l->key.shape, l->start_ns, l->end_ns, measured};
        else
            a->stats.late_launches++;
    }
    a->queue.n_late = kept;
    return n;
}

/* Launches whose values were taken leave. */
static void remove_taken(struct occ_attribution *a)
{
    size_t kept = 0, busy = SIZE_MAX;
    for (size_t i = 0; i < a->queue.n_launches; i++) {
        if (a->queue.launches[i].regressor == OCC_NONE)
            continue;
        busy = i == a->queue.busy_launch ? kept : busy;
        a->queue.launches[kept++] = a->queue.launches[i];
    }
    a->queue.n_launches = kept;
    a->queue.busy_launch = busy;
    a->queue.taken = 0;
}

size_t occ_attribution_take(struct occ_attribution *a, struct occ_attribution_value *values, size_t max)
{
    size_t n = take_late(a, values, max);
    for (; a->queue.taken < a->queue.n_launches && n < max; a->queue.taken++) {
        struct occ_queued_launch *l = &a->queue.launches[a->queue.taken];
        if (l->end_ns > a->settled_ns || l->regressor == OCC_NONE)
            continue;
        struct occ_regressor *r = &a->regressors.items[l->regressor];
        values[n++] =
            (struct occ_attribution_value){l->tag, r->model.shape, l->start_ns, l->end_ns, value_of(a, l)};
        r->waiting--;
        l->regressor = OCC_NONE;
    }
    if (n < max)
        remove_taken(a);
    return n;
}

size_t occ_attribution_take_seconds(struct occ_attribution *a, struct occ_attribution_second *seconds,
                                    size_t max)
{
    struct occ_seconds *s = &a->seconds;
    size_t n = s->n < max ? s->n : max;
    memcpy(seconds, s->items, n * sizeof *seconds);
    s->n -= (uint32_t)n;
    memmove(s->items, s->items + n, s->n * sizeof *s->items);
    return n;
}

void occ_attribution_read(const struct occ_attribution *a, const struct occ_sample *sample,
                          struct occ_measured *ret)
{
    double ratio[OCC_RESPONSE_COUNT];
    (void)occ_join_ratios(a, sample, ratio);
    *ret = (struct occ_measured){.elapsed = ratio[OCC_RESPONSE_WARPS],
                                 .sm_active = ratio[OCC_RESPONSE_ACTIVE],
                                 .blocks = ratio[OCC_RESPONSE_ACTIVE] > 0
                                               ? ratio[OCC_RESPONSE_BLOCKS] / ratio[OCC_RESPONSE_ACTIVE]
                                               : NAN};
    memcpy(ret->stall, ratio + OCC_RESPONSE_STALLS, sizeof ret->stall);
}

void occ_attribution_ask(const struct occ_attribution *a, uint64_t shape, uint64_t graph_node,
                         struct occ_measured *ret_measured)
{
    const struct occ_regressor *found = NULL;
    for (size_t i = 0; i < a->regressors.n; i++) {
        const struct occ_regressor *r = &a->regressors.items[i];
        if (r->taken && r->model.shape == shape && r->model.graph_node == graph_node &&
            (!found || r->launch_ns > found->launch_ns))
            found = r;
    }
    *ret_measured = found ? found->measured : OCC_NOT_MEASURED;
    if (found)
        occ_utilization_fill(a, found, ret_measured);
}

void occ_attribution_get_stats(const struct occ_attribution *a, struct occ_attribution_stats *ret_stats)
{
    *ret_stats = a->stats;
    ret_stats->offset_ns = llround(a->estimate.offset_ns);
    ret_stats->drift_ppm = a->estimate.drift * 1e6;
    ret_stats->waiting = a->queue.n_launches + a->queue.n_late;
    ret_stats->keys = a->regressors.n;
    ret_stats->keys_refused = a->regressors.refused;
}
