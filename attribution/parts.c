/* Graphs: nodes of one configuration may differ, as by their inputs, and their fixed order hides which of
 * them do. A node's occupancy is its configuration's mean plus the difference of its part plus its own
 * difference. A part's difference is an unknown of the equations, with a prior whose standard deviation is
 * learnt. Nodes' own differences are no unknowns but errors: their effect on each value is computed. See
 * state.h. */
#include <string.h>

#include "equations.h"
#include "state.h"

/* True if the node's difference has a part in rows. */
static bool has_part(const struct occ_attribution *a, const struct occ_node *node)
{
    return node->regressor != OCC_NONE && a->regressors[node->regressor].n_nodes > 1 &&
           a->regressors[node->regressor].column_index[0] != OCC_NONE &&
           node->last_ns >= a->joined_ns - WINDOW_NS;
}

/* In each part are nodes of one configuration that follow each other, as far as their order is known from
 * their first launches. Each node has its own part if there is room. */
void occ_parts_number(struct occ_attribution *a, struct occ_solution *s)
{
    double room = fmin(OCC_PARTS_MAX, s->rows / 2 - s->means_end), shared = 0, configurations = 0, seen = 0;
    for (size_t i = 0; i < a->n_regressors; i++)
        a->regressors[i].segment = OCC_NONE;
    for (size_t i = 0; i < a->nodes.n; i++) {
        struct occ_node *node = &a->nodes.at[i];
        node->column = has_part(a, node) ? a->regressors[node->regressor].column_index[0] : OCC_NONE;
        if (node->column == OCC_NONE)
            continue;
        configurations += a->regressors[node->regressor].segment == OCC_NONE;
        a->regressors[node->regressor].segment = OCC_NONE - 1;
        shared++;
    }
    double segments = shared <= room ? shared : floor(room / configurations);
    for (size_t i = 0; i < a->nodes.n && segments > 1; i++) {
        struct occ_node *node = &a->nodes.at[i];
        if (node->column == OCC_NONE)
            continue;
        struct occ_regressor *r = &a->regressors[node->regressor];
        uint32_t segment = (uint32_t)(seen++ * segments / shared);
        if (r->segment != segment)
            r->part = s->n++;
        r->segment = segment;
        node->column = r->part;
    }
    s->parts_end = s->n;
}

/* Sets the number of nodes and the weight of each part. */
void occ_parts_weigh(const struct occ_attribution *a, struct occ_solution *s)
{
    for (size_t i = 0; i < a->nodes.n && s->first_response == OCC_RATIO_WARPS; i++) {
        const struct occ_node *node = &a->nodes.at[i];
        struct occ_column *part = node->column != OCC_NONE ? &s->columns[node->column] : NULL;
        if (!part)
            continue;
        part->nodes++;
        s->is_pooled |= part->nodes > 1;
        part->regressor = node->regressor;
        part->mean = *occ_column_index(a, node->regressor * OCC_COLUMNS);
        part->weight += node->launch_ns;
        s->columns[part->mean].pooled += node->launch_ns;
    }
    for (uint32_t i = s->means_end; i < s->parts_end; i++) {
        double all_ns = s->columns[s->columns[i].mean].pooled;
        s->columns[i].weight = all_ns > 0 ? s->columns[i].weight / all_ns : 0;
    }
}

/* The standard deviation of a part's difference to its configuration. */
double occ_parts_sd(const struct occ_attribution *a, const struct occ_column *part)
{
    return a->estimate.parts_sd * a->regressors[part->regressor].bound / sqrt(part->nodes);
}

/* Estimates the standard deviation between nodes again: squares of the parts' differences over the number of
 * parts that the rows determine (MacKay, Bayesian interpolation, 1992). */
void occ_parts_learn(struct occ_attribution *a, struct occ_solution *s)
{
    double squares = PARTS_SD_WEIGHT * PARTS_SD * PARTS_SD, determined = PARTS_SD_WEIGHT;
    for (uint32_t i = s->means_end; i < s->parts_end; i++) {
        double sd = occ_parts_sd(a, &s->columns[i]), relative = s->x[i] / sd * a->estimate.parts_sd;
        squares += relative * relative;
        determined += fmax(1 - *occ_equations_at(s->inverse, i, i) / (sd * sd), 0);
    }
    if (s->parts_end > s->means_end)
        a->estimate.parts_sd = fmin(fmax(sqrt(squares / determined), PARTS_SD_MIN), PRIOR_SD);
}

