/* Layers of a model from the ranges of its launches; see layers.h. No state; any thread. */
#include "layers.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer_tree.h"
#include "support/cleanup.h"
#include "support/error.h"
#include "support/median.h"

enum { OUTLIER_COUNT_MIN = 4 };
#define NORMAL_MAD 0.6745 /* median of the absolute differences of a normal distribution / its deviation */

/* The layers of one pass. Arrays have an item for each node of the tree `folded`. */
struct pass {
    struct occ_layer_tree plain, folded;
    uint32_t *count, *first_plain;      /* nodes of `plain` folded into the node: number, the first one */
    uint32_t *plain_from, *plain_order; /* nodes of `plain`, grouped by the node that they are folded into */
    uint32_t *child_from, *child_order; /* children, grouped by parent, the longest time first */
    uint32_t *line, *own_line; /* own_line: of launches outside of the children; OCC_NO_LAYER: none */
};

struct work {
    struct pass pass[2]; /* forward or unknown; backward */
    const struct occ_layer_options *options;
    struct occ_layers *out;
    double *differences; /* scratch: one value for each node of the largest group of folded nodes */
    uint32_t *node_of;   /* node of `folded` of each item of the totals; 0: no range */
};

/* ---- names ---- */

size_t occ_layer_name_bytes(const char *name, size_t bytes)
{
    size_t n = bytes;
    n -= n > 0 && (name[n - 1] == ']' || name[n - 1] == ')');
    size_t end = n;
    while (n > 0 && isdigit((unsigned char)name[n - 1]))
        n--;
    bool has_number = n < end && n > 1 && strchr("_.-#[( ", name[n - 1]) != NULL;
    return has_number ? n - 1 : bytes;
}

static bool is_unfolded(const struct occ_layer_options *options, const char *name, size_t bytes)
{
    return options->unfold && strlen(options->unfold) == bytes && memcmp(options->unfold, name, bytes) == 0;
}

static const char *text_of(struct work *w, const struct occ_layer_node *node)
{
    return occ_arena_part(&w->out->memory, node->name, node->name_bytes);
}

static const char *join(struct work *w, const char *left, const char *right)
{
    size_t n = strlen(left), bytes = n + strlen(right) + 2;
    char *text = occ_arena_bytes(&w->out->memory, bytes);
    if (!text)
        return "?";
    memcpy(text, left, n);
    text[n] = '/';
    memcpy(text + n + 1, right, bytes - n - 1);
    return text;
}

/* ---- building ---- */

/* Adds the path and its totals to the plain tree and the folded tree of the pass. False: no memory. */
static bool add_path(struct work *w, struct pass *pass, const struct occ_range_totals *totals,
                     uint32_t *ret_node)
{
    uint32_t plain = 0, folded = 0;
    const char *name = totals->path;
    for (unsigned depth = 1; *name; depth++) {
        size_t bytes = depth < OCC_LAYERS_DEPTH_MAX ? strcspn(name, "/") : strlen(name);
        size_t key_bytes = occ_layer_name_bytes(name, bytes);
        if (depth > 1 && !w->options->with_operators && memmem(name, bytes, "::", 2))
            break;
        if (is_unfolded(w->options, name, key_bytes))
            key_bytes = bytes;
        plain = occ_layer_tree_child(&pass->plain, plain, name, bytes);
        folded =
            plain == OCC_NO_NODE ? OCC_NO_NODE : occ_layer_tree_child(&pass->folded, folded, name, key_bytes);
        if (folded == OCC_NO_NODE)
            return false;
        pass->plain.nodes[plain].folded = folded;
        name += bytes + (name[bytes] == '/');
    }
    occ_layer_tree_add(&pass->plain, plain, totals);
    occ_layer_tree_add(&pass->folded, folded, totals);
    *ret_node = folded;
    return true;
}

static int compare_children(const void *left, const void *right, void *context)
{
    const struct occ_layer_node *nodes = context, *a = &nodes[*(const uint32_t *)left],
                                *b = &nodes[*(const uint32_t *)right];
    if (a->parent != b->parent)
        return (a->parent > b->parent) - (a->parent < b->parent);
    if (a->time_s < b->time_s || a->time_s > b->time_s)
        return a->time_s < b->time_s ? 1 : -1;
    return (a > b) - (a < b);
}

