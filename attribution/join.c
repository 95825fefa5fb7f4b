/*
 * Samples become rows of the equations: which launches ran in them, what was counted, what present values
 * leave unexplained. See state.h. One thread.
 */
#include <string.h>

#include "state.h"

static size_t size_of(const struct occ_row *row)
{
    return sizeof *row + row->n * sizeof *row->entries;
}

static void drop(struct occ_rows *rows, struct occ_row *row)
{
    *(row->before ? &row->before->next : &rows->first) = row->next;
    *(row->next ? &row->next->before : &rows->last) = row->before;
    rows->bytes -= size_of(row);
    rows->busy -= row->n > 0;
    free(row);
}

void occ_rows_keep(struct occ_rows *rows, int64_t from_ns, int64_t to_ns, size_t bytes_max)
{
    while (rows->first && (rows->first->start_ns < from_ns || rows->bytes > bytes_max))
        drop(rows, rows->first);
    while (rows->last && rows->last->start_ns >= to_ns)
        drop(rows, rows->last);
}

void occ_join_keep(struct occ_attribution *a, const struct occ_row *row)
{
    bool has_utilization = isfinite(row->ratio[OCC_RATIO_UTILIZATION]); /* ISSUE is in all such sets */
    struct occ_rows *rows = has_utilization ? &a->utilization_rows : &a->rows;
    size_t bytes = ROWS_BYTES + a->regressors.n * ROWS_BYTES_EACH;
    struct occ_row *own = malloc(size_of(row));
    if (own) {
        *own = *row;
        own->entries = memcpy(own + 1, row->entries, row->n * sizeof *row->entries);
        own->before = rows->last;
        *(rows->last ? &rows->last->next : &rows->first) = own;
        rows->last = own;
        rows->bytes += size_of(row);
        rows->busy += row->n > 0;
        rows->fresh += row->n > 0;
    }
    occ_rows_keep(&a->rows, row->start_ns - WINDOW_NS, INT64_MAX, bytes);
    occ_rows_keep(&a->utilization_rows, row->start_ns - UTILIZATION_NS, INT64_MAX, bytes / 4);
}

/* What of a launch is in [from, to), where it runs in [start, end). */
static struct occ_part make_part(uint32_t launch, double from, double to, double start, double end)
{
    double inside = fmax(fmin(end, to) - fmax(start, from), 0), duration = end - start;
    return (struct occ_part){.launch = launch,
                             .time_share = inside / (to - from),
                             .at_start = start <= from ? (from - start) / duration : -1,
                             .at_end = end >= to ? (to - start) / duration : -1};
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
        struct occ_queued_launch *l = &a->queue.launches[launch];
        double start = (double)(l->start_ns - origin_ns), end = (double)(l->end_ns - origin_ns);
        if (end <= from)
            continue;
        m->parts[kept++] = make_part(launch, from, to, start, end);
        l->covered = true;
    }
    m->n_parts = kept;
}

/* The wavelet of a level that is not 0 at u, and where in it u is: 0...1. */
static uint32_t find_wavelet(int level, double u, double *ret_x)
{
    double at = u * (1 << level), before = fmin(floor(at), (1 << level) - 1);
    uint32_t wavelet = (1U << level) + (uint32_t)before;
    *ret_x = at - before;
    return wavelet + (wavelet >= OCC_ELASTICITY);
}

double occ_join_profile(const struct occ_regressor *r, double u, double *ret_before)
{
    double height = 0, x;
    *ret_before = 0;
    for (int i = 0; i < OCC_LEVELS; i++) {
        double own = r->profile[find_wavelet(i, u, &x)];
        height += x < 0.5 ? own : -own;
        *ret_before += own * fmin(x, 1 - x) / (1 << i);
    }
    return height;
}

/* Present occupancy at u; 0 outside. */
static double level_at(const struct occ_regressor *r, double u)
{
    double before;
    return u < 0 ? 0 : r->value[OCC_RATIO_WARPS] + occ_join_profile(r, u, &before);
}

/* Adds to the entry that the row has for a function of the regressor, or to a new one. */
static void add_entry(struct occ_attribution *a, struct occ_row *row, uint32_t regressor, uint32_t function,
                      double share)
{
    uint32_t column = regressor * OCC_COLUMNS + function;
    uint32_t *entry = &a->regressors.items[regressor].entry[function];
    if (*entry >= row->n || row->entries[*entry].column != column) {
        if (share == 0 || row->n == OCC_ENTRIES_MAX)
            return;
        *entry = row->n++;
        row->entries[*entry] = (struct occ_entry){.column = column};
    }
    row->entries[*entry].share += (float)share;
}

/* What of the profile's functions is before u, where the sample's edge cuts the launch. */
static void add_edge(struct occ_attribution *a, struct occ_row *row, uint32_t regressor, double u,
                     double scale)
{
    double x;
    for (int i = 0; i < OCC_LEVELS && u >= 0 && fabs(scale) >= PROFILE_FROM; i++) {
        uint32_t wavelet = find_wavelet(i, u, &x);
        add_entry(a, row, regressor, wavelet, scale * fmin(x, 1 - x) / (1 << i));
    }
}

static void add_part(struct occ_attribution *a, struct occ_row *row, const struct occ_part *part)
{
    const struct occ_queued_launch *l = &a->queue.launches[part->launch];
    const struct occ_regressor *r = &a->regressors.items[l->regressor];
    double duration = (double)(l->end_ns - l->start_ns), length = (double)(row->end_ns - row->start_ns);
    add_entry(a, row, l->regressor, 0, part->time_share);
    add_entry(a, row, l->regressor, OCC_ELASTICITY, part->time_share * occ_shorter(r, duration));
    add_edge(a, row, l->regressor, part->at_start, -duration / length);
    add_edge(a, row, l->regressor, part->at_end, duration / length);
    row->gradient += (level_at(r, part->at_start) - level_at(r, part->at_end)) * 1e3 / length;
    if (part->at_start >= 0)
        row->phase = (l->regressor * PHASES + (uint32_t)(part->at_start * PHASES)) * 2654435761u >> 16;
    double counted = part->time_share * r->value[OCC_RATIO_WARPS];
    row->variance += counted * counted;
}

struct occ_row occ_join_make(struct occ_attribution *a, const struct occ_attribution_sample *sample)
{
    struct occ_making *m = &a->making;
    double length = (double)(sample->end_ns - sample->start_ns), idle = 0;
    double offset = occ_clock_offset(a, sample->start_ns), busy_until = -offset;
    struct occ_row row = {.start_ns = sample->start_ns,
                          .end_ns = sample->end_ns,
                          .offset_ns = offset,
                          .variance = ERROR_MIN * ERROR_MIN,
                          .imbalance = NAN,
                          .entries = m->entries};
    memcpy(row.ratio, sample->ratio, sizeof row.ratio);
    find_parts(a, -offset, length - offset, sample->start_ns);
    for (size_t i = 0; i < m->n_parts; i++) {
        const struct occ_queued_launch *l = &a->queue.launches[m->parts[i].launch];
        double start = fmax((double)(l->start_ns - sample->start_ns), -offset);
        double end = fmin((double)(l->end_ns - sample->start_ns), length - offset);
        add_part(a, &row, &m->parts[i]);
        idle += fmax(start - busy_until, 0);
        busy_until = fmax(busy_until, end);
    }
    row.idle = (idle + length - offset - busy_until) / length;
    if (m->n_parts == 1 && m->parts[0].at_start >= 0 && m->parts[0].at_end >= 0)
        row.imbalance = sample->imbalance;
    return row;
}
