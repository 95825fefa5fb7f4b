/* See levels.h. Any thread. */
#include "levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"
#include "support/array.h"
#include "support/cleanup.h"

/* Chance of any false verdict in a scope. The total has no control: a single slow step changes it. */
#define MAX_Q       0.05
#define MAX_Q_TOTAL 0.01

/* Launches of a kernel, for each of the kernel that replaced it: 1 or more, less the ends of a run. */
#define REPLACING_MIN 0.9

struct member {
    struct diff_cell cell;
    const struct diff_pair *pair;
    const char *names[DIFF_SCOPE_COUNT]; /* name of its group in each scope; "": in no group */
    const char *name, *name_b;           /* name of its group in the scope being judged; name_b: "": none */
    bool is_changed;                     /* in a group that is worse or better */
};

struct work {
    const struct diff *diff;
    double floor, min_share;
    struct member *members, **sorted; /* sorted: by name */
    size_t n;
    const struct diff_cell **cells;  /* cells of the group being judged */
    struct diff_weighted *values;    /* scratch */
    const char **layers, **families; /* layer and family of each pair */
    bool *is_mixed;                  /* its kernels did not replace each other for sure */
    struct diff_levels *levels;
    size_t allocated;
};

static void work_free(const struct work *w)
{
    free(w->members);
    free(w->sorted);
    free(w->cells);
    free(w->values);
    free(w->layers);
    free(w->families);
    free(w->is_mixed);
}

bool diff_is_change(enum diff_verdict verdict)
{
    return verdict == DIFF_WORSE || verdict == DIFF_BETTER;
}

/* ---- members ---- */

static void keep_common(const char **name, const char *own)
{
    own = own ? own : "";
    *name = !*name || strcmp(*name, own) == 0 ? own : "";
}

/* True if one kernel has the place of several, each with a launch, or more, for each launch of the one, but
 * for the ends of a run. */
static bool is_replacement(const struct diff *diff, const struct diff_pair *pair)
{
    bool is_split = pair->kernels[DIFF_A] == 1;
    int many = is_split ? DIFF_B : DIFF_A, one = is_split ? DIFF_A : DIFF_B;
    double each = (double)pair->sums[many].launches / pair->kernels[many];
    double expected = (double)pair->sums[one].launches * (is_split ? diff->work : 1 / diff->work);
    return pair->kernels[one] == 1 && each >= REPLACING_MIN * expected;
}

/* A pair with several kernels may be a place between neighbours that has now one kernel and now another, or a
 * place in other ranges for kernels that A has elsewhere. */
static void find_mixed(struct work *w)
{
    for (uint32_t i = 0; i < w->diff->n_pairs; i++) {
        const struct diff_pair *pair = &w->diff->pairs[i];
        bool has_several = pair->kernels[DIFF_A] > 1 || pair->kernels[DIFF_B] > 1;
        w->is_mixed[i] = has_several && !is_replacement(w->diff, pair);
    }
    const struct diff_item *items = w->diff->items;
    for (uint32_t first = 0, end; first < w->diff->n_items; first = end) { /* items of one kernel */
        bool is_in_a = false;
        for (end = first;
             end < w->diff->n_items && strcmp(items[end].row->mangled, items[first].row->mangled) == 0; end++)
            is_in_a |= items[end].side == DIFF_A;
        for (uint32_t i = first; i < end; i++)
            w->is_mixed[items[i].pair] |=
                is_in_a && items[i].side == DIFF_B && w->diff->pairs[items[i].pair].kernels[DIFF_B] > 1;
    }
}

/* The layer of all items of a pair, and the family of A's; "": they have several, or none. A kernel with
 * another name may be in another family, or in none that is known. */
static void find_names(struct work *w)
{
    for (uint32_t i = 0; i < w->diff->n_items; i++) {
        const struct diff_item *item = &w->diff->items[i];
        keep_common(&w->layers[item->pair], item->layer);
        if (item->side == DIFF_A || w->is_mixed[item->pair])
            keep_common(&w->families[item->pair], item->row->family);
    }
}

/* B's kernels if their names are others than A's; else "". */
static const char *other_kernel_of(const struct diff_kernel_sets *kernels, size_t pair)
{
    const char *a = kernels->of[DIFF_A][pair], *b = kernels->of[DIFF_B][pair];
    return strcmp(a, b) == 0 ? "" : b;
}

