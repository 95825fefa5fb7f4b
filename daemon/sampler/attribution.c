/*
 * Attribution of device-wide samples to launches; see attribution.h. Launches and samples wait in two queues in order of
 * time. When advance() says that all launches up to a time are here, samples up to it are taken in blocks:
 *
 *   clock    the offset between the two clocks is measured on the block (clock_fit.h) ...
 *   join     ... each sample becomes a row: how much of it each key had (overlap.h), what was counted (normal.h)
 *   read     launches that last several samples are read from them, less what others had of their first and last
 *   estimate every now and then the equations are solved (estimate.c)
 *   settle   launches that ended get their value and leave
 *
 * Until enough rows are there to know the offset, samples wait.
 */
#include "attribution.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock_fit.h"
#include "keys.h"

#define KEYS_MOST     8192
#define LAUNCHES_MOST 262144
#define SAMPLES_MOST  262144
#define HALF_LIFE     30000.0
#define WATERMARK_NS  INT64_C(2000000000)
#define BLOCK_SAMPLES 2048
#define BLOCK_NS      INT64_C(1000000000)
#define OFFSET_MOST_NS                                                                                       \
    INT64_C(64000)              /* two processes, each some 16 us beside the GPU's clock, and as much again */
#define FIRST_STEP_NS    8000.0 /* of the first search */
#define BEGIN_ROWS       64     /* that a first search needs */
#define DIRECT_INTERVALS 3
#define DIRECT_COVERED   0.9
#define OVERLAPPED       0.1
#define HUBER            4.0 /* standard deviations, beyond which a row counts less */
#define CLASSES          40  /* of samples: powers of 2 of their length in ns */
#define FIRST_VARIANCE   (0.02 * 0.02)
#define NOISE_MEMORY     2000.0 /* rows over which residuals are averaged */
#define JUMPED           3.0    /* times the usual residuals: look for another offset */
#define SOLVE_NS         2.0    /* cost of one multiplication of solving, and ... */
#define SOLVE_SHARE      0.004  /* ... how much of the time it may take */
#define PRIOR_SD         0.35   /* of what others are thought to have before anything is estimated */
#define JITTER_MOST_NS   700.0
#define NO_DIRECT        UINT32_MAX

/* Sums of value x ns of a launch that is read directly. */
struct direct {
    double sum[OCC_RHS_COUNT], ns[OCC_RHS_COUNT], error; /* error: of sum[WARPS], squared */
    double imbalance, imbalance_ns;
    uint32_t samples, next_free;
};

struct noise_class {
    double variance, rows;
};

/* The row that is being made: launches of a sample, added up by key. */
struct row {
    uint32_t n;
    uint32_t key[OCC_OVERLAP_PARTS];
    double share[OCC_OVERLAP_PARTS][OCC_COURSES];
    double edges[OCC_OVERLAP_PARTS]; /* starts and ends of its launches in the sample */
};

struct occ_attribution {
    struct occ_attribution_options options;
    struct occ_keys keys;
    struct occ_clock_fit clock;
    struct occ_overlap_launch *launches;
    size_t n_launches, launches_allocated;
    struct occ_sample *samples;
    size_t n_samples, samples_allocated;
    struct direct *direct;
    uint32_t n_direct, direct_allocated, free_direct;
    struct occ_attribution_value *values; /* settled, not taken */
    size_t n_values, values_allocated, values_taken;
    int64_t advanced_ns;   /* launches before this are all here */
    int64_t busy_until_ns; /* latest end of the launches so far ... */
    size_t busy_launch;    /* ... whose it is; SIZE_MAX: gone */
    int64_t joined_ns;     /* end of the samples that are joined */
    double cycles_per_ns;  /* 0: not known */
    double interval_ns;    /* of late */
    struct noise_class classes[CLASSES];
    struct occ_noise noise;
    double noise_rows;
    double squares[5]; /* of late, of q q, q n, n n, q r, n r: n what was counted, squared; q, r: see note_jitter() */
    double unexplained, counted; /* of late; warp-time */
    double since_estimate_ns, estimate_cost_ns;
    bool begun, estimated;
    uint64_t rows_since;
    struct occ_attribution_stats stats;
    uint32_t active[OCC_OVERLAP_PARTS];
    struct occ_overlap_part parts[OCC_OVERLAP_PARTS];
    struct row row;
    uint32_t stamp;
};

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
    a->free_direct = NO_DIRECT;
    a->busy_launch = SIZE_MAX;
    a->advanced_ns = a->joined_ns = INT64_MIN;
    a->noise.warps = a->noise.active = 1;
    for (int i = 0; i < CLASSES; i++)
        a->classes[i].variance = FIRST_VARIANCE;
    int status = occ_keys_open(&a->keys, &a->options, err);
    if (status != 0)
        free(a);
    else
        *ret_attribution = a;
    return status;
}

