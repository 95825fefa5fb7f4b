/*
 * Samples become design rows: which launches ran in them, what was counted, what present values leave
 * unexplained. See state.h. One thread.
 */
#include <string.h>

#include "state.h"

#define RATIO_MAX    1.05   /* what counters can say, with room for noise ... */
#define BLOCKS_MAX   64.0   /* ... and of blocks per SM */
#define PROFILE_FROM 0.2    /* samples that a launch with a profile of its own lasts */
#define PHASES       8      /* of a launch, in which residuals are alike */
#define EDGE_NS      400.0  /* by which times of launches jitter */
#define IDLE_EDGE_NS 5000.0 /* by which the clocks may differ where nothing ran */
#define FLOOR        1e-3   /* of a row's standard deviation, as if launches differed by all of their value */
#define IDLE_KEPT    16     /* of samples in which nothing runs, one is kept */
#define BYTES        ((size_t)3 << 20)  /* of memory for rows, ... */
#define BYTES_EACH   ((size_t)20 << 10) /* ... and for each regressor */
#define WINDOW_NS    INT64_C(30000000000)
#define SQUARE_MAX   100.0 /* of a residual in units of its variance */
#define LATE_NS      1e9   /* over which residuals are averaged */

/* ---- samples ---- */

bool occ_join_ratios(const struct occ_attribution *a, const struct occ_sample *sample, double *ret)
{
    const double sms = a->options.sm_count, warps = a->options.max_warps_per_sm;
    double cycles = sample->value[OCC_COUNTER_ELAPSED];
    bool is_possible = true;
    if (!isfinite(cycles))
        cycles = a->cycles_per_ns * (double)(sample->end_ns - sample->start_ns);
    ret[OCC_RESPONSE_WARPS] = sample->value[OCC_COUNTER_WARPS] / (sms * warps * cycles);
    ret[OCC_RESPONSE_ACTIVE] = sample->value[OCC_COUNTER_ACTIVE] / (sms * cycles);
    ret[OCC_RESPONSE_BLOCKS] = sample->value[OCC_COUNTER_BLOCKS] / (sms * cycles);
    for (int i = 0; i < 5; i++) /* counted by TPC: two SMs */
        ret[OCC_RESPONSE_STALLS + i] = sample->value[OCC_COUNTER_STALL_REGISTERS + i] / (sms / 2 * cycles);
    for (int r = 0; r < OCC_RESPONSE_COUNT; r++) {
        double max = r == OCC_RESPONSE_BLOCKS ? BLOCKS_MAX : RATIO_MAX;
        if (ret[r] >= 0 && ret[r] <= max)
            continue;
        is_possible &= isnan(ret[r]);
        ret[r] = NAN;
    }
    return is_possible;
}

/* ---- launches of a sample ---- */

/* What of a launch is in [from, to), where it runs in [start, end). */
static struct occ_part make_part(uint32_t launch, double from, double to, double start, double end)
{
    double inside = fmin(end, to) - fmax(start, from), duration = end - start, functions[OCC_PROFILE];
    struct occ_part part = {.launch = launch,
                            .time_share = (float)(inside / (to - from)),
                            .at_start = start <= from ? (float)((from - start) / duration) : -1,
                            .at_end = end >= to ? (float)((to - start) / duration) : -1};
    for (int edge = 0; edge < 2; edge++) {
        double u = (double)(edge ? part.at_end : part.at_start), scale = duration / (to - from);
        if (u < 0)
            continue;
        occ_profile_integrate(u, functions);
        for (int i = 0; i < OCC_PROFILE; i++)
            part.profile[i] += (float)(functions[i] * (edge ? scale : -scale));
    }
    return part;
}

/* Finds the launches that run in [from, to), relative to `origin_ns`; `from` never goes back. */
static void find_parts(struct occ_attribution *a, double from, double to, int64_t origin_ns)
{
    uint32_t kept = 0;
    for (; a->next_launch < a->n_launches; a->next_launch++) {
        const struct occ_queued_launch *l = &a->launches[a->next_launch];
        if ((double)(l->start_ns - origin_ns) >= to)
            break;
        if ((double)(l->end_ns - origin_ns) > from && l->regressor != OCC_NONE && a->n_active < OCC_PARTS_MAX)
            a->active[a->n_active++] = (uint32_t)a->next_launch;
    }
    a->n_parts = 0;
    for (uint32_t i = 0; i < a->n_active; i++) {
        const struct occ_queued_launch *l = &a->launches[a->active[i]];
        double start = (double)(l->start_ns - origin_ns), end = (double)(l->end_ns - origin_ns);
        if (end <= from)
            continue;
        a->active[kept++] = a->active[i];
        if (start < to) /* else samples overlap: it was admitted for an earlier one */
            a->parts[a->n_parts++] = make_part(a->active[i], from, to, start, end);
    }
    a->n_active = kept;
}

/* ---- a row ---- */

