/*
 * Attribution of device-wide samples to launches; see attribution.h. Launches and samples wait in two queues
 * in order of time. When advance() says that all launches up to a time are here, samples up to it are taken
 * in blocks:
 *
 *   clock    the offset between the two clocks is measured on the block (clock_offset.c) ...
 *   join     ... each sample becomes a row: how much of it each key had (overlap.c), what was counted
 *            (join.c, normal_equations.c)
 *   read     launches that last several samples are read from them, less what others had of them (direct.c)
 *   estimate every now and then the equations are solved (estimate.c)
 *   settle   launches that ended get their value and leave
 *
 * Until enough rows are there to know the offset, samples are joined as if the clocks were one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

#define KEYS_MOST         8192
#define LAUNCHES_MOST     262144
#define SAMPLES_MOST      262144
#define HALF_LIFE         30000.0
#define WATERMARK_NS      INT64_C(2000000000)
#define BLOCK_NS          INT64_C(1000000000)
#define LONGEST_NS        INT64_C(60000000000) /* of a sample, and of a launch that is reported in time */
#define LATE_MOST         4096u
#define WRONG_SUM         0.05               /* of what was counted of late: more than noise */
#define SETTLE_NS         INT64_C(250000000) /* without samples: how often to look for launches to give up */
#define FIRST_VARIANCE    (0.02 * 0.02)
#define SOLVE_NS          2.0 /* cost of one multiplication of solving, and ... */
#define SOLVE_SHARE_EARLY 0.05
#define SOLVE_SHARE       0.048 /* ... how much of the time it may take */

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
    a->options.max_keys = options->max_keys ? options->max_keys : KEYS_MOST;
    a->options.max_launches = options->max_launches ? options->max_launches : LAUNCHES_MOST;
    a->options.watermark_ns = options->watermark_ns ? options->watermark_ns : WATERMARK_NS;
    a->options.half_life_samples = options->half_life_samples > 0 ? options->half_life_samples : HALF_LIFE;
    a->free_direct = OCC_NO_DIRECT;
    a->busy_launch = SIZE_MAX;
    a->advanced_ns = a->joined_ns = INT64_MIN;

    a->noise.warps = a->noise.active = 1;
    for (int i = 0; i < OCC_CLASSES; i++)
        a->classes[i].variance = FIRST_VARIANCE;
    a->past = calloc(OCC_HISTORY_MAX, sizeof *a->past);
    int status =
        a->past ? occ_keys_open(&a->keys, &a->options, err) : occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    if (status == 0 && !(a->shift_work = occ_shift_work_new(a->keys.max_columns)))
        status = occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    if (status != 0) {
        occ_attribution_free(a);
    } else {
        *ret_attribution = a;
    }
    return status;
}

void occ_attribution_free(struct occ_attribution *a)
{
    if (!a)
        return;
    occ_keys_close(&a->keys);
    occ_shift_work_free(a->shift_work);
    free(a->past);
    free(a->launches);
    free(a->late);
    free(a->samples);
    free(a->direct);
    free(a->values);
    free(a);
}

/* ---- in ---- */

/* How long it runs beside what came before it, for both. */
static void note_overlap(struct occ_attribution *a, struct occ_overlap_launch *launch)
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

/* Its time counts for its key from here on. */
static void use_key(struct occ_attribution *a, const struct occ_overlap_launch *launch)
{
    struct occ_key *key = &a->keys.keys[launch->key];
    double duration = (double)(launch->end_ns - launch->start_ns);
    key->used = a->keys.rows;
    key->launches++;
    key->launch_ns += duration;
    if (a->interval_ns > 0)
        occ_keys_widen(&a->keys, key, duration / a->interval_ns);
}

/* The launch's company, see keys.h; its key is the one for those alone. */
static uint32_t company_of(const struct occ_overlap_launch *l)
{
    int64_t duration = l->end_ns - l->start_ns;
    return (double)l->beside_ns > OCC_OVERLAPPED * (double)duration ? occ_keys_company(duration) : 0;
}

/* Launches that start before `until_ns` are about to be joined: those that overlap others get the key of
 * their company. Where there is no room for that key, they keep the other. */