void occ_attribution_free(struct occ_attribution *a)
{
    if (!a)
        return;
    occ_keys_close(&a->keys);
    free(a->launches);
    free(a->samples);
    free(a->direct);
    free(a->values);
    free(a);
}

static bool grow(void **items, size_t *allocated, size_t n, size_t most, size_t size)
{
    if (n < *allocated)
        return true;
    size_t more = *allocated ? *allocated * 2 : 256;
    more = more < most ? more : most;
    void *moved = more > n ? realloc(*items, more * size) : NULL;
    if (!moved)
        return false;
    *items = moved;
    *allocated = more;
    return true;
}

/* ---- in ---- */

/* How long it runs beside what came before it, for both. */
static void note_overlap(struct occ_attribution *a, struct occ_overlap_launch *launch)
{
    if (launch->start_ns < a->busy_until_ns) {
        int64_t end = launch->end_ns < a->busy_until_ns ? launch->end_ns : a->busy_until_ns;
        launch->beside_ns = end - launch->start_ns;
        if (a->busy_launch < a->n_launches) {
            struct occ_overlap_launch *other = &a->launches[a->busy_launch];
            other->beside_ns += launch->beside_ns;
            a->keys.keys[other->key].beside_ns += (double)launch->beside_ns;
        }
    }
    if (launch->end_ns > a->busy_until_ns) {
        a->busy_until_ns = launch->end_ns;
        a->busy_launch = a->n_launches;
    }
}

static void use_key(struct occ_attribution *a, const struct occ_overlap_launch *launch)
{
    struct occ_key *key = &a->keys.keys[launch->key];
    double duration = (double)(launch->end_ns - launch->start_ns);
    key->used = a->keys.rows;
    key->waiting++;
    key->launches++;
    key->launch_ns += duration;
    key->beside_ns += (double)launch->beside_ns;
    if (a->interval_ns > 0)
        occ_keys_widen(&a->keys, key, duration / a->interval_ns);
}

int occ_attribution_launch(struct occ_attribution *a, const struct occ_attribution_launch *launch,
                           struct occ_error *err)
{
    struct occ_overlap_launch own = {
        .start_ns = launch->start_ns, .end_ns = launch->end_ns, .tag = launch->tag, .direct = NO_DIRECT};
    if (launch->start_ns < 0 || launch->end_ns <= launch->start_ns)
        return occ_fail(err, OCC_E_INVALID, "a launch that ends before it starts");
    if (launch->start_ns < a->advanced_ns) {
        a->stats.late_launches++;
        return occ_fail(err, OCC_E_INVALID, "a launch that comes after its samples were joined");
    }
    if (a->n_launches > 0 && launch->start_ns < a->launches[a->n_launches - 1].start_ns)
        return occ_fail(err, OCC_E_INVALID, "launches are not in order of their start");
    if (!grow((void **)&a->launches, &a->launches_allocated, a->n_launches, a->options.max_launches,
              sizeof *a->launches)) {
        a->stats.dropped_launches++;
        return occ_fail(err, OCC_E_FULL, "too many launches wait for their samples");
    }
    own.key = occ_keys_put(&a->keys, &launch->key);
    if (own.key == OCC_MAP_NONE)
        return occ_fail(err, OCC_E_FULL, "too many kernels");
    note_overlap(a, &own);
    use_key(a, &own);
    a->launches[a->n_launches++] = own;
    return 0;
}

static bool is_sound(const struct occ_attribution *a, const struct occ_sample *sample)
{
    double cycles = sample->value[OCC_COUNTER_ELAPSED];
    return sample->start_ns >= 0 && sample->end_ns > sample->start_ns &&
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
    if (!grow((void **)&a->samples, &a->samples_allocated, a->n_samples, SAMPLES_MOST, sizeof *a->samples)) {
        if (a->n_samples < SAMPLES_MOST)
            return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
        a->stats.dropped_samples++;
        return 0;
    }
    double length = (double)(sample->end_ns - sample->start_ns);
    if (isfinite(sample->value[OCC_COUNTER_ELAPSED]))
        a->cycles_per_ns = sample->value[OCC_COUNTER_ELAPSED] / length;
    a->interval_ns = a->interval_ns > 0 ? a->interval_ns + (length - a->interval_ns) / 16 : length;
    a->samples[a->n_samples++] = *sample;
    return 0;
}

/* ---- samples ---- */

