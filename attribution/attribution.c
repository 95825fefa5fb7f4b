/*
 * Attribution of device-wide samples to launches; see attribution.h. Launches and samples wait in two queues
 * in order of time. When advance() says that all launches up to a time are here, samples up to it are taken
 * in blocks:
 *
 *   join     each sample becomes a row: how much of it each regressor had, what was counted (join.c); the
 *            first block is joined several times, to find the offset between the two clocks
 *   read     launches that last several samples are read from them, less what others had of them (direct.c)
 *   solve    every now and then, and when residuals grow, the rows are solved (solve.c, errors.c)
 *
 * Launches that ended get their value, and leave, when take() asks for it.
 */
#include <string.h>

#include "state.h"

#define REGRESSORS_MAX  8192
#define LAUNCHES_MAX    262144
#define SAMPLES_MAX     262144
#define WATERMARK_NS    INT64_C(2000000000)
#define BEGIN_NS        INT64_C(500000000) /* of samples, from which the clocks' offset is found ... */
#define BEGIN_ROUNDS    2
#define BEGIN_OFFSET_NS 32000.0
#define BEGIN_ENTRIES   64 /* ... if launches are in them so often */
#define BLOCK_NS        INT64_C(250000000)
#define BLOCK_SAMPLES   2048
#define SAMPLE_NS_MAX   INT64_C(60000000000)
#define LAUNCH_NS_MAX   INT64_C(86400000000000)
#define LATE_MAX        4096u
#define FIRST_SCALE     0.01 /* of rows' variances: launches differ by a tenth */
#define SURPRISE        4.0  /* times the usual squared residuals */
#define SURPRISE_ROWS   100  /* that are new, for it to count */

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
    a->free_direct = OCC_NONE;
    a->busy_launch = SIZE_MAX;
    a->advanced_ns = a->joined_ns = INT64_MIN / 2; /* before all times */
    for (int i = 0; i < OCC_LENGTHS; i++)
        a->scale[i] = FIRST_SCALE;
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
    free(a->past);
    free(a->launches);
    free(a->late);
    free(a->samples);
    free(a->direct);
    free(a);
}

/* ---- in ---- */

/* How long it runs beside what came before it, for both. */
static void note_overlap(struct occ_attribution *a, struct occ_queued_launch *launch)
{
    if (launch->start_ns < a->busy_until_ns) {
        int64_t end = launch->end_ns < a->busy_until_ns ? launch->end_ns : a->busy_until_ns;
        launch->beside_ns = end - launch->start_ns;
        if (a->busy_launch < a->n_launches)
            a->launches[a->busy_launch].beside_ns += launch->beside_ns;
    }
    if (launch->end_ns > a->busy_until_ns) {
        a->busy_until_ns = launch->end_ns;
        a->busy_launch = a->n_launches;
    }
}

/* The oldest time that rows, or samples to come, have launches of. */
static int64_t oldest_ns(const struct occ_attribution *a)
{
    return (a->rows.n > 0 ? a->rows.rows[0].start_ns : a->joined_ns) - OCC_CLOCKS_NS;
}

/* Launches that start before `until_ns` are about to be joined: those that overlap others get the regressor
 * for that. Where there is no room for it, they keep the other. */
