/* The tool "layer": the tree of layers, with as many of the largest layers as fit. One thread. */
#include <math.h>
#include <stdlib.h>

#include "cli/kernels/top_ranges.h"
#include "question.h"

#define DEFINITIONS                                                                                          \
    "count: layers of one name folded into the row; time_ratio: of all launches' time, a parent contains "   \
    "its "                                                                                                   \
    "children; used: elapsed occupancy by time, measured or else the low end of the expected range; "        \
    "outlier: "                                                                                              \
    "a folded layer that takes outlier_ratio x the median; details: tool kernel with worst_kernel_id"

static int put_layer(struct agent_document *document, const struct occ_layer *layer, struct occ_error *err)
{
    struct agent_row row;
    if (agent_row_open(&row, err) != 0)
        return err->code;
    occ_json_unsigned(&row.json, NULL, layer->depth);
    agent_quote(&row.json, NULL, layer->name);
    occ_json_unsigned(&row.json, NULL, layer->count);
    occ_json_string(&row.json, NULL, layer->is_backward ? "backward" : "");
    occ_json_unsigned(&row.json, NULL, layer->launches);
    occ_json_integer(&row.json, NULL, llround(layer->time_s * 1e9));
    agent_known(&row.json, NULL, layer->share);
    agent_known(&row.json, NULL, layer->used);
    agent_quote(&row.json, NULL, layer->worst_kernel);
    if (layer->worst_kernel_id > 0)
        occ_json_integer(&row.json, NULL, layer->worst_kernel_id);
    else
        occ_json_string(&row.json, NULL, NULL);
    return agent_row_close(&row, document, err);
}

static const struct occ_layer *find_outlier(const struct occ_layers *layers)
{
    const struct occ_layer *found = NULL;
    for (size_t i = 0; i < layers->n; i++)
        if (layers->layers[i].outlier.name &&
            (!found || layers->layers[i].outlier.ratio > found->outlier.ratio))
            found = &layers->layers[i];
    return found;
}

/* Writes the answer's members. *ret_fits: the document had room for all rows. */
static int put_layers(struct agent_document *document, const struct occ_layers *layers, bool *ret_fits,
                      struct occ_error *err)
{
    static const char *const columns[] = {"depth",
                                          "quoted_layer",
                                          "count",
                                          "phase",
                                          "launches",
                                          "total_duration_ns",
                                          "time_ratio",
                                          "used",
                                          "quoted_worst_kernel",
                                          "worst_kernel_id",
                                          NULL};
    struct occ_json *json = &document->json;
    const struct occ_layer *outlier = find_outlier(layers);
    int status = 1;
    agent_known(json, "covered_ratio", layers->covered_ratio);
    occ_json_integer(json, "total_duration_ns", llround(layers->time_s * 1e9));
    agent_quote(json, "quoted_below", layers->prefix);
    if (outlier) {
        agent_quote(json, "quoted_outlier", outlier->outlier.name);
        agent_known(json, "outlier_ratio", outlier->outlier.ratio);
    }
    occ_json_string(json, "definitions", DEFINITIONS);
    agent_list_open(document, columns);
    size_t shown = 0;
    for (; shown < layers->n && status == 1; shown += status == 1)
        status = put_layer(document, &layers->layers[shown], err);
    occ_json_close(json);
    *ret_fits = status == 1;
    if (layers->hidden > 0 || !*ret_fits)
        occ_json_unsigned(json, "smaller_layers_not_shown", layers->hidden + layers->n - shown);
    return status < 0 ? status : 0;
}

static int put_none(struct agent_document *document)
{
    occ_json_string(&document->json, "layers", "not measured");
    occ_json_string(&document->json, "why",
                    "no launch has a range: record with NVTX ranges, or a profile with modules");
    return 0;
}

/* Raises the smallest share of a layer step by step until the document fits. */
static int put_fitting(const struct agent_question *question, struct agent_document *document,
                       const struct occ_range_totals *totals, size_t n, struct occ_error *err)
{
    static const double min_shares[] = {0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2};
    enum { TRIES = sizeof min_shares / sizeof *min_shares };
    struct occ_layer_options options = {.depth = (unsigned)question->args->depth,
                                        .with_operators = question->args->operators,
                                        .unfold = question->args->unfold};
    int status = 0;
    bool fits = false;
    for (size_t i = 0; i < TRIES && status == 0 && !fits; i++) {
        struct occ_layers layers = {0};
        options.min_share = min_shares[i];
        agent_document_free(document);
        if ((status = agent_document_open(document, (size_t)question->args->max_bytes, err)) != 0)
            break;
        status = occ_layers_make(totals, n, &options, &layers) == 0 ? 0 : occ_no_memory(err);
        if (status == 0 && layers.n + layers.hidden == 0)
            status = put_none(document);
        else if (status == 0)
            status = put_layers(document, &layers, &fits, err);
        fits |= layers.n == 0;
        occ_layers_free(&layers);
    }
    return status;
}

int agent_layer(const struct agent_question *question, struct agent_document *document, struct occ_error *err)
{
    struct occ_top top = {.n = 0};
    struct occ_arena texts = {.failed = false};
    int status = occ_store_top(question->store, &question->filter, OCC_TOP_BY_LAYER, &top, err);
    if (status != 0)
        return status;
    const struct occ_range_totals *totals = top_range_totals(&top, &texts);
    if (!totals)
        status = occ_no_memory(err);
    else if (top.n == 0)
        status = agent_no_launches(question, err);
    else
        status = put_fitting(question, document, totals, top.n, err);
    occ_arena_free(texts.blocks);
    occ_top_free(&top);
    return status;
}