/* What the sample counted, as the ratios that are regressed; NaN where it did not. */
static void ratios_of(const struct occ_attribution *a, const struct occ_sample *sample, double *ret)
{
    const double sms = a->options.sm_count, warps = a->options.max_warps_per_sm;
    double cycles = sample->value[OCC_COUNTER_ELAPSED];
    if (!isfinite(cycles))
        cycles = a->cycles_per_ns * (double)(sample->end_ns - sample->start_ns);
    ret[OCC_RHS_WARPS] = sample->value[OCC_COUNTER_WARPS] / (sms * warps * cycles);
    ret[OCC_RHS_ACTIVE] = sample->value[OCC_COUNTER_ACTIVE] / (sms * cycles);
    ret[OCC_RHS_BLOCKS] = sample->value[OCC_COUNTER_BLOCKS] / (sms * cycles);
    for (int i = 0; i < 5; i++) /* counted by TPC: two SMs */
        ret[OCC_RHS_STALLS + i] = sample->value[OCC_COUNTER_STALL_REGISTERS + i] / (sms / 2 * cycles);
}

static struct noise_class *class_of(struct occ_attribution *a, const struct occ_sample *sample)
{
    int power = ilogb((double)(sample->end_ns - sample->start_ns));
    return &a->classes[power < CLASSES ? power : CLASSES - 1];
}

static const struct occ_overlap_course *course_of(const void *context, uint32_t key)
{
    const struct occ_keys *keys = context;
    return &keys->keys[key].course;
}

static void begin_walk(struct occ_attribution *a, struct occ_overlap *walk)
{
    *walk = (struct occ_overlap){.launches = a->launches,
                                 .n = a->n_launches,
                                 .course = course_of,
                                 .context = &a->keys,
                                 .active = a->active};
}

/* The launches of a sample if the clocks were `offset_ns` apart. */
static size_t walk_to(struct occ_attribution *a, struct occ_overlap *walk, const struct occ_sample *sample,
                      double offset_ns)
{
    double length = (double)(sample->end_ns - sample->start_ns);
    return occ_overlap_next(walk, -offset_ns, length - offset_ns, sample->start_ns, a->parts);
}

static void make_row(struct occ_attribution *a, size_t n_parts)
{
    struct row *row = &a->row;
    row->n = 0;
    a->stamp++;
    for (size_t i = 0; i < n_parts; i++) {
        const struct occ_overlap_part *part = &a->parts[i];
        uint32_t at = a->launches[part->launch].key;
        struct occ_key *key = &a->keys.keys[at];
        if (key->stamp != a->stamp) {
            key->stamp = a->stamp;
            key->row = row->n;
            row->key[row->n] = at;
            row->edges[row->n] = 0;
            memset(row->share[row->n++], 0, sizeof row->share[0]);
        }
        row->edges[key->row] += (part->at_start < 0) + (part->at_end < 0);
        double *share = row->share[key->row];
        for (uint32_t f = 0; f < key->course.n; f++)
            share[f] += part->share[f];
    }
}

/* What the keys' present values make of the row. */
static double predict(const struct occ_attribution *a, enum occ_rhs rhs)
{
    double sum = 0;
    for (uint32_t i = 0; i < a->row.n; i++) {
        const struct occ_key *key = &a->keys.keys[a->row.key[i]];
        for (uint32_t f = 0; f < key->course.n; f++)
            sum += a->row.share[i][f] * occ_keys_value(&a->keys, key, rhs, f);
    }
    return sum;
}

/* Occupancy at a launch's u. */
static double level_at(const struct occ_attribution *a, uint32_t launch, double u)
{
    const struct occ_key *key = &a->keys.keys[a->launches[launch].key];
    double sum = 0;
    for (uint32_t f = 0; f < key->course.n && u >= 0; f++)
        sum += occ_keys_value(&a->keys, key, OCC_RHS_WARPS, f) * occ_overlap_course_at(&key->course, f, u);
    return sum;
}

/* How the prediction changes with the offset: occupancy at the sample's start less that at its end, by its length. */
static double gradient_of(const struct occ_attribution *a, size_t n_parts, double length)
{
    double sum = 0;
    for (size_t i = 0; i < n_parts; i++)
        sum += level_at(a, a->parts[i].launch, a->parts[i].at_start) -
               level_at(a, a->parts[i].launch, a->parts[i].at_end);
    return sum / length;
}

/* The row as entries of the equations, the first `functions` of each course; more than fit: 0. */
static size_t entries_of(const struct occ_attribution *a, struct occ_normal_entry *entries, uint32_t functions,
                         double length)
{
    size_t n = 0;
    for (uint32_t i = 0; i < a->row.n; i++) {
        const struct occ_key *key = &a->keys.keys[a->row.key[i]];
        for (uint32_t f = 0; f < key->course.n && f < functions; f++) {
            if (a->row.share[i][f] == 0)
                continue;
            if (n == OCC_NORMAL_ROW)
                return 0;
            entries[n++] = (struct occ_normal_entry){key->column[f], a->row.share[i][f],
                                                     f == 0 ? a->row.edges[i] / (length * length) : 0};
        }
    }
    return n;
}

