/*
 * Samples become design rows: which launches ran in them, what was counted, what present values leave
 * unexplained. See state.h. One thread.
 */
#include <string.h>

#include "state.h"

/* ---- occupancy profiles ---- */

/* The wavelet of a level that is not 0 at u, and where in it u is: 0...1. */
static uint32_t find_wavelet(int level, double u, double *ret_x)
{
    double at = u * (1 << level), before = fmin(floor(at), (1 << level) - 1);
    uint32_t wavelet = (1U << level) + (uint32_t)before;
    *ret_x = at - before;
    return wavelet + (wavelet >= OCC_ELASTICITY);
}

/* Present occupancy at u. */
static double level_at(const struct occ_regressor *r, float u)
{
    double level = (double)r->value[OCC_RESPONSE_WARPS], x;
    if (u < 0)
        return 0;
    for (int i = 0; i < OCC_LEVELS; i++) {
        double height = (double)r->profile[find_wavelet(i, (double)u, &x)];
        level += x < 0.5 ? height : -height;
    }
    return level;
}

/* ---- launches of a sample ---- */

/* What of a launch is in [from, to), where it runs in [start, end). */
static struct occ_part make_part(uint32_t launch, double from, double to, double start, double end)
{
    double inside = fmax(fmin(end, to) - fmax(start, from), 0), duration = end - start;
    return (struct occ_part){.launch = launch,
                             .time_share = (float)(inside / (to - from)),
                             .at_start = start <= from ? (float)((from - start) / duration) : -1,
                             .at_end = end >= to ? (float)((to - start) / duration) : -1};
}

/* Finds the launches that run in [from, to), in ns after `origin_ns`; `from` never goes back. */
static void find_parts(struct occ_attribution *a, double from, double to, int64_t origin_ns)
{
    struct occ_making *m = &a->making;
    size_t kept = 0;
    for (; m->next_launch < a->queue.n_launches; m->next_launch++) {
        const struct occ_queued_launch *l = &a->queue.launches[m->next_launch];
        if ((double)(l->start_ns - origin_ns) >= to)
            break;
        if (!l->is_late && (double)(l->end_ns - origin_ns) > from && m->n_parts < OCC_PARTS_MAX)
            m->parts[m->n_parts++].launch = (uint32_t)m->next_launch;
    }
    for (size_t i = 0; i < m->n_parts; i++) {
        uint32_t launch = m->parts[i].launch;
        const struct occ_queued_launch *l = &a->queue.launches[launch];
        double start = (double)(l->start_ns - origin_ns), end = (double)(l->end_ns - origin_ns);
        if (end > from)
            m->parts[kept++] = make_part(launch, from, to, start, end);
    }
    m->n_parts = kept;
}

/* ---- a row ---- */

/* Adds to the entry that the row has for a function of the launch's regressor, or to a new one. */
static void add_entry(struct occ_attribution *a, struct occ_row *row, struct occ_part *part,
                      uint32_t function, double share)
{
    uint32_t regressor = a->queue.launches[part->launch].regressor;
    uint32_t column = regressor * OCC_COLUMNS + function;
    struct occ_regressor *r = &a->regressors.items[regressor];
    struct occ_entry *entries = a->making.entries;
    part->by_profile += function > 0 ? (float)share * r->profile[function] : 0;
    if (r->entry[function] >= row->n || entries[r->entry[function]].column != column) {
        if (row->n == OCC_ENTRIES_MAX)
            return;
        r->entry[function] = row->n;
        entries[row->n++] = (struct occ_entry){.column = column};
    }
    entries[r->entry[function]].share += (float)share;
}

/* What of the profile's functions is before u, where the sample's edge cuts the launch. */
static void add_edge(struct occ_attribution *a, struct occ_row *row, struct occ_part *part, double u,
                     double scale)
{
    double x;
    if (u < 0 || fabs(scale) < PROFILE_FROM)
        return;
    for (int i = 0; i < OCC_LEVELS; i++) {
        uint32_t wavelet = find_wavelet(i, u, &x);
        add_entry(a, row, part, wavelet, scale * fmin(x, 1 - x) / (1 << i));
    }
}

static void add_part(struct occ_attribution *a, struct occ_row *row, struct occ_part *part)
{
    const struct occ_queued_launch *l = &a->queue.launches[part->launch];
    struct occ_regressor *r = &a->regressors.items[l->regressor];
    double duration = (double)(l->end_ns - l->start_ns), scale = duration / (double)row->length_ns;
    double shorter = fmin(r->launch_ns / r->launches / duration - 1, 1);
    add_entry(a, row, part, 0, (double)part->time_share);
    add_entry(a, row, part, OCC_ELASTICITY, (double)part->time_share * shorter);
    add_edge(a, row, part, (double)part->at_start, -scale);
    add_edge(a, row, part, (double)part->at_end, scale);
    row->gradient +=
        (float)((level_at(r, part->at_start) - level_at(r, part->at_end)) * 1e3) / row->length_ns;
    if (part->at_start >= 0)
        row->phase = (l->regressor * PHASES + (uint32_t)(part->at_start * PHASES)) * 2654435761u >> 16;
    double counted = (double)(part->time_share * r->value[OCC_RESPONSE_WARPS]);
    row->variance += (float)(counted * counted);
}

