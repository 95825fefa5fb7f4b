/* Layers: the ranges of a program as nested slices beside a stream. A slice lasts from the start of a launch
 * to the last end of the launches that follow it in the same range, at most to the start of the first launch
 * outside, so that slices nest. The phase "backward" is an outermost layer. One thread. */
#pragma once

#include "export.h"
#include "support/map.h"

struct sqlite3;
struct sqlite3_stmt;

enum { EXPORT_RANGES_KEPT = 1 << 14, EXPORT_DEPTH_MAX = 32 };

/* Ranges of runs, read once. A range is valid until the next is found. */
struct export_ranges {
    struct sqlite3_stmt *statement;
    struct export_range *list;
    size_t n, allocated;
    struct occ_map index;
};
void export_ranges_free(struct export_ranges *ranges);
/* Finds a range; *ret_range is NULL if the history does not have it. The path is sanitised. */
int export_ranges_find(struct export_ranges *ranges, struct sqlite3 *db, int64_t run, int64_t range,
                       struct export_range **ret_range, struct occ_error *err);

/* The open layers of a stream. */
struct export_layers {
    struct export_track track; /* its numbers alone */
    int64_t range;             /* of the last launch; 0: none */
    size_t depth;
    struct export_layer {
        char *name;
        size_t n;
        int64_t end_ns;
    } open[EXPORT_DEPTH_MAX];
};
/* Continues with a launch of the run's range; 0: a launch without a range. */
void export_layers_add(struct export_layers *layers, struct export_writer *w,
                       const struct export_format *format, int64_t range, const struct export_launch *launch);
/* Ends all layers. `format` NULL: only frees them. */
void export_layers_end(struct export_layers *layers, struct export_writer *w,
                       const struct export_format *format);
