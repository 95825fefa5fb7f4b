/*
 * Timelines for other viewers. A timeline has tracks: GPUs, and below each GPU lanes of kernels (which do not
 * overlap within a lane) and counters. These formats implement the same functions:
 *
 *   chrome      Trace Event Format, JSON; times are microseconds since the first launch, with three decimals
 *   perfetto    TrackEvent packets (protocol buffers), names interned; times are nanoseconds since 1970
 *   csv, jsonl  a line for each launch, without tracks and counters
 *
 * Texts may contain any bytes; invalid UTF-8 is replaced. Write errors stay in the stream. One thread.
 */
#pragma once

#include <stdio.h>

#include "cli/values.h"
#include "support/error.h"

struct export_arg {
    const char *key;
    struct cli_value value;
};

/* The common part of all launches of a launch configuration, encoded in the format; see struct export_format.
 */
struct export_config {
    char *bytes;
    size_t size;
    uint64_t name; /* interned number of the kernel's name, if the format interns texts */
};

enum export_track_kind { EXPORT_GPU, EXPORT_LANE, EXPORT_COUNTER };
struct export_track {
    enum export_track_kind kind;
    uint32_t id, gpu; /* numbers of the track and of its GPU; never 0, unique in the timeline */
    const char *name;
    unsigned lane; /* 0: the first lane with this name */
};

struct export_launch {
    int64_t start_ns, end_ns;
    uint64_t run, context, stream, correlation, graph_node; /* 0: none */
    double achieved, achieved_ci95, measured_ratio;         /* NaN: not measured */
};

enum { EXPORT_KEYS_MAX = 64 };
struct export_key {
    const char *key;
    uint64_t id;
};
struct export_writer {
    FILE *out;
    int64_t base_ns;  /* the first start */
    uint64_t written; /* events */
    /* for formats that intern texts: their number, and the arguments' keys, which must outlive the writer */
    uint64_t interned;
    struct export_key keys[EXPORT_KEYS_MAX];
    size_t n_keys;
};

struct export_format {
    const char *name;
    bool is_flat;                                /* true: has no tracks, values and holes */
    void (*begin)(struct export_writer *writer); /* `begin` and `end` may be NULL */
    void (*add_track)(struct export_writer *writer, const struct export_track *track);
    /* Encodes the part that launches with these arguments (always the same keys) repeat. Returns false
     * without memory. */
    bool (*add_config)(struct export_writer *writer, const char *kernel, const struct export_arg *args,
                       size_t n, struct export_config *ret_config);
    void (*add_launch)(struct export_writer *writer, const struct export_track *track,
                       const struct export_config *config, const struct export_launch *launch);
    /* Sets a counter's value (percent) from `ns` on. */
    void (*add_value)(struct export_writer *writer, const struct export_track *track, int64_t ns,
                      double value);
    /* Marks a time without samples; the event has the lane's name. */
    void (*add_hole)(struct export_writer *writer, const struct export_track *lane, int64_t start_ns,
                     int64_t end_ns);
    void (*end)(struct export_writer *writer);
};
/* Encodes the configuration's part of a launch's JSON object. `nested`: name of an inner object for the
 * arguments with a value, which stays open; NULL: all arguments are members of the outer object, and no
 * object stays open. */
bool export_config_json(const char *name_key, const char *kernel, const char *nested,
                        const struct export_arg *args, size_t n, struct export_config *ret_config);

extern const struct export_format export_chrome, export_perfetto, export_csv, export_jsonl;