static void find_overlaps(struct occ_attribution *a, int64_t until_ns)
{
    for (size_t i = 0; i < a->n_launches && a->launches[i].start_ns < until_ns; i++) {
        struct occ_queued_launch *l = &a->launches[i];
        double duration = (double)(l->end_ns - l->start_ns);
        if (l->is_used || l->regressor == OCC_NONE)
            continue;
        l->is_used = true;
        if ((double)l->beside_ns > OCC_OVERLAPPED * duration) {
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
    if (!occ_grow((void **)&a->late, &a->late_allocated, a->n_late, LATE_MAX, sizeof *a->late))
        return false;
    a->late[a->n_late++] = *launch;
    return true;
}

int occ_attribution_launch(struct occ_attribution *a, const struct occ_attribution_launch *launch,
                           struct occ_error *err)
{
    struct occ_queued_launch own = {
        .start_ns = launch->start_ns, .end_ns = launch->end_ns, .tag = launch->tag, .direct = OCC_NONE};
    if (launch->start_ns < 0 || launch->end_ns <= launch->start_ns)
        return occ_fail(err, OCC_E_INVALID, "a launch that ends before it starts");
    if (launch->end_ns - launch->start_ns > LAUNCH_NS_MAX)
        return occ_fail(err, OCC_E_INVALID, "a launch that lasts for more than a day");
    if (launch->start_ns < a->advanced_ns)
        return put_late(a, launch) ? 0 : occ_fail(err, OCC_E_FULL, "too many launches come late");
    if (a->n_launches > 0 && launch->start_ns < a->launches[a->n_launches - 1].start_ns)
        return occ_fail(err, OCC_E_INVALID, "launches are not in order of their start");
    if (!occ_grow((void **)&a->launches, &a->launches_allocated, a->n_launches, a->options.max_launches,
                  sizeof *a->launches)) {
        a->stats.dropped_launches++;
        return occ_fail(err, OCC_E_FULL, "too many launches wait for their samples");
    }
    own.regressor = occ_regressors_put(&a->regressors, &a->options, &launch->key, false, oldest_ns(a));
    if (own.regressor == OCC_NONE)
        return occ_fail(err, OCC_E_FULL, "too many kernels");
    note_overlap(a, &own);
    a->regressors.items[own.regressor].waiting++;
    a->launches[a->n_launches++] = own;
    return 0;
}

static bool is_sound(const struct occ_attribution *a, const struct occ_sample *sample)
{
    double cycles = sample->value[OCC_COUNTER_ELAPSED];
    return sample->start_ns >= 0 && sample->end_ns > sample->start_ns &&
           sample->end_ns - sample->start_ns <= SAMPLE_NS_MAX &&
           (a->n_samples == 0 || sample->start_ns >= a->samples[a->n_samples - 1].start_ns) &&
           sample->start_ns >= a->joined_ns && !(cycles <= 0) && !isinf(cycles) &&
           (isfinite(cycles) || a->cycles_per_ns > 0);
}

int occ_attribution_sample(struct occ_attribution *a, const struct occ_sample *sample, struct occ_error *err)
{
    if (!is_sound(a, sample)) {
        a->stats.bad_samples++;
        return 0;
    }
    if (!occ_grow((void **)&a->samples, &a->samples_allocated, a->n_samples, SAMPLES_MAX,
                  sizeof *a->samples)) {
        if (a->n_samples < SAMPLES_MAX)
            return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
        a->stats.dropped_samples++;
        return 0;
    }
    double length = (double)(sample->end_ns - sample->start_ns);
    if (isfinite(sample->value[OCC_COUNTER_ELAPSED]))
        a->cycles_per_ns = sample->value[OCC_COUNTER_ELAPSED] / length;
    double ratio[OCC_RESPONSE_COUNT];
    a->stats.bad_samples += !occ_join_ratios(a, sample, ratio);
    a->samples[a->n_samples++] = *sample;
    return 0;
}

/* ---- settling ---- */

static struct occ_measured value_of(struct occ_attribution *a, const struct occ_queued_launch *l)
{
    const struct occ_regressor *r = &a->regressors.items[l->regressor];
    struct occ_measured value = OCC_NOT_MEASURED;
    if (occ_direct_report(a, l, &value) || !l->covered || r->measured.source == OCC_ATTRIBUTION_NONE)
        return value;
    return r->measured;
}

/* ---- blocks ---- */

/* The residuals of the last block are larger than usual. */
static bool is_surprised(struct occ_attribution *a)
{
    if (a->surprise_rows < SURPRISE_ROWS)
        return false;
    double now = a->surprise / a->surprise_rows;
    if (a->usual > 0 && now > SURPRISE * a->usual)
        return true;
    a->usual = a->usual > 0 ? a->usual + (now - a->usual) / 16 : now;
    return false;
}

/* Joins and solves the first samples, from one offset of the clocks on. */
static int try_offset(struct occ_attribution *a, size_t n, double offset_ns, struct occ_error *err)
{
    int status = 0;
    a->clock_ns = a->samples[0].start_ns;
    a->offset_ns = offset_ns;
    a->drift = 0;
    for (int round = 0; round < BEGIN_ROUNDS && status == 0; round++) {
        a->rows.n = a->rows.n_entries = 0;
        occ_join_block(a, n);
        a->joined_ns = a->samples[n - 1].end_ns;
        a->begun = a->rows.n_entries >= BEGIN_ENTRIES;
        status = a->begun ? occ_solve(a, err) : 0;
    }
    a->rows.n = a->rows.n_entries = 0;
    return status;
}

/* Finds the clocks' offset: steps of the estimate lead to it from nearby only. */
static int begin(struct occ_attribution *a, size_t n, struct occ_error *err)
{
    static const double offsets_ns[] = {0, -BEGIN_OFFSET_NS, BEGIN_OFFSET_NS};
    double best = 0, least = INFINITY;
    int status = 0;
    a->is_trial = true;
    for (size_t i = 0; i < sizeof offsets_ns / sizeof *offsets_ns && status == 0; i++) {
        status = try_offset(a, n, offsets_ns[i], err);
        best = a->spread < least ? a->offset_ns : best;
        least = fmin(least, a->spread);
    }
    if (status == 0)
        status = try_offset(a, n, best, err);
    a->is_trial = false;
    return status;
}

static int process_block(struct occ_attribution *a, size_t n, bool final, struct occ_error *err)
{
    find_overlaps(a, a->samples[n - 1].end_ns + OCC_CLOCKS_NS);
    int status = a->begun ? 0 : begin(a, n, err);
    if (status != 0)
        return status;
    occ_join_block(a, n);
    a->joined_ns = a->samples[n - 1].end_ns;
    a->n_samples -= n;
    memmove(a->samples, a->samples + n, a->n_samples * sizeof *a->samples);
    a->settled_ns = a->joined_ns - OCC_CLOCKS_NS;
    bool is_due = final || a->joined_ns >= a->due_ns || (a->joined_ns >= a->hurry_ns && is_surprised(a));
    return is_due && a->begun ? occ_solve(a, err) : 0;
}

/* Samples whose launches are all here; 0 while waiting for more pays. */
static size_t next_block(const struct occ_attribution *a, bool final)
{
    size_t n = 0;
    while (n < a->n_samples && n < BLOCK_SAMPLES && a->samples[n].end_ns <= a->advanced_ns - OCC_CLOCKS_NS)
        n++;
    int64_t block_ns = a->begun ? BLOCK_NS : BEGIN_NS;
    bool enough = (n > 0 && a->samples[n - 1].end_ns <= a->advanced_ns - a->options.watermark_ns) ||
                  n == BLOCK_SAMPLES ||
                  (n > 0 && a->samples[n - 1].end_ns - a->samples[0].start_ns >= block_ns);
    return final || enough ? n : 0;
}

int occ_attribution_advance(struct occ_attribution *a, int64_t until_ns, bool final, struct occ_error *err)
{
    int status = 0;
    a->advanced_ns = until_ns > a->advanced_ns ? until_ns : a->advanced_ns;
    a->settled_ns = a->joined_ns - OCC_CLOCKS_NS;
    for (size_t n; status == 0 && (n = next_block(a, final)) > 0;)
        status = process_block(a, n, final && n == a->n_samples, err);
    if (a->n_samples == 0 && a->advanced_ns - a->options.watermark_ns > a->settled_ns)
        a->settled_ns = a->advanced_ns - a->options.watermark_ns; /* no samples of these will come */
    if (final && status == 0)
        a->settled_ns = INT64_MAX;
    return status;
}

void occ_attribution_restart(struct occ_attribution *a)
{
    a->rows.n = a->rows.n_entries = 0;
}

/* ---- out ---- */

static size_t take_late(struct occ_attribution *a, struct occ_attribution_value *values, size_t max)
{
    size_t kept = 0, n = 0;
    for (size_t i = 0; i < a->n_late; i++) {
        const struct occ_attribution_launch *l = &a->late[i];
        struct occ_measured measured;
        if (l->end_ns > a->settled_ns || n == max)
            a->late[kept++] = *l;
        else if (occ_direct_lookup(a, l, &measured))
            values[n++] =
                (struct occ_attribution_value){l->tag, l->key.shape, l->start_ns, l->end_ns, measured};
        else
            a->stats.late_launches++;
    }
    a->n_late = kept;
    return n;
}

/* Launches whose values were taken leave. */
static void remove_taken(struct occ_attribution *a)
{
    size_t kept = 0, busy = SIZE_MAX;
    for (size_t i = 0; i < a->n_launches; i++) {
        if (a->launches[i].regressor == OCC_NONE)
            continue;
        busy = i == a->busy_launch ? kept : busy;
        a->launches[kept++] = a->launches[i];
    }
    a->n_launches = kept;
    a->busy_launch = busy;
    a->taken = 0;
}

size_t occ_attribution_take(struct occ_attribution *a, struct occ_attribution_value *values, size_t max)
{
    size_t n = take_late(a, values, max);
    for (; a->taken < a->n_launches && n < max; a->taken++) {
        struct occ_queued_launch *l = &a->launches[a->taken];
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
    size_t n = a->n_seconds < max ? a->n_seconds : max;
    memcpy(seconds, a->seconds, n * sizeof *seconds);
    a->n_seconds -= (uint32_t)n;
    memmove(a->seconds, a->seconds + n, a->n_seconds * sizeof *a->seconds);
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
}

void occ_attribution_get_stats(const struct occ_attribution *a, struct occ_attribution_stats *ret_stats)
{
    *ret_stats = a->stats;
    ret_stats->offset_ns = llround(a->offset_ns);
    ret_stats->drift_ppm = a->drift * 1e6;
    ret_stats->residual_ratio = a->counted > 0 ? a->residual / a->counted : NAN;
    ret_stats->waiting = a->n_launches + a->n_late;
    ret_stats->keys = a->regressors.n;
    ret_stats->keys_refused = a->regressors.refused;
}