/* ---- clock ---- */

struct fit {
    double squares, rows;    /* of residuals in units of their class; rows that have launches */
    double slope, curvature; /* of the offset's effect */
};

/* Residuals of the samples [0, n) if the offset differed by `shift_ns` from the filter's. */
static struct fit fit_at(struct occ_attribution *a, size_t n, double shift_ns)
{
    struct fit fit = {0};
    struct occ_overlap walk;
    begin_walk(a, &walk);
    for (size_t i = 0; i < n; i++) {
        const struct occ_sample *s = &a->samples[i];
        double ratio[OCC_RHS_COUNT], offset = occ_clock_fit_offset(&a->clock, s->start_ns) + shift_ns;
        size_t n_parts = walk_to(a, &walk, s, offset);
        ratios_of(a, s, ratio);
        if (n_parts == 0 || !isfinite(ratio[OCC_RHS_WARPS]))
            continue;
        make_row(a, n_parts);
        double residual = ratio[OCC_RHS_WARPS] - predict(a, OCC_RHS_WARPS);
        double gradient = gradient_of(a, n_parts, (double)(s->end_ns - s->start_ns));
        double weight = 1 / class_of(a, s)->variance;
        double robust = fmin(1, HUBER / (fabs(residual) * sqrt(weight) + 1e-12));
        fit.squares += residual * residual * weight * robust;
        fit.slope += residual * gradient * weight * robust;
        fit.curvature += gradient * gradient * weight * robust;
        fit.rows++;
    }
    return fit;
}

/* Regresses on these samples alone, at one offset, the first `functions` of each course. */
static int regress_at(struct occ_attribution *a, size_t n, double shift_ns, uint32_t functions,
                      struct occ_error *err)
{
    struct occ_normal_entry entries[OCC_NORMAL_ROW];
    struct occ_overlap walk;
    uint32_t columns = 0;
    occ_keys_forget(&a->keys);
    begin_walk(a, &walk);
    for (size_t i = 0; i < n; i++) {
        double ratio[OCC_RHS_COUNT];
        size_t n_parts = walk_to(a, &walk, &a->samples[i], shift_ns);
        ratios_of(a, &a->samples[i], ratio);
        if (n_parts == 0 || !isfinite(ratio[OCC_RHS_WARPS]))
            continue;
        make_row(a, n_parts);
        size_t n_entries = entries_of(a, entries, functions, (double)(a->samples[i].end_ns - a->samples[i].start_ns));
        int status = n_entries ? occ_normal_add(a->keys.normal[OCC_SYSTEM_WARPS], entries, n_entries,
                                                1 / class_of(a, &a->samples[i])->variance, ratio, err)
                               : 0;
        if (status != 0 && status != OCC_E_FULL)
            return status;
    }
    return occ_keys_estimate(&a->keys, &a->noise, &columns, err);
}

/* Moves the offset downhill from where it is. */
static void refine(struct occ_attribution *a, size_t n, double *shift_ns, double *ret_variance)
{
    for (int round = 0; round < 3; round++) {
        struct fit fit = fit_at(a, n, *shift_ns);
        if (!(fit.curvature > 0))
            return;
        double step = fit.slope / fit.curvature, most = FIRST_STEP_NS;
        *shift_ns += fmin(fmax(step, -most), most);
        *ret_variance = fmax(fit.squares / fmax(fit.rows, 1), 1) / fit.curvature;
    }
}

static size_t rows_with_launches(struct occ_attribution *a, size_t n)
{
    return (size_t)fit_at(a, n, 0).rows;
}

/* The first offset: the one at which a regression on these samples alone leaves least. */
static int find_offset(struct occ_attribution *a, size_t n, struct occ_error *err)
{
    double best = 0, least = INFINITY, variance = INFINITY;
    int steps = (int)((double)OFFSET_MOST_NS / FIRST_STEP_NS), status = 0;
    occ_clock_fit_begin(&a->clock);
    for (int i = -steps; i <= steps && status == 0; i++) {
        double shift = i * FIRST_STEP_NS;
        status = regress_at(a, n, shift, 1, err);
        double squares = fit_at(a, n, shift).squares;
        if (squares < least) {
            least = squares;
            best = shift;
        }
    }
    for (int round = 0; round < 2 && status == 0; round++) {
        status = regress_at(a, n, best, OCC_COURSES, err);
        refine(a, n, &best, &variance);
    }
    if (status == 0)
        occ_clock_fit_update(&a->clock, a->samples[n / 2].start_ns, best, fmax(variance, 1e4));
    occ_keys_forget(&a->keys); /* the values stay, to begin with */
    return status;
}