/* Adds what a row gives to the scores of its nodes: (change of each value by the row) x (share of the node).
 */
static void score_row(struct occ_solution *s, const struct occ_row *row, const struct occ_observation *p,
                      const double *change, double *by_row)
{
    uint32_t n = s->n_scored;
    memset(by_row, 0, n * sizeof *by_row);
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; k < n; k++)
            by_row[k] += p->share[i] / p->variance * change[(size_t)p->column_index[i] * n + k];
    for (uint32_t i = 0; i < row->n_nodes; i++) {
        float *score = s->node_score + (size_t)occ_row_nodes(row)[i].column * n;
        for (uint32_t k = 0; k < n; k++)
            score[k] += (float)by_row[k] * occ_row_nodes(row)[i].share;
    }
}

/* Fills in change: by column, how each value changes with the column's right-hand side. */
static void find_changes(struct occ_solution *s, double *change)
{
    uint32_t n = s->n_scored;
    for (uint32_t c = 0; c < s->n; c++) {
        for (uint32_t k = 0; k < n; k++)
            change[(size_t)c * n + k] = *occ_equations_at(s->inverse, OCC_SPECIAL + k, c);
        for (uint32_t i = s->means_end; i < s->parts_end; i++)
            change[(size_t)c * n + s->columns[i].mean - OCC_SPECIAL] +=
                s->columns[i].weight * *occ_equations_at(s->inverse, i, c);
    }
}

void occ_parts_score(struct occ_attribution *a, struct occ_solution *s)
{
    struct occ_observation p;
    double *change, cost = 0;
    if (!s->is_pooled)
        return;
    size_t n = s->n_scored = s->means_end - OCC_SPECIAL;
    s->node_score = n * a->nodes.n <= SCORES_MAX ? calloc(n * a->nodes.n, sizeof *s->node_score) : NULL;
    change = s->node_score ? calloc((s->n + 1) * n, sizeof *change) : NULL;
    s->lacks_scores = !change;
    if (!change)
        return;
    find_changes(s, change);
    for (const struct occ_row *row = s->from->first; row; row = row->next) {
        if (!occ_observation_make(a, s, row, &p))
            continue;
        score_row(s, row, &p, change, change + (size_t)s->n * n);
        cost += (double)(p.n + row->n_nodes) * (double)n;
    }
    a->estimate.due_ns += (int64_t)(cost * SCORE_NS / COST_MAX);
    for (size_t i = 0; i < a->nodes.n; i++) {
        const struct occ_node *node = &a->nodes.at[i];
        if (node->column == OCC_NONE)
            continue;
        const struct occ_regressor *r = &a->regressors[node->regressor];
        if (r->launch_ns > 0)
            s->node_score[i * n + r->column_index[0] - OCC_SPECIAL] -=
                (float)(node->launch_ns / r->launch_ns);
    }
    free(change);
}

double occ_parts_variance(const struct occ_attribution *a, struct occ_solution *s, const uint32_t *means,
                          const double *weights, uint32_t n)
{
    double sum = 0;
    if (s->lacks_scores)
        return INFINITY;
    if (!s->node_score)
        return 0;
    for (uint32_t i = 0; i < s->parts_end; i++)
        s->columns[i].pooled = 0;
    for (size_t i = 0; i < a->nodes.n; i++) {
        const struct occ_node *node = &a->nodes.at[i];
        double score = 0;
        if (node->column == OCC_NONE)
            continue;
        double bound = a->regressors[node->regressor].bound;
        for (uint32_t k = 0; k < n; k++)
            score += weights[k] * (double)s->node_score[i * s->n_scored + means[k] - OCC_SPECIAL];
        struct occ_column *pool = &s->columns[node->column];
        pool->pooled += score * bound;
        sum += score * bound * score * bound;
    }
    for (uint32_t i = OCC_SPECIAL; i < s->parts_end; i++)
        sum -=
            s->columns[i].nodes > 0 ? s->columns[i].pooled * s->columns[i].pooled / s->columns[i].nodes : 0;
    return fmax(sum, 0) * a->estimate.parts_sd * a->estimate.parts_sd;
}
