/* See lanes.h. */
#include "lanes.h"

#include <stdlib.h>
#include <string.h>

#include "support/array.h"

void export_lanes_free(struct export_lanes *lanes)
{
    for (size_t i = 0; i < lanes->n; i++) {
        for (size_t j = 0; j < lanes->streams[i].n_lanes; j++) {
            struct export_layers *layers = lanes->streams[i].lanes[j].layers;
            if (layers)
                export_layers_end(layers, NULL, NULL);
            free(layers);
        }
        free(lanes->streams[i].lanes);
    }
    free(lanes->streams);
    occ_map_free(&lanes->index);
}

static uint64_t hash(const struct export_stream_key *key)
{
    const int64_t parts[] = {key->device, key->run, key->context, key->stream};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        hash = (hash ^ (uint64_t)parts[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return hash;
}

static struct export_stream *add_stream(struct export_lanes *lanes, uint64_t at,
                                        const struct export_stream_key *key)
{
    if (!occ_grow((void **)&lanes->streams, &lanes->allocated, lanes->n, EXPORT_STREAMS_MAX,
                  sizeof *lanes->streams) ||
        occ_map_put(&lanes->index, at, (uint32_t)lanes->n) == OCC_MAP_NONE)
        return NULL;
    lanes->streams[lanes->n] = (struct export_stream){.key = *key};
    lanes->last = lanes->n;
    return &lanes->streams[lanes->n++];
}

static struct export_stream *find_stream(struct export_lanes *lanes, const struct export_stream_key *key)
{
    if (lanes->n && memcmp(&lanes->streams[lanes->last].key, key, sizeof *key) == 0)
        return &lanes->streams[lanes->last];
    for (uint64_t at = hash(key);; at++) {
        uint32_t i = occ_map_get(&lanes->index, at);
        if (i == OCC_MAP_NONE)
            return add_stream(lanes, at, key);
        if (memcmp(&lanes->streams[i].key, key, sizeof *key) == 0) {
            lanes->last = i;
            return &lanes->streams[i];
        }
    }
}

struct export_lane *export_lanes_take(struct export_lanes *lanes, const struct export_stream_key *key,
                                      int64_t start_ns, int64_t end_ns, unsigned *ret_number)
{
    struct export_stream *s = find_stream(lanes, key);
    size_t i = 0;
    while (s && i < s->n_lanes && s->lanes[i].end_ns > start_ns)
        i++;
    if (!s || (i == s->n_lanes &&
               !occ_grow((void **)&s->lanes, &s->allocated, i, EXPORT_LANES_MAX, sizeof *s->lanes)))
        return NULL;
    if (i == s->n_lanes)
        s->lanes[s->n_lanes++] = (struct export_lane){0};
    s->lanes[i].end_ns = end_ns;
    *ret_number = (unsigned)i;
    return &s->lanes[i];
}
