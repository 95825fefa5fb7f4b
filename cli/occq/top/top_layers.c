/* Prints layers of a model in a table; see top_layers.h. One thread. */
#include "top_layers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/screen.h"
#include "cli/kernels/layer_names.h"
#include "cli/kernels/top.h"
#include "cli/kernels/top_ranges.h"
#include "support/cleanup.h"

/* ---- columns ---- */

struct layer_line {
    struct occ_layer layer;
    double gpu_share;                   /* of the GPU time; NaN: not known */
    const char *shown, *phase, *prefix; /* shown: indented, with the number of folded layers */
    uint32_t depth, count;
    uint64_t time_ns;
};

#define FIELD(name, key, unit, flags, member, help)                                                          \
    CLI_FIELD(name, key, unit, flags, struct layer_line, member, help)

static struct cli_value worst_id_of(const struct cli_column *column, const void *row)
{
    int64_t id = ((const struct layer_line *)row)->layer.worst_kernel_id;
    (void)column;
    return id ? cli_integer(id) : (struct cli_value){.type = CLI_NONE};
}

const struct cli_column top_layers_columns[] = {
    FIELD("tree", "tree", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_TEXT_ONLY, shown,
          "the layer below its parent; with a number: layers of this name that are folded into the row"),
    FIELD("layer", "layer", CLI_PLAIN, CLI_LEFT, layer.name,
          "its name; of folded layers without their number"),
    FIELD("depth", "depth", CLI_PLAIN, 0, depth, "0: directly below the prefix"),
    FIELD("count", "layers", CLI_PLAIN, 0, count, "number of folded layers"),
    FIELD("phase", "phase", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_RARE, phase,
          "backward: launched by autograd for the operators of the layer"),
    FIELD("launches", "launches", CLI_PLAIN, CLI_DEFAULT | CLI_SPARE(4), layer.launches,
          "number of launches"),
    FIELD("time", "total_duration_ns", CLI_DURATION, CLI_DEFAULT | CLI_SPARE(2), time_ns,
          "sum of their durations"),
    FIELD(
        "share", "gpu_time_ratio", CLI_RATIO, CLI_DEFAULT | CLI_HEAT, gpu_share,
        "part of the GPU time: the recorded time of all GPUs, with the time in which no kernel ran; kernels "
        "that overlap share their time"),
    FIELD("kernel%", "time_ratio", CLI_RATIO, 0, layer.share,
          "part of the time of all launches that match the filters, with and without a range"),
    FIELD("used", "effective_elapsed", CLI_RATIO, CLI_DEFAULT | CLI_SPARE(1), layer.used,
          "elapsed occupancy, mean by time: of launches that were measured the measured one, of others "
          "expected_elapsed_low"),
    FIELD("worst_kernel", "worst_kernel", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS | CLI_SPARE(3),
          layer.worst_kernel, "kernel of the range inside that loses most"),
    {.name = "worst_kernel_id",
     .key = "worst_kernel_id",
     .get = worst_id_of,
     .help = "its number, for occq show"},
    FIELD("outlier", "outlier", CLI_PLAIN, CLI_LEFT, layer.outlier.name,
          "the folded layer with a time far from the median"),
    FIELD("outlier_ratio", "outlier_time_ratio", CLI_FACTOR, 0, layer.outlier.ratio, "its time / the median"),
    FIELD("prefix", "prefix", CLI_PLAIN, CLI_LEFT, prefix, "the path above all layers of the phase"),
    CLI_COLUMN_END,
};

/* ---- input ---- */

/* Makes a tree of at most `args->number` lines, leaving out as few of the smallest layers as possible. Up to
 * TOP_LAYERS_SCREEN lines it always leaves out layers below 0.5 %. The tree is longer if layers of 20 % do
 * not fit either. */
static int make_layers(const struct occ_range_totals *totals, size_t n, const struct top_layers_args *args,
                       struct occ_layers *ret_layers)
{
    static const double min_shares[] = {0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2};
    struct occ_layer_options options = {
        .depth = (unsigned)args->depth, .with_operators = args->operators, .unfold = args->unfold};
    int status = 0;
    size_t first = args->number > TOP_LAYERS_SCREEN ? 0 : 3;
    for (size_t i = first; i < sizeof min_shares / sizeof *min_shares; i++) {
        options.min_share = min_shares[i];
        status = occ_layers_make(totals, n, &options, ret_layers);
        if (status != 0 || ret_layers->n <= args->number)
            return status;
        if (i + 1 < sizeof min_shares / sizeof *min_shares)
            occ_layers_free(ret_layers);
    }
    return status;
}