/* Follows the offset; where it has jumped, looks for it anew. */
static void follow_offset(struct occ_attribution *a, size_t n)
{
    double shift = 0;
    struct fit fit = fit_at(a, n, 0);
    if (fit.rows < BEGIN_ROWS)
        return;
    if (fit.squares / fit.rows > JUMPED * a->noise.warps) {
        double least = fit.squares;
        for (double at = -(double)OFFSET_MOST_NS; at <= (double)OFFSET_MOST_NS; at += FIRST_STEP_NS) {
            double squares = fit_at(a, n, at).squares;
            if (squares < least) {
                least = squares;
                shift = at;
            }
        }
    }
    if (shift != 0)
        fit = fit_at(a, n, shift);
    if (!(fit.curvature > 0))
        return;
    shift += fmin(fmax(fit.slope / fit.curvature, -FIRST_STEP_NS), FIRST_STEP_NS);
    double variance = fmax(fit.squares / fit.rows, 1) / fit.curvature;
    if (fabs(shift) > FIRST_STEP_NS)
        occ_clock_fit_begin(&a->clock); /* another offset, not a drift */
    else
        shift += occ_clock_fit_offset(&a->clock, a->samples[n / 2].start_ns);
    occ_clock_fit_update(&a->clock, a->samples[n / 2].start_ns, shift, variance * 2 + 1e4);
}

/* ---- launches that are read directly ---- */

static uint32_t take_direct(struct occ_attribution *a)
{
    uint32_t at = a->free_direct;
    if (at != NO_DIRECT) {
        a->free_direct = a->direct[at].next_free;
    } else {
        size_t allocated = a->direct_allocated;
        if (!grow((void **)&a->direct, &allocated, a->n_direct, a->options.max_launches, sizeof *a->direct))
            return NO_DIRECT;
        a->direct_allocated = (uint32_t)allocated;
        at = a->n_direct++;
    }
    a->direct[at] = (struct direct){.next_free = NO_DIRECT};
    return at;
}

/* Adds one sample to a launch: what was counted, less what the others had of it. */
static void read_direct(struct occ_attribution *a, const struct occ_sample *sample, const double *ratio,
                        const double *predicted, const struct occ_overlap_part *part)
{
    struct occ_overlap_launch *l = &a->launches[part->launch];
    double length = (double)(sample->end_ns - sample->start_ns);
    if ((double)(l->end_ns - l->start_ns) < DIRECT_INTERVALS * length)
        return;
    if (l->direct == NO_DIRECT)
        l->direct = take_direct(a);
    if (l->direct == NO_DIRECT)
        return;
    struct direct *d = &a->direct[l->direct];
    const struct occ_key *key = &a->keys.keys[l->key];
    for (int r = 0; r < OCC_RHS_COUNT; r++) {
        double own = 0;
        for (uint32_t f = 0; f < key->course.n; f++)
            own += part->share[f] * occ_keys_value(&a->keys, key, (enum occ_rhs)r, f);
        if (!isfinite(ratio[r]))
            continue;
        d->sum[r] += (ratio[r] - (predicted[r] - own)) * length;
        d->ns[r] += part->time_share * length;
    }
    if (isfinite(ratio[OCC_RHS_WARPS])) {
        double others = predicted[OCC_RHS_WARPS],
               guess = a->estimated ? 0 : PRIOR_SD * others * length;
        d->error += class_of(a, sample)->variance * a->noise.warps * length * length + guess * guess;
    }
    double least = sample->value[OCC_COUNTER_ACTIVE_MIN], most = sample->value[OCC_COUNTER_ACTIVE_MAX];
    if (part->time_share > 0.999 && isfinite(least) && most > 0) {
        d->imbalance += (1 - least / most) * length;
        d->imbalance_ns += length;
    }
    d->samples++;
}

/* ---- joining ---- */

static void note_noise(struct occ_attribution *a, struct noise_class *class, double warps, double active)
{
    double variance = class->variance, keep = 1 - 1 / fmin(++class->rows, NOISE_MEMORY);
    double square = fmin(warps * warps, HUBER * HUBER * variance * (class->rows < 64 ? 1e6 : 1));
    class->variance = fmax(keep * variance + (1 - keep) * square, 1e-10);
    keep = 1 - 1 / fmin(++a->noise_rows, NOISE_MEMORY);
    double *const what[] = {&a->noise.warps, &a->noise.both, &a->noise.active};
    const double now[] = {warps * warps / variance, warps * active / variance, active * active / variance};
    for (int i = 0; i < 3 && isfinite(active); i++)
        *what[i] = keep * *what[i] + (1 - keep) * fmin(now[i], HUBER * HUBER);
}

