/*
 * Samples become rows of the equations: which launches ran, what was counted, and the residual. See state.h.
 * One thread.
 */
#include <math.h>
#include <string.h>

#include "state.h"

#define MOST_RATIO  1.05 /* what counters can say, with room for noise ... */
#define MOST_BLOCKS 64.0 /* ... and of blocks per SM */

/* ---- samples ---- */

static bool is_possible(int rhs, double ratio)
{
    return ratio >= 0 && ratio <= (rhs == OCC_RHS_BLOCKS ? MOST_BLOCKS : MOST_RATIO);
}

static void raw_ratios(const struct occ_attribution *a, const struct occ_sample *sample, double *ret)
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

bool occ_join_is_possible(const struct occ_attribution *a, const struct occ_sample *sample)
{
    double ratio[OCC_RHS_COUNT];
    bool possible = true;
    raw_ratios(a, sample, ratio);
    for (int r = 0; r < OCC_RHS_COUNT; r++)
        possible &= isnan(ratio[r]) || is_possible(r, ratio[r]);
    return possible;
}

void occ_join_ratios(const struct occ_attribution *a, const struct occ_sample *sample, double *ret)
{
    raw_ratios(a, sample, ret);
    for (int r = 0; r < OCC_RHS_COUNT; r++)
        ret[r] = is_possible(r, ret[r]) ? ret[r] : NAN;
}

static uint32_t functions_of(const void *context, uint32_t key)
{
    const struct occ_keys *keys = context;
    return keys->keys[key].functions;
}

void occ_join_begin(struct occ_attribution *a, struct occ_overlap *walk)
{
    *walk = (struct occ_overlap){.launches = a->launches,
                                 .n = a->n_launches,
                                 .functions = functions_of,
                                 .context = &a->keys,
                                 .active = a->active};
}

/* Adds the parts up by key. */
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
            memset(row->share[row->n++], 0, sizeof row->share[0]);
        }
        double *share = row->share[key->row];
        for (uint32_t f = 0; f < key->functions; f++)
            share[f] += part->share[f];
    }
}

size_t occ_join_row(struct occ_attribution *a, struct occ_overlap *walk, const struct occ_sample *sample,
                    double offset_ns)
{
    double length = (double)(sample->end_ns - sample->start_ns);
    size_t n = occ_overlap_next(walk, -offset_ns, length - offset_ns, sample->start_ns, a->parts);
    make_row(a, n);
    return n;
}

/* What the keys' present values make of the row. */
double occ_join_predict(const struct occ_attribution *a, enum occ_rhs rhs)
{
    double sum = 0;
    for (uint32_t i = 0; i < a->row.n; i++) {
        const struct occ_key *key = &a->keys.keys[a->row.key[i]];
        for (uint32_t f = 0; f < key->functions; f++)
            sum += a->row.share[i][f] * occ_keys_value(&a->keys, key, rhs, f);
    }
    return sum;
}

bool occ_join_residual(struct occ_attribution *a, struct occ_overlap *walk, const struct occ_sample *sample,
                       double offset_ns, struct occ_offset_row *ret_row)
{
    double ratio[OCC_RHS_COUNT];
    size_t n_parts = occ_join_row(a, walk, sample, offset_ns);
    occ_join_ratios(a, sample, ratio);
    if (n_parts == 0 || !isfinite(ratio[OCC_RHS_WARPS]))
        return false;
    double weight = 1 / occ_noise_variance(a, sample);
    double residual = ratio[OCC_RHS_WARPS] - occ_join_predict(a, OCC_RHS_WARPS);
    double robust = fmin(1, OCC_HUBER / (fabs(residual) * sqrt(weight) + 1e-12));
    *ret_row = (struct occ_offset_row){.residual = residual, .weight = weight * robust, .n_parts = n_parts};
    return true;
}

