/* See attribution_dump.h. */
#include "attribution_dump.h"

#include <stdio.h>
#include <stdlib.h>

#include "attribution/equations.h"
#include "attribution/state.h"

/* Number of the solution that is written: after the first second, when the clocks are known, with rows of
 * several seconds. */
#define SOLUTION 12

static unsigned n_solutions;

static void write_constants(FILE *out, const struct occ_attribution *a, const struct occ_solution *s)
{
    const struct {
        const char *name;
        double value;
    } constants[] = {{"window_ns", (double)WINDOW_NS},
                     {"drift_time_ns", DRIFT_TIME_NS},
                     {"noise", NOISE / a->assumed.spread_max},
                     {"leverage_max", LEVERAGE_MAX},
                     {"clusters", OCC_CLUSTERS},
                     {"prior_sd", PRIOR_SD},
                     {"profile_sd", PROFILE_SD},
                     {"idle_sd", IDLE_SD},
                     {"clock_sd_us", a->estimate.known ? CLOCK_SD_US : 1e-6},
                     {"drift_sd_us", a->estimate.known ? a->estimate.drift_sd_us : 1e-6},
                     {"special", OCC_SPECIAL},
                     {"means_end", s->means_end},
                     {"scale", a->estimate.scale},
                     {"clock_age_ns", (double)(a->joined_ns - a->estimate.clock_ns)},
                     {"offset_ns", a->estimate.offset_ns},
                     {"drift", a->estimate.drift}};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        (void)fprintf(out, "\"%s\": %.17g,\n", constants[i].name, constants[i].value);
}

/* Writes each column: function, bound, prior mean, solution, variance by the equations, variance by clusters.
 */
static void write_columns(FILE *out, const struct occ_attribution *a, const struct occ_solution *s)
{
    double *function = calloc(s->n, sizeof *function);
    if (!function)
        abort();
    for (uint32_t c = 0; c < a->n_regressors * OCC_COLUMNS; c++)
        if (*occ_column_index(a, c) != OCC_NONE)
            function[*occ_column_index(a, c)] = c % OCC_COLUMNS;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct occ_regressor *r = i < OCC_SPECIAL ? NULL : &a->regressors[s->columns[i].regressor];
        (void)fprintf(out, "%s[%g, %.17g, %.17g, %.17g, %.17g, %.17g]", i ? ",\n" : "\"columns\": [\n",
                      function[i], r ? r->bound : 0, r ? r->prior[OCC_RATIO_WARPS] : 0, s->x[i],
                      *occ_equations_at(s->inverse, i, i), s->columns[i].clustered);
    }
    (void)fprintf(out, "],\n");
    free(function);
}

static void write_row(FILE *out, const struct occ_attribution *a, const struct occ_row *row)
{
    (void)fprintf(out, "[%.17g, %.17g, %.17g, %.17g, %.17g, %.17g, %u, [",
                  (double)(a->joined_ns - row->start_ns), (double)row->ratio[OCC_RATIO_WARPS], row->variance,
                  row->idle, row->gradient, row->offset_ns, row->phase % OCC_CLUSTERS);
    for (uint32_t k = 0; k < row->n; k++) {
        uint32_t column = row->entries[k].column, column_index = *occ_column_index(a, column);
        (void)fprintf(out, "%s[%d, %u, %.17g, %.17g]", k ? ", " : "",
                      column_index == OCC_NONE ? -1 : (int)column_index, column % OCC_COLUMNS,
                      (double)row->entries[k].share, a->regressors[column / OCC_COLUMNS].bound);
    }
    (void)fprintf(out, "]]");
}

void dump_solution(void *context, const struct occ_attribution *a, const struct occ_solution *s)
{
    FILE *out = stdout;
    bool is_first = true;
    (void)context;
    if (++n_solutions != SOLUTION)
        return;
    (void)fprintf(out, "{\n");
    write_constants(out, a, s);
    write_columns(out, a, s);
    (void)fprintf(out, "\"rows\": [\n");
    for (const struct occ_row *row = s->from->first; row; row = row->next) {
        if (!isfinite(row->ratio[OCC_RATIO_WARPS]))
            continue;
        (void)fprintf(out, "%s", is_first ? "" : ",\n");
        write_row(out, a, row);
        is_first = false;
    }
    (void)fprintf(out, "]\n}\n");
}
