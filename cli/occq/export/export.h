/*
 * Timelines for other viewers. A timeline is made of tracks: GPUs, below them lanes of kernels (on which no
 * two overlap) and counters. These formats write the same calls:
 *
 *   chrome      Trace Event Format, JSON; times are microseconds since the first launch, with three decimals
 *   perfetto    TrackEvent packets (protocol buffers), names interned; times are nanoseconds since 1970
 *   csv, jsonl  a line for each launch, without tracks and counters
 *
 * Texts may be any bytes; what is not UTF-8 is replaced. Write errors stay in the stream. One thread.
 */
#pragma once

#include <stdio.h>

#include "cli/values.h"
#include "support/error.h"

struct export_arg {
    const char *key;
    struct cli_value value;
};

/* What all launches of a launch configuration share, in a format's own words; see struct export_format. */
struct export_config {
    char *bytes;
    size_t size;
    uint64_t name; /* number of the kernel's name, in formats that intern it */
};

enum export_track_kind { EXPORT_GPU, EXPORT_LANE, EXPORT_COUNTER };
struct export_track {
    enum export_track_kind kind;
    uint32_t id, gpu; /* numbers of the track and of its GPU's; never 0, unique in the timeline */
    const char *name;
    unsigned lane; /* 0: the first of those with the same name */
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
    /* of formats that intern texts: how many, and the arguments' keys among them, which must outlive this */
    uint64_t interned;
    struct export_key keys[EXPORT_KEYS_MAX];
    size_t n_keys;
};

struct export_format {
    const char *name;
    bool is_flat; /* has no tracks: neither these nor values and holes are added */
    void (*begin)(struct export_writer *writer); /* this and `end` may be NULL */
    void (*add_track)(struct export_writer *writer, const struct export_track *track);
    /* Prepares what launches with these arguments (always the same keys) repeat. false: no memory. */
    bool (*add_config)(struct export_writer *writer, const char *kernel, const struct export_arg *args,
                       size_t n, struct export_config *ret_config);
    void (*add_launch)(struct export_writer *writer, const struct export_track *track,
                       const struct export_config *config, const struct export_launch *launch);
    /* A counter has the value (percent) from then on. */
    void (*add_value)(struct export_writer *writer, const struct export_track *track, int64_t ns,
                      double value);
    /* Nothing was counted; the event has the lane's name. */
    void (*add_hole)(struct export_writer *writer, const struct export_track *lane, int64_t start_ns,
                     int64_t end_ns);
    void (*end)(struct export_writer *writer);
};
/* The rest of a launch's JSON object. `nested`: the arguments that have a value are in an object of that
 * name, which stays open; NULL: all are members, and nothing is open. */
bool export_config_json(const char *name_key, const char *kernel, const char *nested,
                        const struct export_arg *args, size_t n, struct export_config *ret_config);

extern const struct export_format export_chrome, export_perfetto, export_csv, export_jsonl;