static void find_sides(struct occ_attribution *a, int64_t until_ns)
{
    for (size_t i = 0; i < a->n_launches && a->launches[i].start_ns < until_ns; i++) {
        struct occ_overlap_launch *l = &a->launches[i];
        if (l->in_use)
            continue;
        l->in_use = true;
        uint32_t company = company_of(l);
        if (company != 0) {
            const struct occ_attribution_key model = a->keys.keys[l->key].model;
            uint32_t other = occ_keys_put(&a->keys, &model, company);
            if (other != OCC_MAP_NONE) {
                a->keys.keys[l->key].waiting--;
                a->keys.keys[other].waiting++;
                l->key = other;
            }
        }
        use_key(a, l);
    }
}

/* A kernel that ran for long is reported when it ends: most of its samples are joined by then, and it waits
 * for the last. */
static bool put_late(struct occ_attribution *a, const struct occ_attribution_launch *launch)
{
    if (!occ_grow((void **)&a->late, &a->late_allocated, a->n_late, LATE_MOST, sizeof *a->late))
        return false;
    a->late[a->n_late++] = *launch;
    return true;
}

static void take_late(struct occ_attribution *a, bool final)
{
    size_t kept = 0;
    for (size_t i = 0; i < a->n_late; i++) {
        const struct occ_attribution_launch launch = a->late[i];
        struct occ_attribution_value value = {.tag = launch.tag,
                                              .shape = launch.key.shape,
                                              .start_ns = launch.start_ns,
                                              .end_ns = launch.end_ns};
        bool joined = a->joined_ns != INT64_MIN && launch.end_ns <= a->joined_ns - OCC_OFFSET_MAX_NS;
        bool given_up = launch.end_ns <= a->advanced_ns - a->options.watermark_ns && a->n_samples == 0;
        if (!joined && !given_up && !final)
            a->late[kept++] = launch;
        else if (!occ_direct_lookup(a, &launch, &value.measured) || !occ_attribution_put(a, &value))
            a->stats.late_launches++;
    }
    a->n_late = kept;
}

int occ_attribution_launch(struct occ_attribution *a, const struct occ_attribution_launch *launch,
                           struct occ_error *err)
{
    struct occ_overlap_launch own = {
        .start_ns = launch->start_ns, .end_ns = launch->end_ns, .tag = launch->tag, .direct = OCC_NO_DIRECT};
    if (launch->start_ns < 0 || launch->end_ns <= launch->start_ns)
        return occ_fail(err, OCC_E_INVALID, "a launch that ends before it starts");
    if (launch->start_ns < a->advanced_ns)
        return put_late(a, launch) ? 0 : occ_fail(err, OCC_E_FULL, "too many launches come late");
    if (launch->end_ns - launch->start_ns > LONGEST_NS)
        return occ_fail(err, OCC_E_INVALID, "a launch that was reported before it ended");
    if (a->n_launches > 0 && launch->start_ns < a->launches[a->n_launches - 1].start_ns)
        return occ_fail(err, OCC_E_INVALID, "launches are not in order of their start");
    if (!occ_grow((void **)&a->launches, &a->launches_allocated, a->n_launches, a->options.max_launches,
                  sizeof *a->launches)) {
        a->stats.dropped_launches++;
        return occ_fail(err, OCC_E_FULL, "too many launches wait for their samples");
    }
    own.key = occ_keys_put(&a->keys, &launch->key, 0);
    if (own.key == OCC_MAP_NONE)
        return occ_fail(err, OCC_E_FULL, "too many kernels");
    note_overlap(a, &own);
    a->keys.keys[own.key].waiting++;
    a->launches[a->n_launches++] = own;
    return 0;
}

static bool is_sound(const struct occ_attribution *a, const struct occ_sample *sample)
{
    double cycles = sample->value[OCC_COUNTER_ELAPSED];
    return sample->start_ns >= 0 && sample->end_ns > sample->start_ns &&
           sample->end_ns - sample->start_ns <= LONGEST_NS &&
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
    if (!occ_grow((void **)&a->samples, &a->samples_allocated, a->n_samples, SAMPLES_MOST,
                  sizeof *a->samples)) {
        if (a->n_samples < SAMPLES_MOST)
            return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
        a->stats.dropped_samples++;
        return 0;
    }
    double length = (double)(sample->end_ns - sample->start_ns);
    if (isfinite(sample->value[OCC_COUNTER_ELAPSED]))
        a->cycles_per_ns = sample->value[OCC_COUNTER_ELAPSED] / length;
    a->interval_ns = a->interval_ns > 0 ? a->interval_ns + (length - a->interval_ns) / 16 : length;
    a->stats.bad_samples += !occ_join_is_possible(a, sample);
    a->samples[a->n_samples++] = *sample;
    return 0;
}

/* ---- estimating ---- */

