/* Makes samples rows of the equations: the launches that ran in the sample, and the counted ratios. See
 * state.h. */
#include <string.h>

#include "state.h"

static size_t size_of(const struct occ_row *row)
{
    return sizeof *row + (row->n + row->n_nodes) * sizeof *row->entries +
           row->n_operations * sizeof(struct occ_operations);
}

static struct occ_row *take_out(struct occ_rows *rows, struct occ_row *row)
{
    *(row->before ? &row->before->next : &rows->first) = row->next;
    *(row->next ? &row->next->before : &rows->last) = row->before;
    rows->bytes -= size_of(row);
    rows->busy -= row->n > 0;
    return row;
}

double occ_design_residual(const struct occ_attribution *a, const struct occ_row *row,
                           double ret[OCC_RATIO_DIRECT])
{
    bool is_known = row->n == 0 || a->estimate.known;
    double variance = ERROR_MIN * ERROR_MIN;
    for (int r = 0; r < OCC_RATIO_DIRECT; r++)
        ret[r] = is_known ? (double)row->ratio[r] : NAN;
    for (uint32_t i = 0; i < row->n; i++) {
        const struct occ_entry *e = &row->entries[i];
        const struct occ_regressor *regressor = &a->regressors[e->column / OCC_COLUMNS];
        uint32_t function = e->column % OCC_COLUMNS;
        for (int r = 0; r < OCC_RATIO_DIRECT && function == 0; r++)
            ret[r] -= e->share * regressor->value[r];
        ret[OCC_RATIO_WARPS] -= function > 0 ? e->share * regressor->profile[function] : 0;
        variance += function > 0 ? 0 : pow(e->share * regressor->value[OCC_RATIO_WARPS], 2);
    }
    return variance;
}

static void put_into_past(struct occ_attribution *a, const struct occ_row *row)
{
    int64_t number = row->start_ns / OCC_PAST_NS;
    struct occ_past *past = &a->past[number % OCC_PAST_COUNT];
    double unexplained[OCC_RATIO_DIRECT], ns = (double)(row->end_ns - row->start_ns);
    if (past->number != number)
        *past = (struct occ_past){.number = number};
    past->end_ns = row->end_ns > past->end_ns ? row->end_ns : past->end_ns;
    (void)occ_design_residual(a, row, unexplained);
    for (int r = 0; r < OCC_RATIO_DIRECT; r++) {
        past->sum[r] += !isfinite(unexplained[r]) ? 0 : (float)(unexplained[r] * ns);
        past->ns[r] += !isfinite(unexplained[r]) ? 0 : (float)ns;
    }
    past->busy_ns += !isfinite(unexplained[OCC_RATIO_WARPS]) ? 0 : (float)((1 - row->idle) * ns);
}

void occ_design_forget(struct occ_attribution *a, struct occ_rows *rows, int64_t from_ns, int64_t to_ns,
                       size_t bytes_max)
{
    struct occ_row *next, *row = rows->first;
    for (; row && (row->start_ns < to_ns || rows->bytes > bytes_max); row = next) {
        next = row->next;
        if (row->end_ns <= from_ns && rows->bytes <= bytes_max)
            continue;
        if (rows == &a->rows && row->start_ns < a->rejoin_from_ns)
            put_into_past(a, row);
        rows->fresh += rows != &a->rows;
        free(take_out(rows, row));
    }
}

void occ_design_undo(struct occ_attribution *a, int64_t from_ns)
{
    struct occ_rows *all[] = {&a->rows, &a->utilization_rows};
    for (int i = 0; i < 2; i++)
        while (all[i]->last && all[i]->last->start_ns >= from_ns)
            free(take_out(all[i], all[i]->last));
    a->next_launch = a->n_running = 0;
}

/* Finds the launches that run in [from_ns, to_ns) of the launches' clock. A launch that ends at from_ns
 * counts too, since its end is an edge in the interval. Launches that ended earlier are removed. False: too
 * many launches. */