static void find_members(struct work *w)
{
    double pooled = 0, all = 0;
    for (uint32_t i = 0; i < w->diff->n_pairs; i++) {
        const struct diff_pair *pair = &w->diff->pairs[i];
        struct member *m = &w->members[w->n];
        double ns = (double)pair->sums[DIFF_A].total_ns + (double)pair->sums[DIFF_B].total_ns;
        all += ns;
        if (!diff_cell_of(w->diff, i, &m->cell))
            continue;
        m->pair = pair;
        m->names[DIFF_SCOPE_TOTAL] = "";
        m->names[DIFF_SCOPE_LAYER] = w->layers[i];
        m->names[DIFF_SCOPE_FAMILY] = w->families[i];
        m->names[DIFF_SCOPE_KERNEL] = w->is_mixed[i] ? "" : w->levels->kernels.of[DIFF_A][i];
        m->name_b = "";
        w->sorted[w->n++] = m;
        pooled += ns;
    }
    w->levels->pooled_share = pooled / all;
}

static int by_name(const void *left, const void *right)
{
    const struct member *a = *(struct member *const *)left, *b = *(struct member *const *)right;
    int64_t id_a = a->pair->main_item[DIFF_A]->row->id, id_b = b->pair->main_item[DIFF_A]->row->id;
    int order = strcmp(a->name, b->name);
    if (order == 0)
        order = strcmp(a->name_b, b->name_b);
    if (order == 0)
        order = strcmp(a->names[DIFF_SCOPE_KERNEL], b->names[DIFF_SCOPE_KERNEL]);
    if (order == 0)
        order = (id_a > id_b) - (id_a < id_b);
    return order ? order : (a->pair > b->pair) - (a->pair < b->pair);
}

static bool is_same_configuration(const struct member *a, const struct member *b)
{
    return strcmp(a->names[DIFF_SCOPE_KERNEL], b->names[DIFF_SCOPE_KERNEL]) == 0 &&
           a->pair->main_item[DIFF_A]->row->id == b->pair->main_item[DIFF_A]->row->id;
}

/* ---- groups ---- */

/* Members of a group: sorted[from] to sorted[until - 1]. */
struct span {
    size_t from, until;
};

static struct diff_group sum_group(const struct work *w, enum diff_scope scope, struct span span)
{
    struct diff_group g = {.scope = scope, .name = w->sorted[span.from]->name};
    g.name_b = w->sorted[span.from]->name_b[0] ? w->sorted[span.from]->name_b : NULL;
    for (size_t i = span.from; i < span.until; i++) {
        const struct diff_pair *pair = w->sorted[i]->pair;
        for (int side = 0; side < DIFF_SIDES; side++) {
            g.launches[side] += pair->sums[side].launches;
            g.total_ns[side] += pair->sums[side].total_ns;
        }
        if (!g.main_pair || pair->sums[DIFF_A].total_ns > g.main_pair->sums[DIFF_A].total_ns)
            g.main_pair = pair;
        g.is_for_work |= w->sorted[i]->cell.depends_on_launches;
        g.configurations += i == span.from || !is_same_configuration(w->sorted[i - 1], w->sorted[i]) ? 1 : 0;
    }
    for (int side = 0; side < DIFF_SIDES; side++)
        if (w->diff->total_ns[side] > 0)
            g.share = fmax(g.share, (double)g.total_ns[side] / (double)w->diff->total_ns[side]);
    return g;
}

/* The median change outside of the span. */
static bool control_of(struct work *w, struct span span, struct diff_change *ret_control)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        if (i < span.from || i >= span.until)
            w->values[n++] =
                (struct diff_weighted){w->sorted[i]->cell.change, w->sorted[i]->cell.control_weight};
    return diff_control(w->values, n, ret_control);
}

static void judge_group(struct work *w, struct span span, struct diff_group *g)
{
    struct diff_change control;
    for (size_t i = span.from; i < span.until; i++)
        w->cells[i - span.from] = &w->sorted[i]->cell;
    struct diff_change change = diff_pool(w->diff, w->cells, span.until - span.from, w->values);
    g->ratio = diff_change_ratio(&change, w->floor);
    g->to_control = DIFF_RATIO_UNKNOWN;
    g->q = g->ratio.p;
    if (g->scope == DIFF_SCOPE_TOTAL || !control_of(w, span, &control))
        return;
    struct diff_change less = diff_less_control(&change, &control);
    bool agree = (less.change > 0) == (change.change > 0);
    g->to_control = diff_change_ratio(&less, w->floor);
    if (!isnan(g->q)) /* fmax() ignores NaN */
        g->q = agree ? fmax(g->q, g->to_control.p) : 1;
}

static int add_group(struct work *w, enum diff_scope scope, struct span span, struct occ_error *err)
{
    struct diff_group g = sum_group(w, scope, span);
    if (scope != DIFF_SCOPE_TOTAL && (g.name[0] == '\0' || g.share < w->min_share))
        return 0;
    if (!occ_grow((void **)&w->levels->groups, &w->allocated, w->levels->n, UINT32_MAX,
                  sizeof *w->levels->groups))
        return occ_no_memory(err);
    judge_group(w, span, &g);
    w->levels->groups[w->levels->n++] = g;
    return 0;
}

