/*
 * Timelines for other viewers. A timeline has tracks: GPUs, and below each GPU lanes of kernels (which do not
 * overlap within a lane) and counters. These formats implement the same functions:
 *
 *   chrome      Trace Event Format, JSON; times are microseconds since the first launch, with three decimals
 *   perfetto    packets for Perfetto's GPU compute view (protocol buffers), see perfetto.h; times are
 *               nanoseconds since 1970
 *   csv, jsonl  a line for each launch, without tracks and counters
 *
 * Texts may contain any bytes; invalid UTF-8 is replaced. Write errors stay in the stream. One thread.
 */
#pragma once

#include <stdio.h>

#include "cli/values.h"
#include "support/error.h"

enum { EXPORT_ARGS_MAX = 80 };

/* Where a format that separates them puts an argument; a format can define further places. */
enum export_place { EXPORT_OF_KERNEL, EXPORT_OF_LAUNCH, EXPORT_PLACES };

/* An argument of all launches of a configuration: its key, and its expression over launch_config. */
struct export_column {
    const char *key, *sql;
    unsigned place;
};
struct export_arg {
    const char *key;
    struct cli_value value;
    unsigned place;
};

/* The common part of all launches of a launch configuration, encoded in the format; see struct export_format.
 */
struct export_config {
    char *bytes;
    size_t size;
    size_t head; /* the first bytes, if the format separates them from the others */
};

/* A GPU as the history knows it; texts may be NULL. */
struct export_gpu {
    int64_t id, sm_count;
    const char *model, *uuid, *compute_capability;
    bool is_simulated;
};

/* The stream that launches belong to. */
struct export_source {
    int64_t device, run, context, stream;
    int64_t pid;         /* of the run; 0: unknown */
    const char *program; /* NULL: unknown */
};

enum export_track_kind { EXPORT_GPU, EXPORT_LANE, EXPORT_COUNTER, EXPORT_HOLES, EXPORT_LAYERS };
struct export_track {
    enum export_track_kind kind;
    uint32_t id, gpu; /* numbers of the track and of its GPU; never 0, unique in the timeline */
    const char *name;
    unsigned lane;                      /* 0: the first lane with this name */
    const struct export_gpu *device;    /* of EXPORT_GPU */
    const struct export_source *source; /* of EXPORT_LANE and EXPORT_LAYERS */
};

/* The program's ranges around a launch. */
struct export_range {
    const char *path; /* joined by '/', outermost first */
    bool is_backward;
    uint64_t interned; /* the format's number of the path; 0: none yet */
};

struct export_launch {
    int64_t start_ns, end_ns;
    uint64_t run, context, stream, correlation, graph_node; /* 0: none */
    double achieved, achieved_ci95, measured_ratio;         /* NaN: not measured */
    struct export_range *range;                             /* NULL: not known */
};

struct export_writer {
    FILE *out;
    int64_t base_ns;  /* the first start */
    uint64_t written; /* events */
    bool failed;      /* no memory: events are missing */
    void *state;      /* the format's own */
};

struct export_format {
    const char *name;
    bool is_flat;                                /* has no tracks, values and holes */
    bool may_overlap;                            /* the viewer separates launches of a lane that overlap */
    bool has_model;                              /* configurations have the arguments of model_args.h */
    const struct export_column *columns;         /* ends with a NULL key; NULL: export_columns */
    void (*begin)(struct export_writer *writer); /* `begin`, `end` and `release` may be NULL */
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
    /* Marks a time without samples; the event has the track's name. */
    void (*add_hole)(struct export_writer *writer, const struct export_track *holes, int64_t start_ns,
                     int64_t end_ns);
    /* Begin and end a layer; layers of a track nest. NULL: the format has no layers. `name` has `n` bytes. */
    void (*begin_layer)(struct export_writer *writer, const struct export_track *track, int64_t ns,
                        const char *name, size_t n);
    void (*end_layer)(struct export_writer *writer, const struct export_track *track, int64_t ns);
    void (*end)(struct export_writer *writer);
    void (*release)(struct export_writer *writer); /* frees the state, also after a failure */
};
/* Encodes the configuration's part of a launch's JSON object. `nested`: name of an inner object for the
 * arguments with a value, which stays open; NULL: all arguments are members of the outer object, and no
 * object stays open. */
bool export_config_json(const char *name_key, const char *kernel, const char *nested,
                        const struct export_arg *args, size_t n, struct export_config *ret_config);

extern const struct export_column export_columns[]; /* names and units as in SQL */
extern const struct export_format export_chrome, export_perfetto, export_csv, export_jsonl;