static int compare_folded(const void *left, const void *right, void *context)
{
    const struct occ_layer_node *nodes = context, *a = &nodes[*(const uint32_t *)left],
                                *b = &nodes[*(const uint32_t *)right];
    if (a->folded != b->folded)
        return (a->folded > b->folded) - (a->folded < b->folded);
    return (a > b) - (a < b);
}

/* Sorts the tree's nodes, except the root, by group into `order`: group k is at the positions from[k] to
 * from[k + 1] - 1. */
static void group(const struct occ_layer_tree *tree, uint32_t *order, uint32_t *from, uint32_t groups,
                  bool by_parent)
{
    uint32_t next = 0;
    for (uint32_t i = 1; i < tree->n; i++)
        order[i - 1] = i;
    if (tree->n > 2)
        qsort_r(order, tree->n - 1, sizeof *order, by_parent ? compare_children : compare_folded,
                tree->nodes);
    for (uint32_t i = 0; i + 1 < tree->n; i++) {
        const struct occ_layer_node *node = &tree->nodes[order[i]];
        while (next <= (by_parent ? node->parent : node->folded))
            from[next++] = i;
    }
    while (next <= groups)
        from[next++] = tree->n - 1;
}

static bool index_pass(struct work *w, struct pass *pass)
{
    struct occ_arena *memory = &w->out->memory;
    uint32_t n = pass->folded.n;
    occ_layer_tree_sum(&pass->plain);
    occ_layer_tree_sum(&pass->folded);
    pass->count = occ_arena_get(memory, n, sizeof *pass->count);
    pass->first_plain = occ_arena_get(memory, n, sizeof *pass->first_plain);
    pass->plain_from = occ_arena_get(memory, (size_t)n + 1, sizeof *pass->plain_from);
    pass->child_from = occ_arena_get(memory, (size_t)n + 1, sizeof *pass->child_from);
    pass->plain_order = occ_arena_get(memory, pass->plain.n, sizeof *pass->plain_order);
    pass->child_order = occ_arena_get(memory, n, sizeof *pass->child_order);
    pass->line = occ_arena_get(memory, n, sizeof *pass->line);
    pass->own_line = occ_arena_get(memory, n, sizeof *pass->own_line);
    if (memory->failed)
        return false;
    for (uint32_t i = 0; i < n; i++)
        pass->line[i] = pass->own_line[i] = OCC_NO_LAYER;
    group(&pass->plain, pass->plain_order, pass->plain_from, n, false);
    group(&pass->folded, pass->child_order, pass->child_from, n, true);
    for (uint32_t i = 1; i < n; i++) {
        pass->count[i] = pass->plain_from[i + 1] - pass->plain_from[i];
        pass->first_plain[i] = pass->plain_order[pass->plain_from[i]];
    }
    return true;
}

/* ---- outliers ---- */

/* Returns the name of a layer, with the folded layers around it. */
static const char *name_instance(struct work *w, const struct pass *pass, uint32_t plain)
{
    const struct occ_layer_node *nodes = pass->plain.nodes;
    const char *name = text_of(w, &nodes[plain]);
    for (uint32_t up = nodes[plain].parent; up != 0 && pass->count[nodes[up].folded] > 1;
         up = nodes[up].parent)
        name = join(w, text_of(w, &nodes[up]), name);
    return name;
}

static struct occ_layer_outlier find_outlier(struct work *w, const struct pass *pass, uint32_t folded)
{
    const uint32_t *members = pass->plain_order + pass->plain_from[folded];
    const struct occ_layer_node *nodes = pass->plain.nodes;
    uint32_t n = pass->count[folded], farthest = 0;
    if (n < OUTLIER_COUNT_MIN)
        return (struct occ_layer_outlier){0};
    for (uint32_t i = 0; i < n; i++)
        w->differences[i] = nodes[members[i]].time_s;
    double middle = occ_median(w->differences, n);
    for (uint32_t i = 0; i < n; i++) {
        w->differences[i] = fabs(nodes[members[i]].time_s - middle);
        farthest = w->differences[i] > w->differences[farthest] ? i : farthest;
    }
    double largest = w->differences[farthest], deviation = occ_median(w->differences, n) / NORMAL_MAD;
    if (!(middle > 0) || largest <= OCC_LAYER_OUTLIER_RATIO * middle ||
        largest <= OCC_LAYER_OUTLIER_SIGMAS * deviation)
        return (struct occ_layer_outlier){0};
    return (struct occ_layer_outlier){name_instance(w, pass, members[farthest]),
                                      nodes[members[farthest]].time_s / middle};
}

