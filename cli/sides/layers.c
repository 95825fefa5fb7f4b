/* See layers.h. One thread. */
#include "layers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/kernels/layer_names.h"
#include "side_ranges.h"
#include "support/cleanup.h"
#include "texts.h"

#define FIELD(name, key, unit, flags, member, help)                                                          \
    CLI_FIELD(name, key, unit, flags, struct diff_layer_line, member, help)

const struct cli_column diff_layer_columns[] = {
    FIELD("verdict", "verdict", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, verdict,
          "of the time of a launch, pooled over its launch configurations, in relation to all others: worse, "
          "better, same, undecided"),
    FIELD("tree", "tree", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_TEXT_ONLY, tree,
          "the layer below its parent; with a number: layers of this name that are folded into the row"),
    FIELD("layer", "layer", CLI_PLAIN, CLI_LEFT, path,
          "its name and the layers around it, below the prefix; folded layers are without their number"),
    FIELD("depth", "depth", CLI_PLAIN, 0, depth, "0: directly below the prefix"),
    FIELD("count", "layers", CLI_PLAIN, 0, count, "number of folded layers"),
    FIELD("phase", "phase", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_RARE, phase,
          "backward: launched by autograd for the operators of the layer"),
    FIELD("a", "total_duration_ns_a", CLI_DURATION, 0, total_ns[DIFF_A], "time of its launches, of A"),
    FIELD("b", "total_duration_ns_b", CLI_DURATION, 0, total_ns[DIFF_B], "time of its launches, of B"),
    FIELD("time", "time", CLI_PLAIN, CLI_DEFAULT | CLI_TEXT_ONLY | CLI_SPARE(2), times,
          "time of its launches, of A and of B"),
    FIELD("change", "mean_duration_change_ratio", CLI_RATIO, 0, change, "of the time of a launch: B / A - 1"),
    FIELD("low", "change_low_ci95_ratio", CLI_RATIO, 0, low, "lower end of its 95 % confidence interval"),
    FIELD("high", "change_high_ci95_ratio", CLI_RATIO, 0, high, "upper end of the 95 % interval"),
    FIELD("launch", "launch_change", CLI_PLAIN, CLI_DEFAULT | CLI_TEXT_ONLY, interval,
          "change of the time of a launch, with its 95 % interval"),
    FIELD(
        "basis", "basis", CLI_PLAIN, CLI_LEFT, basis,
        "of the change: launch, the time of a launch; work, the time for the same work, since launches of a "
        "part of the layer do other work"),
    FIELD("work", "same_work", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_TEXT_ONLY | CLI_RARE, work,
          "same: the change is that of the time for the same work"),
    FIELD("count_change", "launches_change", CLI_PLAIN, CLI_DEFAULT | CLI_TEXT_ONLY | CLI_RARE | CLI_SPARE(3),
          counts, "launches of A and of B, if they differ"),
    FIELD("share", "time_ratio", CLI_RATIO, CLI_DEFAULT | CLI_SPARE(1), share,
          "the larger of its shares of A's and of B's time"),
    FIELD("launches_a", "launches_a", CLI_PLAIN, 0, launches[DIFF_A], "launches, of A"),
    FIELD("launches_b", "launches_b", CLI_PLAIN, 0, launches[DIFF_B], "launches, of B"),
    FIELD("configs", "launch_configs", CLI_PLAIN, 0, configurations, "pooled launch configurations"),
    FIELD("to_control", "change_to_control_ratio", CLI_RATIO, 0, to_control,
          "change divided by that of all other kernels"),
    FIELD("to_control_low", "change_to_control_low_ci95_ratio", CLI_RATIO, 0, to_control_low,
          "lower end of its 95 % interval"),
    FIELD("to_control_high", "change_to_control_high_ci95_ratio", CLI_RATIO, 0, to_control_high,
          "upper end of its 95 % interval"),
    FIELD("chance", "false_verdict_chance", CLI_RATIO, 0, q, "of any false verdict in the tree"),
    FIELD("prefix", "prefix", CLI_PLAIN, CLI_LEFT, prefix, "the path above all layers of the phase"),
    CLI_COLUMN_END,
};

/* ---- lines of pairs ---- */