/* ---- verdicts ---- */

static enum diff_verdict verdict_of(const struct work *w, const struct diff_group *g)
{
    double floor = w->floor;
    if (g->scope == DIFF_SCOPE_TOTAL && w->levels->pooled_share < DIFF_TOTAL_SHARE_MIN)
        return DIFF_UNDECIDED;
    if (g->ratio.low >= 1 / (1 + floor) && g->ratio.high <= 1 + floor)
        return DIFF_SAME;
    if (!(g->q <= (g->scope == DIFF_SCOPE_TOTAL ? MAX_Q_TOTAL : MAX_Q)))
        return DIFF_UNDECIDED;
    return g->ratio.ratio > 1 ? DIFF_WORSE : DIFF_BETTER;
}

/* Marks the members in a group with a change. */
static void mark_changed(struct work *w, const struct diff_group *g)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->sorted[i]->name, g->name) == 0 &&
            strcmp(w->sorted[i]->name_b, g->name_b ? g->name_b : "") == 0)
            w->sorted[i]->is_changed = true;
}

static int conclude(struct work *w, size_t first, struct occ_error *err)
{
    size_t n = w->levels->n - first;
    if (n == 0)
        return 0;
    struct diff_group *groups = w->levels->groups + first;
    _cleanup_(occ_freep) double *q = calloc(n, sizeof *q);
    for (size_t i = 0; q && i < n; i++)
        q[i] = groups[i].q;
    if (!q || !diff_adjust_any(q, n))
        return occ_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        groups[i].q = q[i];
        groups[i].verdict = verdict_of(w, &groups[i]);
    }
    return 0;
}

/* With different numbers of runs the time of a run. */
static double moved_ns(const struct diff *diff, const struct diff_group *g)
{
    return fabs((double)g->total_ns[DIFF_B] / diff_per_runs(diff, DIFF_B) -
                (double)g->total_ns[DIFF_A] / diff_per_runs(diff, DIFF_A));
}

static int by_moved_time(const void *left, const void *right, void *diff)
{
    const struct diff_group *a = left, *b = right;
    double moved_a = moved_ns(diff, a), moved_b = moved_ns(diff, b);
    if (moved_a < moved_b || moved_a > moved_b)
        return moved_a < moved_b ? 1 : -1;
    int order = strcmp(a->name, b->name);
    return order ? order : strcmp(a->name_b ? a->name_b : "", b->name_b ? b->name_b : "");
}

static bool is_same_group(const struct member *a, const struct member *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->name_b, b->name_b) == 0;
}

/* Sorts the members by the names of their groups in the scope. */
static void sort_members(struct work *w, enum diff_scope scope)
{
    for (size_t i = 0; i < w->n; i++) {
        struct member *m = w->sorted[i];
        m->name = m->names[scope];
        bool has_kernel = scope == DIFF_SCOPE_KERNEL && m->name[0];
        m->name_b = has_kernel ? other_kernel_of(&w->levels->kernels, m->cell.pair) : "";
    }
    qsort(w->sorted, w->n, sizeof *w->sorted, by_name);
}

static int make_scope(struct work *w, enum diff_scope scope, struct occ_error *err)
{
    size_t first = w->levels->n;
    int status = 0;
    sort_members(w, scope);
    for (struct span span = {0, 0}; span.from < w->n && status == 0; span.from = span.until) {
        span.until = span.from + 1;
        while (span.until < w->n && is_same_group(w->sorted[span.until], w->sorted[span.from]))
            span.until++;
        status = add_group(w, scope, span, err);
    }
    if (status == 0)
        status = conclude(w, first, err);
    for (size_t i = first; i < w->levels->n && scope != DIFF_SCOPE_TOTAL; i++)
        if (diff_is_change(w->levels->groups[i].verdict))
            mark_changed(w, &w->levels->groups[i]);
    if (w->levels->n > first)
        qsort_r(w->levels->groups + first, w->levels->n - first, sizeof *w->levels->groups, by_moved_time,
                (void *)w->diff);
    return status;
}

static void find_control(struct work *w)
{
    struct diff_change control;
    const struct member *last = NULL;
    size_t n = 0;
    w->levels->control = DIFF_RATIO_UNKNOWN;
    for (size_t i = 0; i < w->n; i++) {
        const struct member *m = w->sorted[i];
        if (m->is_changed)
            continue;
        w->levels->control_configurations += !last || !is_same_configuration(last, m) ? 1 : 0;
        w->values[n++] = (struct diff_weighted){m->cell.change, m->cell.control_weight};
        last = m;
    }
    if (diff_control(w->values, n, &control))
        w->levels->control = diff_change_ratio(&control, w->floor);
}

