/* Rows as observations of the current equations: their entries in its columns, and their variances. See
 * state.h. */
#include "state.h"

/* Adds the shares of parts of graphs. */
static void add_parts(const struct occ_attribution *a, const struct occ_solution *s,
                      const struct occ_row *row, struct occ_observation *p)
{
    for (uint32_t k = 0; k < row->n_nodes && s->parts_end > s->means_end; k++) {
        uint32_t column = a->nodes.at[occ_row_nodes(row)[k].column].column;
        if (column == OCC_NONE)
            continue;
        uint32_t *at = &s->columns[column].at;
        if (*at >= p->n || p->column_index[*at] != column) {
            *at = p->n++;
            p->column_index[*at] = column;
            p->share[*at] = 0;
        }
        p->share[*at] += (double)occ_row_nodes(row)[k].share;
    }
}

bool occ_observation_make(const struct occ_attribution *a, const struct occ_solution *s,
                          const struct occ_row *row, struct occ_observation *p)
{
    double gradient = row->gradient, drift_ns = (double)(row->start_ns - a->estimate.clock_ns);
    double shares[OCC_SPECIAL] = {row->idle, gradient, gradient * drift_ns / (double)WINDOW_NS};
    double age = (double)(a->joined_ns - row->start_ns) / DRIFT_TIME_NS;
    double noise = NOISE / a->assumed.spread_max * (double)row->ratio[s->first_response];
    if (!isfinite(noise))
        return false;
    /* rows with utilization are rare and have to count for longer */
    p->aged = s->first_response < OCC_RATIO_UTILIZATION ? 1 + age * age : 1;
    p->variance = row->variance + noise * noise;
    p->clock_shift = gradient * (occ_clock_offset(a, row->start_ns) - row->offset_ns) / 1e3;
    p->n = 0;
    for (uint32_t k = 0; k < row->n; k++) {
        const struct occ_entry *e = &row->entries[k];
        p->column_index[p->n] = *occ_column_index(a, e->column);
        if (p->column_index[p->n] != OCC_NONE) {
            p->share[p->n++] = (double)e->share;
            continue;
        }
        double share = (double)e->share, in_bounds = share * a->regressors[e->column / OCC_COLUMNS].bound;
        double *shared = shares + OCC_SPECIAL_SHARED + 2 * (e->column % OCC_COLUMNS - 1);
        shared[0] += in_bounds;
        shared[1] += share;
        /* no column was free: the function (never a mean) counts as variance */
        p->variance += in_bounds * in_bounds;
    }
    add_parts(a, s, row, p);
    for (uint32_t i = 0; i < OCC_SPECIAL; i++) {
        p->column_index[p->n] = i;
        p->share[p->n] = shares[i];
        p->n += shares[i] != 0;
    }
    p->variance *= a->estimate.scale * p->aged;
    return true;
}
