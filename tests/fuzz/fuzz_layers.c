/*
 * Fuzzes the tree of layers: each input line is a path, with phase and time in its first byte. Every launch
 * belongs to a line of the tree, and the depth is limited.
 */
#include "explain/layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS_MAX = 256 };

static void check(const struct occ_layers *layers, uint64_t launches)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < layers->n; i++) {
        sum += layers->layers[i].depth == 0 ? layers->layers[i].launches : 0;
        if (layers->layers[i].depth >= OCC_LAYERS_DEPTH_MAX || layers->layers[i].count == 0 ||
            !layers->layers[i].name)
            abort();
    }
    if (sum != launches)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct occ_layer_options options[] = {{.with_operators = true}, {.depth = 2, .unfold = "a"}};
    struct occ_range_totals rows[ROWS_MAX];
    char *text = strndup((const char *)data, size), *rest = text, *line = NULL;
    uint64_t launches = 0;
    size_t n = 0;
    while (text && n < ROWS_MAX && (line = strsep(&rest, "\n"))) {
        if (!line[0])
            continue;
        rows[n] = (struct occ_range_totals){
            .path = line + 1, .is_backward = line[0] & 1, .launches = 1, .time_s = line[0], .used = NAN};
        launches += rows[n++].path[0] != '\0';
    }
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct occ_layers layers;
        if (occ_layers_make(rows, n, &options[i], &layers) != 0)
            abort();
        check(&layers, launches);
        occ_layers_free(&layers);
    }
    free(text);
    return 0;
}