/* ---- lines ---- */

static uint32_t children_of(const struct pass *pass, uint32_t node)
{
    return pass->child_from[node + 1] - pass->child_from[node];
}

static uint32_t first_child(const struct pass *pass, uint32_t node)
{
    return pass->child_order[pass->child_from[node]];
}

static const char *name_of(struct work *w, const struct pass *pass, uint32_t node)
{
    const struct occ_layer_node *shown =
        pass->count[node] > 1 ? &pass->folded.nodes[node] : &pass->plain.nodes[pass->first_plain[node]];
    return text_of(w, shown);
}

static double ratio_or_nan(double part, double whole)
{
    return whole > 0 ? part / whole : (double)NAN;
}

/* Returns true if a line of this time is large enough to show; counts smaller lines as hidden. */
static bool is_shown(struct work *w, double time_s)
{
    bool is_hidden = ratio_or_nan(time_s, w->out->time_s) < w->options->min_share;
    w->out->hidden += is_hidden;
    return !is_hidden;
}

/* Adds a line for a node's launches outside of its children. */
static void emit_direct(struct work *w, const struct pass *pass, uint32_t at, unsigned depth)
{
    const struct occ_layer_node *node = &pass->folded.nodes[at];
    if (node->own_launches == 0 || !is_shown(w, node->own_time_s))
        return;
    pass->own_line[at] = (uint32_t)w->out->n;
    w->out->layers[w->out->n++] =
        (struct occ_layer){.depth = depth,
                           .name = "(directly)",
                           .count = 1,
                           .launches = node->own_launches,
                           .time_s = node->own_time_s,
                           .share = ratio_or_nan(node->own_time_s, w->out->time_s),
                           .used = ratio_or_nan(node->own_used_s, node->own_known_s),
                           .worst_kernel = node->own_worst_kernel,
                           .worst_kernel_id = node->own_worst_kernel_id,
                           .is_backward = pass == &w->pass[1]};
}

/* Adds lines for a layer and the layers inside. Recursion ends at OCC_LAYERS_DEPTH_MAX levels. */
static void emit(struct work *w, const struct pass *pass, uint32_t at, unsigned depth)
{
    const char *name = name_of(w, pass, at);
    const struct occ_layer_node *nodes = pass->folded.nodes;
    if (!is_shown(w, nodes[at].time_s))
        return;
    while (children_of(pass, at) == 1 && nodes[at].own_launches == 0 &&
           pass->count[first_child(pass, at)] == pass->count[at]) {
        at = first_child(pass, at);
        name = join(w, name, name_of(w, pass, at));
    }
    pass->line[at] = (uint32_t)w->out->n;
    w->out->layers[w->out->n++] =
        (struct occ_layer){.depth = depth,
                           .name = name,
                           .count = pass->count[at],
                           .launches = nodes[at].launches,
                           .time_s = nodes[at].time_s,
                           .share = ratio_or_nan(nodes[at].time_s, w->out->time_s),
                           .used = ratio_or_nan(nodes[at].used_s, nodes[at].known_s),
                           .worst_kernel = nodes[at].worst_kernel,
                           .worst_kernel_id = nodes[at].worst_kernel_id,
                           .outlier = find_outlier(w, pass, at),
                           .is_backward = pass == &w->pass[1]};
    if (children_of(pass, at) == 0 || (w->options->depth > 0 && depth + 1 >= w->options->depth))
        return;
    size_t before = w->out->n;
    for (uint32_t i = pass->child_from[at]; i < pass->child_from[at + 1]; i++)
        emit(w, pass, pass->child_order[i], depth + 1);
    if (w->out->n > before) /* else the line would repeat the line of the parent */
        emit_direct(w, pass, at, depth + 1);
}

/* Adds the lines of a pass and returns its prefix: the names down to the first layer with own launches or
 * several children. Folded layers and leaves are not in the prefix. */
static const char *emit_pass(struct work *w, const struct pass *pass)
{
    const char *prefix = "";
    uint32_t at = 0;
    while (children_of(pass, at) == 1 && pass->folded.nodes[at].own_launches == 0 &&
           children_of(pass, first_child(pass, at)) > 0 && pass->count[first_child(pass, at)] == 1) {
        at = first_child(pass, at);
        prefix = *prefix ? join(w, prefix, name_of(w, pass, at)) : name_of(w, pass, at);
    }
    for (uint32_t i = pass->child_from[at]; i < pass->child_from[at + 1]; i++)
        emit(w, pass, pass->child_order[i], 0);
    emit_direct(w, pass, at, 0);
    return prefix;
}