struct pair_lines {
    uint32_t *line; /* deepest line with all launches of a pair; DIFF_NO_PAIR: none */
    uint32_t *end;  /* each line's first later line that is not inside it */
    bool *is_seen;  /* an item of the pair was read */
};

static void pair_lines_free(const struct pair_lines *pairs)
{
    free(pairs->line);
    free(pairs->end);
    free(pairs->is_seen);
}

/* The deepest line that is, or is around, both lines. */
static uint32_t common_line(const struct occ_layers *tree, const uint32_t *end, uint32_t a, uint32_t b)
{
    while (a != OCC_NO_LAYER && (a > b || b >= end[a]))
        a = tree->layers[a].parent;
    return a;
}

static bool find_pair_lines(const struct diff *diff, const struct occ_layers *tree, struct pair_lines *p)
{
    p->line = calloc((size_t)diff->n_pairs + 1, sizeof *p->line);
    p->is_seen = calloc((size_t)diff->n_pairs + 1, sizeof *p->is_seen);
    p->end = calloc(tree->n + 1, sizeof *p->end);
    if (!p->line || !p->is_seen || !p->end)
        return false;
    for (uint32_t i = 0; i < tree->n; i++) {
        p->end[i] = i + 1;
        while (p->end[i] < tree->n && tree->layers[p->end[i]].depth > tree->layers[i].depth)
            p->end[i]++;
    }
    for (uint32_t i = 0; i < diff->n_items; i++) {
        uint32_t pair = diff->items[i].pair, line = tree->line_of[i];
        bool is_none = line == OCC_NO_LAYER || (p->is_seen[pair] && p->line[pair] == DIFF_NO_PAIR);
        uint32_t common = is_none            ? OCC_NO_LAYER
                          : p->is_seen[pair] ? common_line(tree, p->end, p->line[pair], line)
                                             : line;
        p->line[pair] = common == OCC_NO_LAYER ? DIFF_NO_PAIR : common;
        p->is_seen[pair] = true;
    }
    return true;
}

/* ---- lines ---- */

static void add_item(struct diff_layers *l, const struct diff_item *item, uint32_t line)
{
    for (; line != OCC_NO_LAYER; line = l->tree.layers[line].parent) {
        l->lines[line].launches[item->side] += item->sums.launches;
        l->lines[line].total_ns[item->side] += item->sums.total_ns;
    }
}

/* Formats a ratio as a percentage without "%": "+1.5". */
static const char *number(char text[16], double change)
{
    (void)snprintf(text, 16, "%+.1f", 100 * change);
    return text;
}

static void fill_line(struct diff_layers *l, uint32_t at, const struct diff *diff)
{
    enum { WIDTH = 34 }; /* columns for a name: a verdict, two times and a change must fit beside it */
    const struct occ_layer *layer = &l->tree.layers[at];
    const struct diff_group *g = &l->verdicts.groups[at];
    struct diff_layer_line *line = &l->lines[at];
    uint32_t a = diff_per_runs(diff, DIFF_A), b = diff_per_runs(diff, DIFF_B);
    const char *per_run = a == b ? "" : " a run";
    uint64_t launches[DIFF_SIDES] = {line->launches[DIFF_A] / a, line->launches[DIFF_B] / b};
    char change[16], low[16], high[16], from[32], to[32];
    line->layer = layer;
    line->group = g;
    line->verdict = diff_verdict_word(g->verdict);
    line->phase = layer->is_backward ? "backward" : NULL;
    line->prefix = layer->is_backward ? l->tree.backward_prefix : l->tree.prefix;
    line->path = layer_path(&l->texts, &l->tree, at);
    line->tree = layer_line_name(&l->texts, layer, WIDTH);
    line->depth = layer->depth;
    line->count = layer->count;
    line->configurations = g->configurations;
    line->basis = g->is_for_work ? "work" : "launch";
    line->work = g->is_for_work ? "same" : NULL;
    line->change = g->ratio.ratio - 1;
    line->low = g->ratio.low - 1;
    line->high = g->ratio.high - 1;
    line->q = g->q;
    line->to_control = g->to_control.ratio - 1;
    line->to_control_low = g->to_control.low - 1;
    line->to_control_high = g->to_control.high - 1;
    for (int side = 0; side < DIFF_SIDES; side++)
        if (diff->total_ns[side] > 0)
            line->share = fmax(line->share, (double)line->total_ns[side] / (double)diff->total_ns[side]);
    if (isnan(g->ratio.ratio))
        (void)snprintf(line->interval, sizeof line->interval, "-");
    else
        (void)snprintf(line->interval, sizeof line->interval, "%s (%s to %s)",
                       diff_change_text(line->change, change), number(low, line->low),
                       number(high, line->high));
    (void)snprintf(line->times, sizeof line->times, "%s -> %s%s",
                   diff_duration_text((double)line->total_ns[DIFF_A] / a, from),
                   diff_duration_text((double)line->total_ns[DIFF_B] / b, to), per_run);
    if (launches[DIFF_A] != launches[DIFF_B])
        (void)snprintf(line->counts, sizeof line->counts, "%" PRIu64 " -> %" PRIu64 "%s", launches[DIFF_A],
                       launches[DIFF_B], per_run);
}