/* Makes a row of a sample: its launches in making.parts, its entries in making.entries. */
static struct occ_row make_row(struct occ_attribution *a, const struct occ_queued_sample *sample)
{
    double length = (double)(sample->end_ns - sample->start_ns), idle = 0;
    double offset_ns = occ_clock_offset(a, sample->start_ns), busy_until = -offset_ns;
    struct occ_row row = {
        .start_ns = sample->start_ns, .length_ns = (float)length, .offset_ns = (float)offset_ns};
    find_parts(a, -offset_ns, length - offset_ns, sample->start_ns);
    for (size_t i = 0; i < a->making.n_parts; i++) {
        const struct occ_queued_launch *l = &a->queue.launches[a->making.parts[i].launch];
        add_part(a, &row, &a->making.parts[i]);
        idle += fmax((double)(l->start_ns - sample->start_ns) - busy_until, 0);
        busy_until = fmax(busy_until, (double)(l->end_ns - sample->start_ns));
    }
    row.variance += (float)(ERROR_MIN * ERROR_MIN);
    row.idle = (float)((idle + fmax(length - offset_ns - busy_until, 0)) / length);
    return row;
}

/* ---- rows that are kept ---- */

/* Drops the first n rows. */
static void drop_rows(struct occ_rows *rows, size_t n)
{
    uint32_t first = n < rows->n ? rows->rows[n].first : (uint32_t)rows->n_entries;
    rows->n -= n;
    rows->n_entries -= first;
    memmove(rows->rows, rows->rows + n, rows->n * sizeof *rows->rows);
    memmove(rows->entries, rows->entries + first, rows->n_entries * sizeof *rows->entries);
    for (size_t i = 0; i < rows->n; i++)
        rows->rows[i].first -= first;
}

/* Has room for a row of so many entries, if need be in place of old ones: half of the memory for rows, half
 * for their entries; a quarter as much for those of utilization. */
static bool make_room(const struct occ_attribution *a, struct occ_rows *rows, size_t n_entries)
{
    size_t bytes = (ROWS_BYTES + a->regressors.n * ROWS_BYTES_EACH) / (rows == &a->rows ? 2 : 8);
    size_t max = bytes / sizeof *rows->rows, entries_max = bytes / sizeof *rows->entries;
    if (rows->n >= max || rows->n_entries + n_entries > entries_max)
        drop_rows(rows, rows->n / 4 + 1);
    return occ_grow((void **)&rows->rows, &rows->allocated, rows->n, max, sizeof *rows->rows) &&
           occ_grow((void **)&rows->entries, &rows->entries_allocated, rows->n_entries + n_entries,
                    entries_max, sizeof *rows->entries);
}

/* Keeps the row for the equations. Without memory it is not regressed. */
static void keep_row(struct occ_attribution *a, struct occ_rows *rows, struct occ_row *row)
{
    uint32_t n = row->n;
    if (!make_room(a, rows, n))
        return;
    row->first = (uint32_t)rows->n_entries;
    row->n = 0;
    for (uint32_t i = 0; i < n; i++)
        if (a->making.entries[i].share != 0) {
            rows->entries[rows->n_entries++] = a->making.entries[i];
            row->n++;
        }
    rows->rows[rows->n++] = *row;
    rows->fresh++;
}

/* ---- joining ---- */

static void join_sample(struct occ_attribution *a, const struct occ_queued_sample *sample, bool is_trial)
{
    struct occ_row row = make_row(a, sample);
    bool has_utilization = isfinite(sample->ratio[OCC_RESPONSE_UTILIZATION]); /* ISSUE is in all such sets */
    memcpy(row.response, sample->ratio, sizeof row.response);
    if (!is_trial)
        occ_direct_read(a, &row, (double)sample->imbalance);
    if (sample->is_possible && !(is_trial && has_utilization))
        keep_row(a, has_utilization ? &a->utilization_rows : &a->rows, &row);
}

static void drop_older(struct occ_rows *rows, int64_t than_ns)
{
    size_t old = 0;
    while (old < rows->n && rows->rows[old].start_ns < than_ns)
        old++;
    if (old > rows->n / 8)
        drop_rows(rows, old);
}

void occ_join_block(struct occ_attribution *a, size_t n, bool is_trial)
{
    drop_older(&a->rows, a->queue.samples[0].start_ns - WINDOW_NS);
    drop_older(&a->utilization_rows, a->queue.samples[0].start_ns - UTILIZATION_NS);
    a->making.next_launch = a->making.n_parts = 0;
    for (size_t i = 0; i < n; i++)
        join_sample(a, &a->queue.samples[i], is_trial);
}
