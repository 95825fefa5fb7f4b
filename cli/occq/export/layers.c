/* See layers.h. */
#include "layers.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "support/array.h"
#include "support/text.h"

/* ---- ranges ---- */

static void drop(struct export_ranges *ranges)
{
    while (ranges->n)
        free((char *)(uintptr_t)ranges->list[--ranges->n].path);
    occ_map_clear(&ranges->index);
}

void export_ranges_free(struct export_ranges *ranges)
{
    drop(ranges);
    free(ranges->list);
    occ_map_free(&ranges->index);
    (void)sqlite3_finalize(ranges->statement);
}

/* Reads the range into the list's end. */
static int read_range(struct export_ranges *ranges, sqlite3 *db, int64_t run, int64_t range,
                      struct occ_error *err)
{
    static const char sql[] =
        "SELECT range, coalesce(phase, '') = 'backward' FROM range WHERE run_id = ? AND range_id = ?";
    if (!ranges->statement && sqlite3_prepare_v2(db, sql, -1, &ranges->statement, NULL) != SQLITE_OK)
        return occ_fail(err, OCC_E_IO, "%s", sqlite3_errmsg(db));
    (void)sqlite3_reset(ranges->statement);
    (void)sqlite3_bind_int64(ranges->statement, 1, run);
    (void)sqlite3_bind_int64(ranges->statement, 2, range);
    int step = sqlite3_step(ranges->statement);
    if (step != SQLITE_ROW)
        return step == SQLITE_DONE ? 0 : occ_fail(err, OCC_E_IO, "%s", sqlite3_errmsg(db));
    const char *text = (const char *)sqlite3_column_text(ranges->statement, 0);
    char *path = strdup(text ? text : "");
    if (!path)
        return occ_no_memory(err);
    occ_text_sanitise(path);
    ranges->list[ranges->n++] =
        (struct export_range){.path = path, .is_backward = sqlite3_column_int(ranges->statement, 1) != 0};
    return 0;
}

int export_ranges_find(struct export_ranges *ranges, sqlite3 *db, int64_t run, int64_t range,
                       struct export_range **ret_range, struct occ_error *err)
{
    uint64_t key = occ_range_key(run, (uint64_t)range);
    uint32_t i = occ_map_get(&ranges->index, key);
    *ret_range = i != OCC_MAP_NONE ? &ranges->list[i] : NULL;
    if (*ret_range)
        return 0;
    if (ranges->n == EXPORT_RANGES_KEPT)
        drop(ranges);
    size_t n = ranges->n;
    if (!occ_grow((void **)&ranges->list, &ranges->allocated, n, EXPORT_RANGES_KEPT, sizeof *ranges->list))
        return occ_no_memory(err);
    int status = read_range(ranges, db, run, range, err);
    if (status != 0 || ranges->n == n)
        return status;
    if (occ_map_put(&ranges->index, key, (uint32_t)n) == OCC_MAP_NONE)
        return occ_no_memory(err);
    *ret_range = &ranges->list[n];
    return 0;
}

/* ---- open layers ---- */

/* A part of a range's path. */
struct part {
    const char *name;
    size_t n;
};

/* Splits a range into the names of its layers. The last one takes a rest that is too deep. */
static size_t split(const struct export_range *range, struct part parts[EXPORT_DEPTH_MAX])
{
    size_t n = 0;
    if (!range)
        return 0;
    if (range->is_backward)
        parts[n++] = (struct part){"backward", strlen("backward")};
    for (const char *at = range->path; *at; at += *at == '/') {
        size_t length = n + 1 < EXPORT_DEPTH_MAX ? strcspn(at, "/") : strlen(at);
        if (length)
            parts[n++] = (struct part){at, length};
        at += length;
    }
    return n;
}

static void close_to(struct export_layers *layers, struct export_writer *w,
                     const struct export_format *format, size_t depth, int64_t latest_ns)
{
    while (layers->depth > depth) {
        struct export_layer *layer = &layers->open[--layers->depth];
        if (format)
            format->end_layer(w, &layers->track, layer->end_ns < latest_ns ? layer->end_ns : latest_ns);
        free(layer->name);
    }
}

static bool is_open(const struct export_layer *layer, const struct part *part)
{
    return layer->n == part->n && memcmp(layer->name, part->name, part->n) == 0;
}

/* Closes layers outside the range and opens the missing ones. */
static void enter(struct export_layers *layers, struct export_writer *w, const struct export_format *format,
                  const struct export_launch *launch)
{
    struct part parts[EXPORT_DEPTH_MAX];
    size_t n = split(launch->range, parts), common = 0;
    while (common < n && common < layers->depth && is_open(&layers->open[common], &parts[common]))
        common++;
    close_to(layers, w, format, common, launch->start_ns);
    for (; layers->depth < n; layers->depth++) {
        const struct part *part = &parts[layers->depth];
        char *name = strndup(part->name, part->n);
        w->failed |= !name;
        if (!name)
            return;
        format->begin_layer(w, &layers->track, launch->start_ns, part->name, part->n);
        layers->open[layers->depth] = (struct export_layer){name, part->n, launch->end_ns};
    }
}

void export_layers_add(struct export_layers *layers, struct export_writer *w,
                       const struct export_format *format, int64_t range, const struct export_launch *launch)
{
    if (range != layers->range)
        enter(layers, w, format, launch);
    layers->range = range;
    for (size_t i = 0; i < layers->depth; i++)
        if (launch->end_ns > layers->open[i].end_ns)
            layers->open[i].end_ns = launch->end_ns;
}

void export_layers_end(struct export_layers *layers, struct export_writer *w,
                       const struct export_format *format)
{
    close_to(layers, w, format, 0, INT64_MAX);
}