/* ---- the tree ---- */

static struct occ_range_totals *totals_of(const struct diff *diff)
{
    struct occ_range_totals *totals = calloc((size_t)diff->n_items + 1, sizeof *totals);
    for (uint32_t i = 0; totals && i < diff->n_items; i++) {
        const struct diff_item *item = &diff->items[i];
        const struct side_range *range = item->where;
        totals[i] = (struct occ_range_totals){.path = range ? range->names : NULL,
                                              .is_backward = range && range->is_backward,
                                              .launches = item->sums.launches,
                                              .time_s = (double)item->sums.total_ns * 1e-9,
                                              .used = NAN};
    }
    return totals;
}

static int judge_layers(const struct diff *diff, double floor, double min_share, struct diff_layers *l,
                        struct occ_error *err)
{
    _cleanup_(pair_lines_free) struct pair_lines pairs = {.line = NULL};
    l->lines = calloc(l->tree.n + 1, sizeof *l->lines);
    if (!l->lines || !find_pair_lines(diff, &l->tree, &pairs))
        return occ_no_memory(err);
    const struct diff_nest nest = {pairs.line, pairs.end, (uint32_t)l->tree.n};
    int status = diff_levels_nested(diff, floor, min_share, &nest, &l->verdicts, err);
    for (uint32_t i = 0; i < diff->n_items && status == 0; i++)
        add_item(l, &diff->items[i], l->tree.line_of[i]);
    for (uint32_t i = 0; i < l->tree.n && status == 0; i++)
        fill_line(l, i, diff);
    return status == 0 && l->texts.failed ? occ_no_memory(err) : status;
}

int diff_layers_make(const struct diff *diff, double floor, double min_share, struct diff_layers *ret_layers,
                     struct occ_error *err)
{
    _cleanup_(occ_freep) struct occ_range_totals *totals = totals_of(diff);
    *ret_layers = (struct diff_layers){.lines = NULL};
    if (!totals || occ_layers_make(totals, diff->n_items, &(struct occ_layer_options){.depth = 0},
                                   &ret_layers->tree) != 0)
        return occ_no_memory(err);
    return judge_layers(diff, floor, min_share, ret_layers, err);
}

void diff_layers_free(struct diff_layers *layers)
{
    occ_layers_free(&layers->tree);
    diff_levels_free(&layers->verdicts);
    free(layers->lines);
    occ_arena_free(layers->texts.blocks);
    *layers = (struct diff_layers){.lines = NULL};
}

const struct diff_layer_line *diff_layer_of(const struct diff_layers *layers, const struct diff *diff,
                                            const struct diff_item *item)
{
    uint32_t at = layers->lines ? layers->tree.line_of[item - diff->items] : OCC_NO_LAYER;
    return at == OCC_NO_LAYER ? NULL : &layers->lines[at];
}

double diff_layers_fit(const struct diff_layers *layers, size_t most, size_t *ret_shown)
{
    static const double shares[] = {0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2};
    enum { N = sizeof shares / sizeof *shares };
    size_t shown = most + 1, at = most > DIFF_LAYERS_SCREEN ? 0 : 1;
    for (; at < N && shown > most; at++) {
        shown = 0;
        for (size_t i = 0; i < layers->tree.n; i++)
            shown += layers->lines[i].share >= shares[at] ? 1 : 0;
    }
    *ret_shown = shown;
    return shares[at - 1];
}