static int work_init(struct work *w, struct occ_error *err)
{
    size_t n = (size_t)w->diff->n_pairs + 1;
    *w->levels = (struct diff_levels){0};
    w->members = calloc(n, sizeof *w->members);
    w->sorted = calloc(n, sizeof *w->sorted);
    w->cells = calloc(n, sizeof *w->cells);
    w->values = calloc(n, sizeof *w->values);
    w->layers = calloc(n, sizeof *w->layers);
    w->families = calloc(n, sizeof *w->families);
    w->is_mixed = calloc(n, sizeof *w->is_mixed);
    if (!w->is_mixed || !w->members || !w->sorted || !w->cells || !w->values || !w->layers || !w->families)
        return occ_no_memory(err);
    int status = diff_kernel_sets_make(w->diff, &w->levels->kernels, err);
    if (status != 0)
        return status;
    find_mixed(w);
    find_names(w);
    find_members(w);
    return 0;
}

int diff_levels_make(const struct diff *diff, double floor, double min_share, struct diff_levels *ret_levels,
                     struct occ_error *err)
{
    _cleanup_(work_free) struct work w = {
        .diff = diff, .floor = floor, .min_share = min_share, .levels = ret_levels};
    int status = work_init(&w, err);
    for (enum diff_scope scope = 0; scope < DIFF_SCOPE_COUNT && status == 0; scope++)
        status = make_scope(&w, scope, err);
    if (status == 0)
        find_control(&w);
    return status;
}

bool diff_group_has(const struct diff *diff, const struct diff_levels *levels, const struct diff_group *group,
                    const struct diff_pair *pair)
{
    const struct diff_item *item = pair->main_item[DIFF_A];
    size_t index = (size_t)(pair - diff->pairs);
    if (!item || !pair->main_item[DIFF_B])
        return false;
    const char *const names[DIFF_SCOPE_COUNT] = {[DIFF_SCOPE_TOTAL] = group->name,
                                                 [DIFF_SCOPE_LAYER] = item->layer,
                                                 [DIFF_SCOPE_FAMILY] = item->row->family,
                                                 [DIFF_SCOPE_KERNEL] = levels->kernels.of[DIFF_A][index]};
    const char *name = names[group->scope];
    bool has_name_b =
        group->scope != DIFF_SCOPE_KERNEL ||
        strcmp(group->name_b ? group->name_b : "", other_kernel_of(&levels->kernels, index)) == 0;
    return name && strcmp(name, group->name) == 0 && has_name_b;
}

/* ---- nested groups ---- */

static struct diff_group nested_group(struct work *w, const struct diff_nest *nest, uint32_t at)
{
    struct diff_group g = {.scope = DIFF_SCOPE_LAYER};
    struct span span = {0, 0};
    for (size_t i = 0; i < w->n; i++) {
        uint32_t group = nest->group[w->sorted[i]->cell.pair];
        bool is_inside = group >= at && group < nest->end[at];
        w->sorted[i]->name_b = "";
        w->sorted[i]->name = is_inside ? "" : "outside"; /* by_name() sorts "" first */
        span.until += is_inside ? 1 : 0;
    }
    if (span.until > 0) {
        qsort(w->sorted, w->n, sizeof *w->sorted, by_name);
        g = sum_group(w, DIFF_SCOPE_LAYER, span);
    }
    g.name = "";
    g.name_b = NULL;
    g.ratio = g.to_control = DIFF_RATIO_UNKNOWN;
    g.q = NAN;
    if (span.until > 0 && g.share >= w->min_share)
        judge_group(w, span, &g);
    return g;
}

int diff_levels_nested(const struct diff *diff, double floor, double min_share, const struct diff_nest *nest,
                       struct diff_levels *ret_levels, struct occ_error *err)
{
    _cleanup_(work_free) struct work w = {
        .diff = diff, .floor = floor, .min_share = min_share, .levels = ret_levels};
    int status = work_init(&w, err);
    if (status != 0)
        return status;
    ret_levels->groups = calloc((size_t)nest->n + 1, sizeof *ret_levels->groups);
    if (!ret_levels->groups)
        return occ_no_memory(err);
    for (uint32_t i = 0; i < nest->n; i++)
        ret_levels->groups[ret_levels->n++] = nested_group(&w, nest, i);
    return conclude(&w, 0, err);
}

void diff_levels_free(struct diff_levels *levels)
{
    free(levels->groups);
    diff_kernel_sets_free(&levels->kernels);
    *levels = (struct diff_levels){0};
}
