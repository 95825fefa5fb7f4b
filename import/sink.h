/*
 * Where a reader of other tools' recordings (kineto.c, nsys.c) puts what it finds. The sink checks every value,
 * gives kernels and shapes an id, and stages everything in an unlinked temporary file: nothing reaches the history
 * before the whole recording was read (stage.c), so a broken one leaves no half run, and the history's lock is held
 * for the short final write only. Memory is bounded whatever the recording's size.
 *
 * One thread. Every function: 0 or a negative code with its message in `err` (support/error.h); after an error
 * the import is over. Strings are copied.
 */
#ifndef OCC_IMPORT_SINK_H
#define OCC_IMPORT_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"
#include "support/error.h"

struct occ_import_sink;

/* Why an event that looks like a launch is not in the history. X(NAME, word, text) */
#define OCC_IMPORT_SKIPS(X)                                                                                  \
    X(BAD_TIMES, "bad_times", "no start, or an end before the start")                                        \
    X(NO_CONFIGURATION, "no_configuration", "no grid, block or registers")                                   \
    X(BAD_VALUE, "bad_value", "a value that no launch has")                                                  \
    X(NO_DEVICE, "no_device", "a device that the file does not describe")                                    \
    X(NO_NAME, "no_name", "no kernel name")

enum occ_import_skip {
#define X(name, word, text) OCC_IMPORT_SKIP_##name,
    OCC_IMPORT_SKIPS(X)
#undef X
        OCC_IMPORT_SKIP_COUNT
};

/* What the recording's times count from, with the shift added. X(NAME, word, text) */
#define OCC_IMPORT_TIME_BASES(X)                                                                             \
    X(EPOCH, "epoch", "nanoseconds since 1970, wall clock")                                                  \
    X(UNKNOWN, "unknown", "from an origin that the recording does not name")

enum occ_import_time_base {
#define X(name, word, text) OCC_IMPORT_TIME_##name,
    OCC_IMPORT_TIME_BASES(X)
#undef X
};

/* The recording as a whole; may be said at any time, the last word counts. */
struct occ_import_recording {
    const char *tool;                            /* "nsys", "kineto" */
    const char *tool_version;                    /* NULL: unknown */
    const char *hostname, *exe, *cmdline, *user; /* NULL: unknown */
    int32_t pid;                                 /* 0: unknown, or several */
    int32_t rank;                                /* of a distributed job; -1: none or unknown */
    enum occ_import_time_base time_base;
    int64_t shift_ns;  /* added to every launch's times: what they count from */
    const char *lacks; /* fields that this source never gives, joined by ", "; NULL: none */
};
int occ_import_sink_recording(struct occ_import_sink *sink, const struct occ_import_recording *recording,
                              struct occ_error *err);

/* A device under the recording's own number for it (any 64-bit value). Before the first launch on it. Limits as
 * the file gives them, 0 where it does not; the history completes them. */
int occ_import_sink_device(struct occ_import_sink *sink, uint64_t number,
                           const struct occ_store_device *device, struct occ_error *err);
bool occ_import_sink_has_device(const struct occ_import_sink *sink, uint64_t number);

struct occ_import_launch {
    const char *name; /* mangled or demangled, as the source has it; not NUL-terminated */
    size_t name_bytes;
    uint64_t device;              /* the recording's number */
    struct occ_store_shape shape; /* `kernel` and `device` are filled by the sink */
    int64_t start_ns;
    int64_t end_ns;
    uint64_t graph_node;
    uint32_t stream;
    uint32_t context;
    uint32_t correlation;
    double claimed_achieved; /* the source's own "achieved occupancy" 0...1; NaN: it says nothing */
};
/* Counts it as skipped instead of failing where times, device or a value are wrong. */
int occ_import_sink_launch(struct occ_import_sink *sink, const struct occ_import_launch *launch,
                           struct occ_error *err);

/* The reader found a launch that it could not even give to the sink. */
void occ_import_sink_skip(struct occ_import_sink *sink, enum occ_import_skip why);

/* The reader has come to `done` of `total` (bytes of the file, or rows); drives the progress bar. */
void occ_import_sink_progress(struct occ_import_sink *sink, uint64_t done, uint64_t total);

#endif