/* ---- output ---- */

enum { NAME_WIDTH_MAX = 48 }; /* a wider name would displace other columns */

static struct layer_line *make_lines(const struct occ_layers *layers, const struct occ_overview *overview,
                                     struct occ_arena *texts)
{
    struct layer_line *lines = occ_arena_get(texts, layers->n + 1, sizeof *lines);
    for (size_t i = 0; lines && i < layers->n; i++) {
        const struct occ_layer *layer = &layers->layers[i];
        lines[i] = (struct layer_line){
            .layer = *layer,
            .gpu_share = occ_overview_share(overview, OCC_SHARE_OF_ALL, 0, layer->time_s * 1e9),
            .shown = layer_line_name(texts, layer, NAME_WIDTH_MAX),
            .phase = layer->is_backward ? "backward" : NULL,
            .prefix = layer->is_backward ? layers->backward_prefix : layers->prefix,
            .depth = layer->depth,
            .count = layer->count,
            .time_ns = (uint64_t)llround(layer->time_s * 1e9)};
        lines[i].layer.outlier.ratio = layer->outlier.name ? layer->outlier.ratio : (double)NAN;
    }
    return texts->failed ? NULL : lines;
}

static void print_prefix(const char *what, const char *prefix)
{
    _cleanup_(occ_freep) char *text = cli_screen_text(prefix);
    if (text && text[0])
        cli_print("%sbelow %s\n", what, text);
}

static void print_outliers(const struct occ_layers *layers)
{
    for (size_t i = 0; i < layers->n; i++) {
        const struct occ_layer_outlier *outlier = &layers->layers[i].outlier;
        _cleanup_(occ_freep) char *text = outlier->name ? cli_screen_text(outlier->name) : NULL;
        if (text)
            cli_print("%s takes %.1f times as long as the median of %u\n", text, outlier->ratio,
                      layers->layers[i].count);
    }
}

static void print_footers(const struct cli_command *command, const struct cli_selection *selection,
                          const struct occ_layers *layers)
{
    cli_footer(command, selection, "%.1f %% of kernel time has a range",
               floor(layers->covered_ratio * 1000) / 10);
    if (layers->hidden > 0)
        cli_footer(command, selection, "%zu smaller layer%s not shown; -n shows more", layers->hidden,
                   layers->hidden == 1 ? " is" : "s are");
}

static int print_tree(const struct cli_command *command, const struct occ_layers *layers,
                      const struct top_layers_args *args, struct occ_arena *texts,
                      const struct cli_output *output, struct occ_error *err)
{
    struct cli_selection selection;
    struct cli_column columns[sizeof top_layers_columns / sizeof *top_layers_columns];
    const struct layer_line *lines = make_lines(layers, args->overview, texts);
    bool is_text = !output->json && !output->csv;
    if (!lines)
        return occ_no_memory(err);
    memcpy(columns, top_layers_columns, sizeof columns);
    if (!(args->overview->time.window_s > 0))
        top_use_kernel_time(columns);
    int status = cli_output_choose(output, columns, &selection, err);
    if (status == 0 && is_text) {
        print_prefix("", layers->prefix);
        print_prefix("backward: ", layers->backward_prefix);
    }
    if (status == 0)
        status = cli_table_print("top", &selection, lines, layers->n, sizeof *lines, err);
    if (status == 0 && is_text)
        print_outliers(layers);
    if (status == 0)
        print_footers(command, &selection, layers);
    return status;
}

int top_layers_print(const struct cli_command *command, const struct occ_top *top,
                     const struct top_layers_args *args, const struct cli_output *output, size_t *ret_lines,
                     struct occ_error *err)
{
    struct occ_arena texts = {.failed = false};
    struct occ_layers layers = {0};
    const struct occ_range_totals *totals = top_range_totals(top, &texts);
    int status = totals && make_layers(totals, top->n, args, &layers) == 0 ? 0 : occ_no_memory(err);
    if (status == 0 && layers.n > 0)
        status = print_tree(command, &layers, args, &texts, output, err);
    *ret_lines = layers.n;
    occ_layers_free(&layers);
    occ_arena_free(texts.blocks);
    return status;
}