/* Present occupancy at u. */
static double level_at(const struct occ_attribution *a, const struct occ_regressor *r, float u)
{
    double functions[OCC_PROFILE + 2], mean = (double)r->value[OCC_RESPONSE_WARPS], level = mean;
    if (u < 0)
        return 0;
    occ_profile_legendre((double)u, functions);
    for (int i = 0; i < OCC_PROFILE; i++)
        level += functions[i + 1] *
                 ((double)r->profile[i] + a->special[OCC_SPECIAL_PROFILE + i][OCC_RESPONSE_WARPS] * mean);
    return level;
}

static void add_part(struct occ_attribution *a, struct occ_row *row, const struct occ_part *part)
{
    const struct occ_queued_launch *l = &a->launches[part->launch];
    struct occ_regressor *r = &a->regressors.items[l->regressor];
    double counted = (double)(part->time_share * r->value[OCC_RESPONSE_WARPS]);
    bool is_long = (double)(l->end_ns - l->start_ns) >= PROFILE_FROM * (double)row->length_ns;
    if (r->stamp != a->stamp) {
        r->stamp = a->stamp;
        r->entry = row->n;
        r->n_entries = row->n + OCC_COLUMNS > OCC_ENTRIES_MAX ? 0 : is_long ? OCC_COLUMNS : 1;
        for (uint32_t i = 0; i < r->n_entries; i++)
            a->entries[row->n++] = (struct occ_entry){.column = l->regressor * OCC_COLUMNS + i};
    }
    if (r->n_entries > 0)
        a->entries[r->entry].share += part->time_share;
    for (uint32_t i = 0; i < OCC_PROFILE; i++) {
        row->special[OCC_SPECIAL_PROFILE + i] += part->profile[i] * r->value[OCC_RESPONSE_WARPS];
        if (i + 1 < r->n_entries)
            a->entries[r->entry + 1 + i].share += part->profile[i];
    }
    row->special[OCC_SPECIAL_OFFSET] +=
        (float)((level_at(a, r, part->at_start) - level_at(a, r, part->at_end)) * 1e3) / row->length_ns;
    if (part->at_start >= 0)
        row->phase = (l->regressor * PHASES + (uint32_t)(part->at_start * PHASES)) * 2654435761u >> 16;
    row->variance += (float)(counted * counted);
}

/* Puts the launches of a sample into a->parts and makes a row of entries, which stand in a->entries until the
 * next one. */
static struct occ_row make_row(struct occ_attribution *a, const struct occ_sample *sample)
{
    double length = (double)(sample->end_ns - sample->start_ns), idle = 0;
    double offset_ns = occ_clock_offset(a, sample->start_ns), busy_until = -offset_ns;
    struct occ_row row = {
        .start_ns = sample->start_ns, .length_ns = (float)length, .offset_ns = (float)offset_ns};
    a->stamp++;
    find_parts(a, -offset_ns, length - offset_ns, sample->start_ns);
    for (size_t i = 0; i < a->n_parts; i++) {
        const struct occ_queued_launch *l = &a->launches[a->parts[i].launch];
        add_part(a, &row, &a->parts[i]);
        idle += fmax((double)(l->start_ns - sample->start_ns) - busy_until, 0);
        busy_until = fmax(busy_until, (double)(l->end_ns - sample->start_ns));
    }
    double edge = (a->n_parts > 0 ? EDGE_NS : IDLE_EDGE_NS) / length;
    row.variance += (float)(FLOOR * FLOOR + edge * edge);
    row.special[OCC_SPECIAL_IDLE] = (float)((idle + fmax(length - offset_ns - busy_until, 0)) / length);
    row.busy_ns = (float)(busy_until + offset_ns);
    return row;
}

double occ_join_predict(const struct occ_attribution *a, const struct occ_row *row,
                        const struct occ_entry *entries, enum occ_response response)
{
    double sum = 0;
    for (int i = 0; i < OCC_SPECIAL; i++)
        sum += (double)row->special[i] * a->special[i][response];
    for (uint32_t i = 0; i < row->n; i++) {
        const struct occ_regressor *r = &a->regressors.items[entries[i].column / OCC_COLUMNS];
        uint32_t function = entries[i].column % OCC_COLUMNS;
        if (function == 0)
            sum += (double)(entries[i].share * r->value[response]);
        else if (response == OCC_RESPONSE_WARPS)
            sum += (double)(entries[i].share * r->profile[function - 1]);
    }
    return sum;
}

/* ---- joining ---- */

static void note_residual(struct occ_attribution *a, double counted, double residual, double length)
{
    double keep = exp(-length / LATE_NS);
    a->residual = a->residual * keep + residual * length;
    a->counted = a->counted * keep + counted * length;
}