/* How much launches' reported edges jitter, from how residuals grow with the edges in a sample: r^2 = counters' noise x n^2
 * + jitter x q, where q sums (occupancy / length)^2 over the edges. */
static void note_jitter(struct occ_attribution *a, double counted, double residual, double length)
{
    double q = 0, keep = 1 - 1 / fmin(a->noise_rows, NOISE_MEMORY * 8);
    for (uint32_t i = 0; i < a->row.n; i++) {
        double level = occ_keys_value(&a->keys, &a->keys.keys[a->row.key[i]], OCC_RHS_WARPS, 0) / length;
        q += a->row.edges[i] * level * level;
    }
    double n = counted * counted, r = residual * residual;
    const double now[5] = {q * q, q * n, n * n, q * r, n * r};
    for (int i = 0; i < 5; i++)
        a->squares[i] = keep * a->squares[i] + (1 - keep) * now[i];
    const double *s = a->squares;
    double determinant = s[0] * s[2] - s[1] * s[1];
    double jitter = determinant > 0 ? (s[3] * s[2] - s[4] * s[1]) / determinant : 0;
    a->noise.jitter = fmin(fmax(jitter, 0), JITTER_MOST_NS * JITTER_MOST_NS);
}

static void note_misfit(struct occ_attribution *a, double residual, double variance)
{
    for (uint32_t i = 0; i < a->row.n; i++) {
        struct occ_key *key = &a->keys.keys[a->row.key[i]];
        double share = a->row.share[i][0];
        key->evidence += share * share / variance;
        key->misfit += share * share * residual * residual / (variance * variance);
    }
}

/* Residuals that depend on where in a launch a sample begins or ends are no noise: the course is not the model's. */
static void note_phases(struct occ_attribution *a, size_t n_parts, double residual, double variance)
{
    double units = fmin(fmax(residual / sqrt(variance * a->noise.warps), -HUBER), HUBER);
    for (size_t i = 0; i < n_parts; i++) {
        const struct occ_overlap_part *part = &a->parts[i];
        struct occ_key *key = &a->keys.keys[a->launches[part->launch].key];
        const double at[2] = {part->at_start, part->at_end};
        for (int k = 0; k < 2; k++) {
            if (at[k] < 0)
                continue;
            int phase = k * OCC_PHASES + (int)fmin(at[k] * OCC_PHASES, OCC_PHASES - 1);
            key->phase[phase] += units;
            key->phase_rows[phase]++;
        }
    }
}

static void note_unexplained(struct occ_attribution *a, double counted, double residual, double length)
{
    double keep = exp(-length / 1e9);
    a->unexplained = a->unexplained * keep + residual * length;
    a->counted = a->counted * keep + counted * length;
}

static void mark_covered(struct occ_attribution *a, size_t n_parts)
{
    for (size_t i = 0; i < n_parts; i++)
        a->launches[a->parts[i].launch].covered = true;
}

static int join_sample(struct occ_attribution *a, const struct occ_sample *sample, size_t n_parts,
                       struct occ_error *err)
{
    struct occ_normal_entry entries[OCC_NORMAL_ROW];
    double ratio[OCC_RHS_COUNT], predicted[OCC_RHS_COUNT], length = (double)(sample->end_ns - sample->start_ns);
    ratios_of(a, sample, ratio);
    make_row(a, n_parts);
    for (int r = 0; r < OCC_RHS_COUNT; r++)
        predicted[r] = isfinite(ratio[r]) ? predict(a, (enum occ_rhs)r) : NAN;
    bool has_warps = isfinite(ratio[OCC_RHS_WARPS]);
    int system = has_warps ? OCC_SYSTEM_WARPS : OCC_SYSTEM_ROTATED;
    struct noise_class *class = class_of(a, sample);
    double residual = ratio[OCC_RHS_WARPS] - predicted[OCC_RHS_WARPS], variance = class->variance;
    double robust = 1;
    if (has_warps)
        note_unexplained(a, ratio[OCC_RHS_WARPS], residual, length);
    if (n_parts == 0)
        return 0;
    mark_covered(a, n_parts);
    for (size_t i = 0; i < n_parts; i++)
        read_direct(a, sample, ratio, predicted, &a->parts[i]);
    if (has_warps && a->estimated) {
        robust = fmin(1, HUBER * sqrt(variance * a->noise.warps) / (fabs(residual) + 1e-12));
        note_noise(a, class, residual, ratio[OCC_RHS_ACTIVE] - predicted[OCC_RHS_ACTIVE]);
        note_misfit(a, residual, variance);
        note_phases(a, n_parts, residual, variance);
        note_jitter(a, ratio[OCC_RHS_WARPS], residual, length);
    }
    for (int r = 0; r < OCC_RHS_COUNT; r++)
        a->keys.knows[system][r] |= isfinite(ratio[r]);
    size_t n = entries_of(a, entries, OCC_COURSES, length);
    int status = n ? occ_normal_add(a->keys.normal[system], entries, n, robust / variance, ratio, err) : 0;
    a->keys.rows++;
    a->rows_since++;
    return status == OCC_E_FULL ? 0 : status; /* what does not fit is not regressed */
}