static bool find_running(struct occ_attribution *a, int64_t from_ns, int64_t to_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < a->n_running; i++)
        if (a->launches[a->running[i]].end_ns >= from_ns)
            a->running[kept++] = a->running[i];
    for (; a->next_launch < a->n_launches && a->launches[a->next_launch].start_ns < to_ns; a->next_launch++) {
        const struct occ_queued_launch *l = &a->launches[a->next_launch];
        if (l->is_late || l->end_ns < from_ns)
            continue;
        if (kept == OCC_RUNNING_MAX)
            break;
        a->running[kept++] = (uint32_t)a->next_launch;
    }
    a->n_running = kept;
    return kept < OCC_RUNNING_MAX;
}

/* Adds to the row's entry for a function of the regressor; creates the entry if needed. */
static void add_entry(struct occ_attribution *a, struct occ_row *row, uint32_t regressor, uint32_t function,
                      double share)
{
    uint32_t column = regressor * OCC_COLUMNS + function;
    uint32_t *entry = &a->regressors[regressor].entry[function];
    if (*entry >= row->n || row->entries[*entry].column != column) {
        if (share == 0 || row->n == OCC_ENTRIES_MAX)
            return;
        *entry = row->n++;
        row->entries[*entry] = (struct occ_entry){.column = column};
    }
    row->entries[*entry].share += (float)share;
}

/* Adds to the row's entry for a node, unless it is the configuration's only node. */
static void add_node(struct occ_attribution *a, struct occ_row *row, uint32_t node, double share)
{
    struct occ_node *own = node != OCC_NONE ? &a->nodes.at[node] : NULL;
    if (!own || share == 0 || a->regressors[own->regressor].n_nodes < 2)
        return;
    if (own->entry >= row->n_nodes || a->nodes.entries[own->entry].column != node) {
        if (row->n_nodes == OCC_ENTRIES_MAX)
            return;
        own->entry = row->n_nodes++;
        a->nodes.entries[own->entry] = (struct occ_entry){.column = node};
    }
    a->nodes.entries[own->entry].share += (float)share;
}

/* Adds the effect of a sample's edge that cuts a launch at u: the integral of each wavelet up to u, and the
 * derivative with respect to the edge's position. `scale`: the launch's duration in samples, negative for the
 * sample's start. */
static void add_edge(struct occ_attribution *a, struct occ_row *row, uint32_t regressor, double u,
                     double scale)
{
    const struct occ_regressor *r = &a->regressors[regressor];
    double level = r->value[OCC_RATIO_WARPS];
    for (int i = 0; i < OCC_LEVELS; i++) {
        double at = u * (1 << i), before = fmin(floor(at), (1 << i) - 1), x = at - before;
        uint32_t wavelet = (1U << i) + (uint32_t)before;
        wavelet += wavelet >= OCC_ELASTICITY;
        level += x < 0.5 ? r->profile[wavelet] : -r->profile[wavelet];
        add_entry(a, row, regressor, wavelet, scale * fmin(x, 1 - x) / (1 << i));
    }
    row->gradient += (scale < 0 ? level : -level) * 1e3 / (double)(row->end_ns - row->start_ns);
}

/* Adds a part of an operation. With more kinds than there is room for, blocks are not known. */
static void count_operation(struct occ_attribution *a, struct occ_row *row, uint32_t regressor, double part)
{
    uint16_t i = 0;
    if (part == 0)
        return;
    while (i < row->n_operations && a->operations[i].regressor != regressor)
        i++;
    if (i == OCC_KINDS_MAX) {
        row->has_more_operations = 1;
        return;
    }
    if (i == row->n_operations)
        a->operations[row->n_operations++] = (struct occ_operations){.regressor = regressor};
    a->operations[i].count += (float)part;
}