/* A second that nobody takes for minutes is dropped. */
static void note_second(struct occ_attribution *a, int64_t start_ns, double residual, double length)
{
    int64_t second = start_ns / 1000000000;
    if (second != a->second) {
        if (a->second_ns > 0 && a->n_seconds < OCC_SECONDS_MAX)
            a->seconds[a->n_seconds++] = (struct occ_attribution_second){
                .second = a->second, .unexplained = a->second_residual / a->second_ns};
        a->second_residual = a->second_ns = 0;
        a->second = second;
    }
    a->second_residual += residual * length;
    a->second_ns += length;
}

void occ_join_drop(struct occ_rows *rows, size_t n)
{
    uint32_t first = n < rows->n ? rows->rows[n].first : (uint32_t)rows->n_entries;
    rows->n -= n;
    rows->n_entries -= first;
    memmove(rows->rows, rows->rows + n, rows->n * sizeof *rows->rows);
    memmove(rows->entries, rows->entries + first, rows->n_entries * sizeof *rows->entries);
    for (size_t i = 0; i < rows->n; i++)
        rows->rows[i].first -= first;
}

/* Has room for a row of so many entries, if need be in place of old ones. */
static bool make_room(struct occ_attribution *a, size_t n_entries)
{
    struct occ_rows *rows = &a->rows;
    size_t bytes = rows->allocated * sizeof *rows->rows + rows->entries_allocated * sizeof *rows->entries;
    bool is_full = rows->n == rows->allocated || rows->n_entries + n_entries > rows->entries_allocated;
    if (is_full && rows->n > 0 && 2 * bytes > BYTES + a->regressors.n * BYTES_EACH)
        occ_join_drop(rows, rows->n / 4 + 1);
    return occ_grow((void **)&rows->rows, &rows->allocated, rows->n, SIZE_MAX, sizeof *rows->rows) &&
           occ_grow((void **)&rows->entries, &rows->entries_allocated, rows->n_entries + n_entries, SIZE_MAX,
                    sizeof *rows->entries);
}

/* Keeps the row for the equations. Without memory it is not regressed. */
static void keep_row(struct occ_attribution *a, struct occ_row *row, const double *ratio)
{
    struct occ_rows *rows = &a->rows;
    uint32_t n = row->n;
    if (!make_room(a, n))
        return;
    row->first = (uint32_t)rows->n_entries;
    row->n = 0;
    for (uint32_t i = 0; i < n; i++)
        if (a->entries[i].share != 0) {
            rows->entries[rows->n_entries++] = a->entries[i];
            row->n++;
        }
    for (int r = 0; r < OCC_RESPONSE_COUNT; r++)
        row->response[r] = (float)ratio[r];
    rows->rows[rows->n++] = *row;
}

/* What is only known once, and after the clocks' offset. */
static void note_sample(struct occ_attribution *a, const struct occ_sample *sample, const struct occ_row *row,
                        const double *ratio, const double *predicted)
{
    double residual = ratio[OCC_RESPONSE_WARPS] - (a->n_parts > 0 ? predicted[OCC_RESPONSE_WARPS] : 0);
    double length = (double)row->length_ns;
    if (isfinite(residual)) {
        note_residual(a, ratio[OCC_RESPONSE_WARPS], residual, length);
        note_second(a, sample->start_ns, a->n_parts == 0 || a->estimated ? residual : NAN, length);
    }
    if (isfinite(residual) && a->estimated && a->n_parts > 0) {
        a->surprise += fmin(residual * residual / occ_row_variance(a, row), SQUARE_MAX);
        a->surprise_rows++;
    }
    for (size_t i = 0; i < a->n_parts; i++)
        a->launches[a->parts[i].launch].covered = true;
    occ_direct_read(a, sample, row, ratio, predicted);
}

static void join_sample(struct occ_attribution *a, const struct occ_sample *sample)
{
    double ratio[OCC_RESPONSE_COUNT], predicted[OCC_RESPONSE_COUNT];
    struct occ_row row = make_row(a, sample);
    (void)occ_join_ratios(a, sample, ratio);
    for (int r = 0; r < OCC_RESPONSE_COUNT; r++)
        predicted[r] = isfinite(ratio[r]) ? occ_join_predict(a, &row, a->entries, (enum occ_response)r) : NAN;
    if (!a->is_trial)
        note_sample(a, sample, &row, ratio, predicted);
    a->idle_samples = a->n_parts > 0 ? 0 : a->idle_samples + 1;
    if (a->n_parts > 0 || a->idle_samples % IDLE_KEPT == 2)
        keep_row(a, &row, ratio);
}

void occ_join_block(struct occ_attribution *a, size_t n)
{
    size_t old = 0;
    while (old < a->rows.n && a->rows.rows[old].start_ns < a->samples[0].start_ns - WINDOW_NS)
        old++;
    if (old > a->rows.n / 8)
        occ_join_drop(&a->rows, old);
    a->surprise = a->surprise_rows = 0;
    a->next_launch = a->n_active = 0;
    for (size_t i = 0; i < n; i++)
        join_sample(a, &a->samples[i]);
}