/* The row as entries of the equations; more than fit: 0. */
size_t occ_join_entries(const struct occ_attribution *a, struct occ_normal_entry *entries)
{
    size_t n = 0;
    for (uint32_t i = 0; i < a->row.n; i++) {
        const struct occ_key *key = &a->keys.keys[a->row.key[i]];
        for (uint32_t f = 0; f < key->functions; f++) {
            if (a->row.share[i][f] == 0)
                continue;
            if (n == OCC_NORMAL_ROW)
                return 0;
            entries[n++] = (struct occ_normal_entry){key->column[f], a->row.share[i][f]};
        }
    }
    return n;
}

/* ---- joining ---- */

static void note_unexplained(struct occ_attribution *a, double counted, double residual, double length)
{
    double keep = exp(-length / 1e9);
    a->unexplained = a->unexplained * keep + residual * length;
    a->counted = a->counted * keep + counted * length;
}

/* The second that ends; one that nobody takes for minutes is forgotten. */
static void end_second(struct occ_attribution *a)
{
    if (a->second_ns > 0 && a->n_seconds < OCC_SECONDS_MAX)
        a->seconds[a->n_seconds++] = (struct occ_attribution_second){
            .second = a->second, .unexplained = a->second_unexplained / a->second_ns};
    a->second_unexplained = a->second_ns = 0;
}

static void note_second(struct occ_attribution *a, int64_t start_ns, double residual, double length)
{
    int64_t second = start_ns / 1000000000;
    if (second != a->second)
        end_second(a);
    a->second = second;
    a->second_unexplained += residual * length;
    a->second_ns += length;
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
    double ratio[OCC_RHS_COUNT], predicted[OCC_RHS_COUNT],
        length = (double)(sample->end_ns - sample->start_ns);
    occ_join_ratios(a, sample, ratio);
    for (int r = 0; r < OCC_RHS_COUNT; r++)
        predicted[r] = isfinite(ratio[r]) ? occ_join_predict(a, (enum occ_rhs)r) : NAN;
    bool has_warps = isfinite(ratio[OCC_RHS_WARPS]);
    int system = has_warps ? OCC_SYSTEM_WARPS : OCC_SYSTEM_ROTATED;
    double residual = ratio[OCC_RHS_WARPS] - predicted[OCC_RHS_WARPS],
           variance = occ_noise_variance(a, sample);
    if (has_warps) {
        note_unexplained(a, ratio[OCC_RHS_WARPS], residual, length);
        note_second(a, sample->start_ns, n_parts == 0 || a->estimated ? residual : NAN, length);
    }
    occ_direct_push(a, sample, ratio, predicted, n_parts);
    if (n_parts == 0)
        return 0;
    mark_covered(a, n_parts);
    for (size_t i = 0; i < n_parts; i++)
        occ_direct_read(a, sample, ratio, predicted, &a->parts[i]);
    if (has_warps && a->estimated)
        occ_noise_note(a, sample, n_parts, ratio, predicted);
    bool lacks = false; /* what other rows of the system know: they must all know the same */
    for (int r = 0; r < OCC_RHS_COUNT; r++) {
        lacks |= a->keys.knows[system][r] && !isfinite(ratio[r]);
        a->keys.knows[system][r] |= isfinite(ratio[r]);
    }
    size_t n = lacks ? 0 : occ_join_entries(a, entries);
    int status = n ? occ_normal_add(a->keys.normal[system], entries, n, 1 / variance, ratio, err) : 0;
    a->keys.rows++;
    a->rows_since++;
    return status == OCC_E_FULL ? 0 : status; /* what does not fit is not regressed */
}

int occ_join_block(struct occ_attribution *a, size_t n, struct occ_error *err)
{
    struct occ_overlap walk;
    int status = 0;
    occ_join_begin(a, &walk);
    for (size_t i = 0; i < n && status == 0; i++) {
        const struct occ_sample *s = &a->samples[i];
        size_t n_parts = occ_join_row(a, &walk, s, occ_clock_fit_offset(&a->clock, s->start_ns));
        status = join_sample(a, s, n_parts, err);
    }
    return status;
}