/* ---- parents, and lines of the totals ---- */

/* A node without a line is in the line of the nearest layer around it. */
static uint32_t line_of(const struct pass *pass, uint32_t node)
{
    if (pass->own_line[node] != OCC_NO_LAYER)
        return pass->own_line[node];
    while (node != 0 && pass->line[node] == OCC_NO_LAYER)
        node = pass->folded.nodes[node].parent;
    return pass->line[node];
}

static void find_parents(const struct occ_layers *layers)
{
    uint32_t last[OCC_LAYERS_DEPTH_MAX + 1] = {0}; /* the last line of each depth */
    for (uint32_t i = 0; i < layers->n; i++) {
        unsigned depth = layers->layers[i].depth;
        layers->layers[i].parent = depth > 0 ? last[depth - 1] : OCC_NO_LAYER;
        last[depth] = i;
    }
}

static void find_lines(const struct work *w, const struct occ_range_totals *totals, size_t n)
{
    for (size_t i = 0; i < n; i++)
        w->out->line_of[i] =
            w->node_of[i] == 0 ? OCC_NO_LAYER : line_of(&w->pass[totals[i].is_backward], w->node_of[i]);
}

/* ---- all ---- */

static bool build(struct work *w, const struct occ_range_totals *totals, size_t n)
{
    double uncovered_s = 0;
    w->node_of = occ_arena_get(&w->out->memory, n + 1, sizeof *w->node_of);
    w->out->line_of = occ_arena_get(&w->out->memory, n + 1, sizeof *w->out->line_of);
    if (w->out->memory.failed || !occ_layer_tree_init(&w->pass[0].plain) ||
        !occ_layer_tree_init(&w->pass[0].folded) || !occ_layer_tree_init(&w->pass[1].plain) ||
        !occ_layer_tree_init(&w->pass[1].folded))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!totals[i].path || !totals[i].path[0])
            uncovered_s += isfinite(totals[i].time_s) && totals[i].time_s > 0 ? totals[i].time_s : 0;
        else if (!add_path(w, &w->pass[totals[i].is_backward], &totals[i], &w->node_of[i]))
            return false;
    }
    if (!index_pass(w, &w->pass[0]) || !index_pass(w, &w->pass[1]))
        return false;
    double covered_s = w->pass[0].folded.nodes[0].time_s + w->pass[1].folded.nodes[0].time_s;
    w->out->time_s = covered_s + uncovered_s;
    w->out->covered_ratio = ratio_or_nan(covered_s, w->out->time_s);
    return true;
}

static bool make(struct work *w, const struct occ_range_totals *totals, size_t n)
{
    if (!build(w, totals, n))
        return false;
    size_t nodes = (size_t)w->pass[0].folded.n + w->pass[1].folded.n;
    size_t plain = (size_t)w->pass[0].plain.n + w->pass[1].plain.n;
    w->out->layers = occ_arena_get(&w->out->memory, 2 * nodes, sizeof *w->out->layers);
    w->differences = occ_arena_get(&w->out->memory, plain, sizeof *w->differences);
    if (w->out->memory.failed)
        return false;
    w->out->prefix = emit_pass(w, &w->pass[0]);
    w->out->backward_prefix = emit_pass(w, &w->pass[1]);
    find_parents(w->out);
    find_lines(w, totals, n);
    return !w->out->memory.failed;
}

int occ_layers_make(const struct occ_range_totals *totals, size_t n, const struct occ_layer_options *options,
                    struct occ_layers *ret_layers)
{
    struct occ_layers layers = {0};
    struct work w = {.options = options, .out = &layers};
    bool done = make(&w, totals, n);
    for (unsigned i = 0; i < 2; i++) {
        occ_layer_tree_free(&w.pass[i].plain);
        occ_layer_tree_free(&w.pass[i].folded);
    }
    if (!done) {
        occ_layers_free(&layers);
        return OCC_E_NO_MEMORY;
    }
    *ret_layers = layers;
    return 0;
}

void occ_layers_free(struct occ_layers *layers)
{
    occ_arena_free(layers->memory.blocks);
    *layers = (struct occ_layers){0};
}