/* What keys add up themselves is forgotten as their rows are. */
static void forget(struct occ_attribution *a)
{
    double keep = exp2(-(double)a->rows_since / a->options.half_life_samples);
    for (uint32_t i = 0; i < a->keys.n; i++) {
        struct occ_key *key = &a->keys.keys[i];
        double *const sums[] = {&key->launches, &key->launch_ns, &key->misfit,
                                &key->evidence, &key->imbalance, &key->imbalance_ns};
        for (size_t k = 0; k < sizeof sums / sizeof *sums; k++)
            *sums[k] *= keep;
        for (int k = 0; k < 2 * OCC_PHASES; k++) {
            key->phase[k] *= keep;
            key->phase_rows[k] *= keep;
        }
    }
}

static int estimate(struct occ_attribution *a, struct occ_error *err)
{
    uint32_t columns = 0;
    int status = occ_keys_estimate(&a->keys, &a->noise, &columns, err);
    forget(a);
    a->since_estimate_ns = 0;
    a->rows_since = 0;
    a->estimated = true;
    a->estimated_rows = a->keys.rows;
    double block = columns < OCC_NORMAL_BLOCK ? columns : OCC_NORMAL_BLOCK;
    a->estimate_cost_ns = block * block * columns * SOLVE_NS;
    return status;
}

/* As often as the budget allows, which is larger whenever twice as much is known: at first. */
static bool is_due(const struct occ_attribution *a)
{
    double share = a->keys.rows > 2 * a->estimated_rows ? SOLVE_SHARE_EARLY : SOLVE_SHARE;
    return !a->estimated || a->since_estimate_ns * share > a->estimate_cost_ns;
}

/* ---- settling ---- */

bool occ_attribution_put(struct occ_attribution *a, const struct occ_attribution_value *value)
{
    if (!occ_grow((void **)&a->values, &a->values_allocated, a->n_values, 2 * a->options.max_launches + 1,
                  sizeof *a->values))
        return false;
    a->values[a->n_values++] = *value;
    return true;
}

static struct occ_measured value_of(struct occ_attribution *a, const struct occ_overlap_launch *l)
{
    const struct occ_key *key = &a->keys.keys[l->key];
    struct occ_measured value = OCC_NOT_MEASURED;
    if (occ_direct_report(a, l, &value) || !l->covered || key->measured.source == OCC_ATTRIBUTION_NONE)
        return value;
    value = key->measured;
    /* kernels do not do any more what they did: until that is learned, values are as wrong as their sum */
    double wrong = a->counted > 0 ? fabs(a->unexplained / a->counted) : 0;
    if (wrong > WRONG_SUM) {
        value.elapsed_se = hypot(value.elapsed_se, wrong * value.elapsed);
        value.achieved_se = hypot(value.achieved_se, wrong * value.achieved);
    }
    return value;
}

static void let_go(struct occ_attribution *a, const struct occ_overlap_launch *l)
{
    a->keys.keys[l->key].waiting--;
    occ_direct_release(a, l->direct);
}

/* Launches whose samples are joined, or for which none will come, get their value and leave. */
static int settle(struct occ_attribution *a, bool final, struct occ_error *err)
{
    size_t kept = 0, busy = SIZE_MAX;
    int64_t joined = a->joined_ns == INT64_MIN ? INT64_MIN : a->joined_ns - OCC_OFFSET_MAX_NS;
    int64_t given_up = a->n_samples > 0 ? INT64_MIN : a->advanced_ns - a->options.watermark_ns;
    int status = 0;
    for (size_t i = 0; i < a->n_launches; i++) {
        const struct occ_overlap_launch *l = &a->launches[i];
        if (status == 0 && (final || l->end_ns <= joined || l->end_ns <= given_up)) {
            const struct occ_attribution_value value = {.tag = l->tag,
                                                        .shape = a->keys.keys[l->key].model.shape,
                                                        .start_ns = l->start_ns,
                                                        .end_ns = l->end_ns,
                                                        .measured = value_of(a, l)};
            status = occ_attribution_put(a, &value) ? 0 : occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
            let_go(a, l);
            continue;
        }
        if (i == a->busy_launch)
            busy = kept;
        if (kept != i)
            a->launches[kept] = a->launches[i];
        kept++;
    }
    a->n_launches = kept;
    a->busy_launch = busy;
    return status;
}

/* ---- blocks ---- */

