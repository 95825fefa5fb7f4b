/* See layer_names.h. */
#include "layer_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/screen.h"

const char *layer_line_name(struct occ_arena *texts, const struct occ_layer *layer, size_t width)
{
    const char *last = strrchr(layer->name, '/'), *name = layer->name;
    char count[32] = "", *text = NULL;
    if (last && layer->depth * 2 + strlen(name) > width)
        name = last;
    if (layer->count > 1)
        (void)snprintf(count, sizeof count, "%s%u", cli_screen_times(), layer->count);
    if (asprintf(&text, "%*s%s%s%s", (int)layer->depth * 2, "",
                 name == layer->name ? "" : cli_screen_ellipsis(), name, count) < 0) {
        texts->failed = true;
        return "?";
    }
    const char *shown = occ_arena_copy(texts, text);
    free(text);
    return shown;
}

const char *layer_path(struct occ_arena *texts, const struct occ_layers *layers, uint32_t at)
{
    const char *path = layers->layers[at].name;
    while ((at = layers->layers[at].parent) != OCC_NO_LAYER) {
        const char *name = layers->layers[at].name;
        size_t bytes = strlen(name) + strlen(path) + 2;
        char *joined = occ_arena_bytes(texts, bytes);
        if (!joined)
            return "?";
        (void)snprintf(joined, bytes, "%s/%s", name, path);
        path = joined;
    }
    return path;
}