/* Adds a launch that runs in [start, end) ns after the sample's start. */
static void add_launch(struct occ_attribution *a, struct occ_row *row, const struct occ_queued_launch *l,
                       double start, double end)
{
    const struct occ_regressor *r = &a->regressors[l->regressor];
    double duration = end - start, length = (double)(row->end_ns - row->start_ns);
    double share = fmax(fmin(end, length) - fmax(start, 0), 0) / length, counted = share * r->value[0];
    add_entry(a, row, l->regressor, 0, share);
    add_node(a, row, l->node, share);
    add_entry(a, row, l->regressor, OCC_ELASTICITY, share * occ_shorter(r, duration));
    if (start < 0) {
        add_edge(a, row, l->regressor, -start / duration, -duration / length);
        row->phase =
            (uint16_t)((l->regressor * PHASES + (uint32_t)(-start / duration * PHASES)) * 2654435761u >> 16);
    }
    if (end >= length)
        add_edge(a, row, l->regressor, (length - start) / duration, duration / length);
    if (r->is_memory)
        count_operation(a, row, l->regressor, share * length / duration);
    else
        row->others -= r->grid * share * length / duration;
    row->variance += counted * counted;
}

static void keep(struct occ_attribution *a, const struct occ_row *row)
{
    struct occ_rows *rows = isnan(row->ratio[OCC_RATIO_UTILIZATION]) ? &a->rows : &a->utilization_rows;
    size_t nodes = a->nodes.n_shared < OCC_NODES_DUE ? a->nodes.n_shared : OCC_NODES_DUE;
    size_t bytes = ROWS_BYTES + (a->n_regressors + nodes) * ROWS_BYTES_EACH;
    struct occ_row *own = malloc(size_of(row));
    if (own) {
        *own = *row;
        own->entries = memcpy(own + 1, row->entries, row->n * sizeof *row->entries);
        memcpy(own->entries + row->n, a->nodes.entries, row->n_nodes * sizeof *a->nodes.entries);
        memcpy(own->entries + row->n + row->n_nodes, a->operations,
               row->n_operations * sizeof *a->operations);
        own->before = rows->last;
        *(rows->last ? &rows->last->next : &rows->first) = own;
        rows->last = own;
        rows->bytes += size_of(own);
        rows->busy += own->n > 0;
        rows->fresh += own->n > 0;
    }
    occ_design_forget(a, &a->rows, 0, row->start_ns - WINDOW_NS, bytes);
    occ_design_forget(a, &a->utilization_rows, 0, row->start_ns - UTILIZATION_NS, bytes / 4);
}

void occ_design_add(struct occ_attribution *a, const struct occ_attribution_sample *sample)
{
    double length = (double)(sample->end_ns - sample->start_ns), idle = 0, busy_until = 0;
    double offset = round(occ_clock_offset(a, sample->start_ns));
    struct occ_row row = {.start_ns = sample->start_ns,
                          .end_ns = sample->end_ns,
                          .offset_ns = offset,
                          .variance = ERROR_MIN * ERROR_MIN,
                          .imbalance = NAN,
                          .entries = a->entries};
    memcpy(row.ratio, sample->ratio, sizeof row.ratio);
    row.launched = row.others = (double)sample->launched;
    if (!find_running(a, sample->start_ns - (int64_t)offset, sample->end_ns - (int64_t)offset))
        return;
    for (size_t i = 0; i < a->n_running; i++) {
        struct occ_queued_launch *l = &a->launches[a->running[i]];
        double start = fmin((double)(l->start_ns - sample->start_ns) + offset, length),
               end = (double)(l->end_ns - sample->start_ns) + offset;
        add_launch(a, &row, l, start, end);
        if (a->n_running == 1 && start <= 0 && end >= length)
            row.imbalance = (double)sample->imbalance;
        idle += fmax(start - busy_until, 0);
        busy_until = fmax(busy_until, end);
        l->covered |= end > 0;
    }
    row.idle = (idle + fmax(length - busy_until, 0)) / length;
    if (row.n < OCC_ENTRIES_MAX)
        keep(a, &row);
}