static int process_block(struct occ_attribution *a, size_t n, struct occ_error *err)
{
    int status = 0;
    find_sides(a, a->samples[n - 1].end_ns + OCC_OFFSET_MAX_NS);
    if (a->begun) {
        occ_offset_follow(a, n);
    } else if (occ_offset_rows(a, n) >= OCC_BEGIN_ROWS) {
        status = occ_offset_find(a, n, err);
        a->begun = a->estimated = true;
    }
    if (status == 0)
        status = occ_join_block(a, n, err);
    a->joined_ns = a->samples[n - 1].end_ns;
    a->since_estimate_ns += (double)(a->joined_ns - a->samples[0].start_ns);
    a->n_samples -= n;
    memmove(a->samples, a->samples + n, a->n_samples * sizeof *a->samples);
    return status;
}

/* Samples whose launches are all here; 0 while waiting for more pays. */
static size_t next_block(const struct occ_attribution *a, bool final)
{
    size_t n = 0;
    while (n < a->n_samples && n < OCC_BLOCK_SAMPLES &&
           a->samples[n].end_ns <= a->advanced_ns - OCC_OFFSET_MAX_NS)
        n++;
    bool enough = (n > 0 && a->samples[n - 1].end_ns <= a->advanced_ns - a->options.watermark_ns) ||
                  n == OCC_BLOCK_SAMPLES ||
                  (n > 0 && a->samples[n - 1].end_ns - a->samples[0].start_ns >= BLOCK_NS);
    return final || enough ? n : 0;
}

int occ_attribution_advance(struct occ_attribution *a, int64_t until_ns, bool final, struct occ_error *err)
{
    int status = 0;
    if (until_ns > a->advanced_ns)
        a->advanced_ns = until_ns;
    for (size_t n; status == 0 && (n = next_block(a, final)) > 0;) {
        status = process_block(a, n, err);
        bool last = next_block(a, final) == 0;
        if (status == 0 && (is_due(a) || (final && last)))
            status = estimate(a, err);
        if (status == 0)
            status = settle(a, false, err);
    }
    take_late(a, final);
    bool idle = a->n_samples == 0 && a->advanced_ns - a->settled_ns > SETTLE_NS; /* none may come any more */
    if (status != 0 || !(final || idle))
        return status;
    a->settled_ns = a->advanced_ns;
    return settle(a, final, err);
}

void occ_attribution_restart(struct occ_attribution *a)
{
    occ_keys_forget(&a->keys);
    memset(a->keys.knows, 0, sizeof a->keys.knows);
}

/* ---- out ---- */

size_t occ_attribution_take(struct occ_attribution *a, struct occ_attribution_value *values, size_t max)
{
    size_t n = a->n_values - a->values_taken;
    n = n < max ? n : max;
    if (n > 0)
        memcpy(values, a->values + a->values_taken, n * sizeof *values);
    a->values_taken += n;
    if (a->values_taken == a->n_values)
        a->values_taken = a->n_values = 0;
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
    double ratio[OCC_RHS_COUNT];
    occ_join_ratios(a, sample, ratio);
    *ret = (struct occ_measured){
        .elapsed = ratio[OCC_RHS_WARPS],
        .sm_active = ratio[OCC_RHS_ACTIVE],
        .blocks = ratio[OCC_RHS_ACTIVE] > 0 ? ratio[OCC_RHS_BLOCKS] / ratio[OCC_RHS_ACTIVE] : NAN};
    memcpy(ret->stall, ratio + OCC_RHS_STALLS, sizeof ret->stall);
}

void occ_attribution_ask(const struct occ_attribution *a, uint64_t shape, uint64_t graph_node,
                         struct occ_measured *ret_measured)
{
    const struct occ_key *found = NULL;
    for (uint32_t i = 0; i < a->keys.n; i++) {
        const struct occ_key *key = &a->keys.keys[i];
        if (key->taken && key->model.shape == shape && key->model.graph_node == graph_node &&
            (!found || key->launch_ns > found->launch_ns))
            found = key;
    }
    *ret_measured = found ? found->measured : OCC_NOT_MEASURED;
}

void occ_attribution_get_stats(const struct occ_attribution *a, struct occ_attribution_stats *ret_stats)
{
    *ret_stats = a->stats;
    ret_stats->offset_ns = a->clock.known ? llround(a->clock.offset_ns) : 0;
    ret_stats->drift_ppm = a->clock.drift * 1e6;
    ret_stats->residual_ratio = a->counted > 0 ? a->unexplained / a->counted : NAN;
    ret_stats->waiting = a->n_launches + a->n_late;
    ret_stats->keys = a->keys.n;
    ret_stats->keys_refused = a->keys.refused;
}