static int join_block(struct occ_attribution *a, size_t n, struct occ_error *err)
{
    struct occ_overlap walk;
    int status = 0;
    begin_walk(a, &walk);
    for (size_t i = 0; i < n && status == 0; i++) {
        const struct occ_sample *s = &a->samples[i];
        size_t n_parts = walk_to(a, &walk, s, occ_clock_fit_offset(&a->clock, s->start_ns));
        status = join_sample(a, s, n_parts, err);
    }
    return status;
}

/* ---- estimating ---- */

/* What keys add up themselves is forgotten as their rows are. */
static void forget(struct occ_attribution *a)
{
    double keep = exp2(-(double)a->rows_since / a->options.half_life_samples);
    for (uint32_t i = 0; i < a->keys.n; i++) {
        struct occ_key *key = &a->keys.keys[i];
        double *const sums[] = {&key->launches,         &key->launch_ns,          &key->beside_ns,
                                &key->misfit,           &key->evidence,           &key->direct_ns,
                                &key->direct_square_ns, &key->direct_imbalance, &key->direct_imbalance_ns};
        for (size_t k = 0; k < sizeof sums / sizeof *sums; k++)
            *sums[k] *= keep;
        for (int r = 0; r < OCC_RHS_COUNT; r++) {
            key->direct[r] *= keep;
            key->direct_weight[r] *= keep;
        }
        key->direct_error *= keep;
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
    double block = columns < OCC_NORMAL_BLOCK ? columns : OCC_NORMAL_BLOCK;
    a->estimate_cost_ns = block * block * columns * SOLVE_NS;
    return status;
}

static bool is_due(const struct occ_attribution *a)
{
    return !a->estimated || a->since_estimate_ns * SOLVE_SHARE > a->estimate_cost_ns;
}

/* ---- settling ---- */

static bool put_value(struct occ_attribution *a, const struct occ_attribution_value *value)
{
    if (!grow((void **)&a->values, &a->values_allocated, a->n_values, a->options.max_launches,
              sizeof *a->values))
        return false;
    a->values[a->n_values++] = *value;
    return true;
}

/* Values of `sum` over the `ns` for which each was read. */
static void say_direct(const double *sum, const double *ns, struct occ_measured *out)
{
    double x = sum[OCC_RHS_WARPS] / ns[OCC_RHS_WARPS];
    double y = ns[OCC_RHS_ACTIVE] > 0 ? sum[OCC_RHS_ACTIVE] / ns[OCC_RHS_ACTIVE] : NAN;
    out->source = OCC_ATTRIBUTION_DIRECT;
    out->variance_inflation = 1;
    out->launches = 1;
    out->elapsed = fmin(fmax(x, 0), 1);
    out->sm_active = fmin(fmax(y, 0), 1);
    bool defined = y > 0 && x <= y * 1.001 && !out->overlapped;
    out->achieved = defined ? fmin(out->elapsed / y, 1) : NAN;
    out->achieved_se = defined ? out->elapsed_se / y : NAN;
    out->blocks = defined && ns[OCC_RHS_BLOCKS] > 0 ? sum[OCC_RHS_BLOCKS] / ns[OCC_RHS_BLOCKS] / y : NAN;
    for (int i = 0; i < 5; i++)
        out->stall[i] = ns[OCC_RHS_STALLS + i] > 0
                            ? fmin(fmax(sum[OCC_RHS_STALLS + i] / ns[OCC_RHS_STALLS + i], 0), 1)
                            : NAN;
}

static void credit_key(struct occ_key *key, const struct direct *d, double duration)
{
    for (int r = 0; r < OCC_RHS_COUNT; r++) {
        key->direct[r] += d->sum[r];
        key->direct_weight[r] += d->ns[r];
    }
    key->direct_ns += duration;
    key->direct_square_ns += duration * duration;
    key->direct_error += d->error;
    key->direct_imbalance += d->imbalance;
    key->direct_imbalance_ns += d->imbalance_ns;
}

static struct occ_measured value_of(struct occ_attribution *a, const struct occ_overlap_launch *l)
{
    struct occ_key *key = &a->keys.keys[l->key];
    double duration = (double)(l->end_ns - l->start_ns);
    bool overlapped = (double)l->beside_ns > OVERLAPPED * duration;
    struct occ_measured none = {.source = OCC_ATTRIBUTION_NONE, .achieved = NAN, .elapsed = NAN};
    if (l->direct != NO_DIRECT && !overlapped) {
        struct direct *d = &a->direct[l->direct];
        if (d->ns[OCC_RHS_WARPS] > DIRECT_COVERED * duration && d->samples >= DIRECT_INTERVALS) {
            struct occ_measured own = {.samples = d->samples, .elapsed_se = sqrt(d->error) / duration};
            own.imbalance = d->imbalance_ns > 0 ? d->imbalance / d->imbalance_ns : NAN;
            say_direct(d->sum, d->ns, &own);
            credit_key(key, d, duration);
            return own;
        }
    }
    return l->covered && key->measured.source != OCC_ATTRIBUTION_NONE ? key->measured : none;
}

static void let_go(struct occ_attribution *a, const struct occ_overlap_launch *l)
{
    a->keys.keys[l->key].waiting--;
    if (l->direct == NO_DIRECT)
        return;
    a->direct[l->direct].next_free = a->free_direct;
    a->free_direct = l->direct;
}

/* Launches whose samples are joined, or for which none will come, get their value and leave. */
static int settle(struct occ_attribution *a, bool final, struct occ_error *err)
{
    size_t kept = 0, busy = SIZE_MAX;
    int64_t joined = a->joined_ns == INT64_MIN ? INT64_MIN : a->joined_ns - OFFSET_MOST_NS;
    int64_t given_up = a->n_samples > 0 ? INT64_MIN : a->advanced_ns - a->options.watermark_ns;
    int status = 0;
    for (size_t i = 0; i < a->n_launches; i++) {
        const struct occ_overlap_launch *l = &a->launches[i];
        if (status == 0 && (final || l->end_ns <= joined || l->end_ns <= given_up)) {
            const struct occ_attribution_value value = {
                .tag = l->tag, .start_ns = l->start_ns, .end_ns = l->end_ns, .measured = value_of(a, l)};
            status = put_value(a, &value) ? 0 : occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
            let_go(a, l);
            continue;
        }
        if (i == a->busy_launch)
            busy = kept;
        a->launches[kept++] = a->launches[i];
    }
    a->n_launches = kept;
    a->busy_launch = busy;
    return status;
}

/* ---- blocks ---- */

static int process_block(struct occ_attribution *a, size_t n, struct occ_error *err)
{
    int status = 0;
    if (a->begun) {
        follow_offset(a, n);
    } else if (rows_with_launches(a, n) >= BEGIN_ROWS) {
        status = find_offset(a, n, err);
        a->begun = a->estimated = true;
    }
    if (status == 0)
        status = join_block(a, n, err);
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
    while (n < a->n_samples && n < BLOCK_SAMPLES && a->samples[n].end_ns + OFFSET_MOST_NS <= a->advanced_ns)
        n++;
    bool enough =
        n == BLOCK_SAMPLES || (n > 0 && a->samples[n - 1].end_ns - a->samples[0].start_ns >= BLOCK_NS);
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
    return status == 0 ? settle(a, final, err) : status;
}

/* ---- out ---- */

size_t occ_attribution_take(struct occ_attribution *a, struct occ_attribution_value *values, size_t max)
{
    size_t n = a->n_values - a->values_taken;
    n = n < max ? n : max;
    memcpy(values, a->values + a->values_taken, n * sizeof *values);
    a->values_taken += n;
    if (a->values_taken == a->n_values)
        a->values_taken = a->n_values = 0;
    return n;
}

void occ_attribution_ask(const struct occ_attribution *a, uint64_t shape, uint64_t graph_node,
                         struct occ_measured *ret_measured)
{
    uint32_t at = occ_keys_find(&a->keys, shape, graph_node);
    *ret_measured =
        at == OCC_MAP_NONE
            ? (struct occ_measured){.source = OCC_ATTRIBUTION_NONE, .achieved = NAN, .elapsed = NAN}
            : a->keys.keys[at].measured;
}

void occ_attribution_get_stats(const struct occ_attribution *a, struct occ_attribution_stats *ret_stats)
{
    *ret_stats = a->stats;
    ret_stats->offset_ns = a->clock.known ? llround(a->clock.offset_ns) : 0;
    ret_stats->drift_ppm = a->clock.drift * 1e6;
    ret_stats->residual_ratio = a->counted > 0 ? a->unexplained / a->counted : NAN;
    ret_stats->keys = a->keys.n;
    ret_stats->keys_refused = a->keys.refused;
}
