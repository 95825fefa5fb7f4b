/*
 * The target of all readers of other tools' recordings (kineto.c, nsys.c, ncu_report.c, ncu_csv.c). The sink
 * checks every value, numbers kernels and launch configurations, and stages everything in an unlinked
 * temporary file (stage.c): the history changes only after the whole recording was read (load.c), so that a
 * broken recording leaves no trace. Memory is bounded whatever the recording's size.
 *
 * One thread. Functions with `err` return 0 or a negative code with its message (support/error.h); after an
 * error the import is over. Strings are copied.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"
#include "support/error.h"

struct occ_import_sink;

/* Reasons to skip an event that looks like a launch. X(NAME, id) */
#define OCC_IMPORT_SKIPS(X)                                                                                  \
    X(BAD_TIMES, "bad_times") /* no start, an end before the start, or a time beyond the history's range */  \
    X(NO_CONFIGURATION, "no_configuration") /* no grid, block or registers */                                \
    X(BAD_VALUE, "bad_value")               /* a value that is impossible for a launch */                    \
    X(NO_DEVICE, "no_device")               /* a device that the file does not describe */                   \
    X(NO_NAME, "no_name")                   /* no kernel name */

#define OCC_IMPORT_SKIP_ENUMERATOR(name, id) OCC_IMPORT_SKIP_##name,
enum occ_import_skip { OCC_IMPORT_SKIPS(OCC_IMPORT_SKIP_ENUMERATOR) OCC_IMPORT_SKIP_COUNT };

/* The recording as a whole. Strings: "" is unknown. */
struct occ_import_recording {
    char tool_version[128], hostname[256], exe[512];
    char missing_fields[1024]; /* fields that the source never contains, for people, joined by ", " */
    int32_t pid;               /* 0: unknown, or several */
    int32_t rank;              /* rank in a distributed job; -1: none or unknown */
    bool time_base_unknown;    /* times (with the shift) do not count from 1970 */
    int64_t shift_ns;          /* added to the times of every launch */
};
/* May be called at any time; the last call counts. */
void occ_import_sink_recording(struct occ_import_sink *sink, const struct occ_import_recording *recording);

/* Adds a device with the recording's number, before its first launch. Limits as in the file, 0: unknown; the
 * history completes them. */
int occ_import_sink_device(struct occ_import_sink *sink, uint64_t number,
                           const struct occ_store_device *device, struct occ_error *err);
bool occ_import_sink_has_device(const struct occ_import_sink *sink, uint64_t number);

/* The GPU that the user named, for recordings that do not describe theirs; NULL: none. */
const struct occ_store_device *occ_import_sink_named_gpu(const struct occ_import_sink *sink);

/* Values that the source measured with hardware counters for a launch. */
#define OCC_IMPORT_METRICS_MAX 192u
#define OCC_IMPORT_METRIC_NAME 112u /* bytes, with the NUL */
struct occ_import_metric {
    char name[OCC_IMPORT_METRIC_NAME]; /* the source's name */
    char unit[8];
    double value;
};
struct occ_import_measured {
    double achieved, sm_active, imbalance; /* as struct occ_measurement; NaN: not measured */
    uint32_t n_metrics;
    struct occ_import_metric metrics[OCC_IMPORT_METRICS_MAX];
};

/* Identifies the call that made a launch, or the CUDA graph node that the launch replays. */
struct occ_import_origin {
    uint64_t process; /* process, if launches contain it; else 0 */
    uint64_t id;      /* correlation id or node id; 0: unknown */
    bool is_node;
};

struct occ_import_launch {
    const char *name; /* mangled or demangled, as in the source; not NUL-terminated */
    size_t name_bytes;
    uint64_t device;                 /* the recording's number */
    struct occ_launch_config config; /* the sink sets `kernel` and `device` */
    int64_t start_ns;
    int64_t end_ns;
    uint64_t graph_node;
    uint32_t stream;
    uint32_t context;
    uint32_t correlation;
    struct occ_import_origin origin;
    double reported_achieved;                   /* the source's own "achieved occupancy" 0...1; NaN: none */
    const struct occ_import_measured *measured; /* NULL: not measured */
};
/* `launch` is zeroed with memset() before its members are set: padding must not tell configurations apart.
 * Launches with impossible times, device or values are counted as skipped; they are no error. */
int occ_import_sink_launch(struct occ_import_sink *sink, const struct occ_import_launch *launch,
                           struct occ_error *err);

/* An activity of a thread (ranges.h): a range or, with `origin`, a call or the creation of a node. Activities
 * with impossible times or origins give launches no place. */
struct occ_import_range {
    int64_t process, thread; /* any numbers */
    int64_t start_ns, end_ns;
    const char *name; /* not NUL-terminated; may be cut */
    size_t name_bytes;
    bool keeps_digits; /* digits do not count steps; otherwise runs of digits become # */
    bool is_autograd;  /* true for autograd's evaluate_function */
    int64_t sequence;  /* autograd's sequence number of the operator; negative: none */
};
struct occ_import_call {
    int64_t process, thread, start_ns, end_ns;
    struct occ_import_origin origin;
};
int occ_import_sink_range(struct occ_import_sink *sink, const struct occ_import_range *range,
                          struct occ_error *err);
int occ_import_sink_call(struct occ_import_sink *sink, const struct occ_import_call *call,
                         struct occ_error *err);
/* Drops all ranges, because the file will be read again. No launch was taken. */
int occ_import_sink_restart_ranges(struct occ_import_sink *sink, struct occ_error *err);

/* True if no launch was taken. */
bool occ_import_sink_is_empty(const struct occ_import_sink *sink);

/* Counts a launch that the reader cannot describe. */
void occ_import_sink_skip(struct occ_import_sink *sink, enum occ_import_skip why);
/* The number of launches that were skipped for this cause. */
uint64_t occ_import_sink_skipped(const struct occ_import_sink *sink, enum occ_import_skip why);

/* The reader has read `done` of `total` (bytes of the file, or rows). */
void occ_import_sink_progress(struct occ_import_sink *sink, uint64_t done, uint64_t total);

/* Identifiers of enum occ_import_skip. */
const char *occ_import_skip_word(enum occ_import_skip why);

/* "bad_times 3, no_device 1"; "" if nothing was skipped. */
#define OCC_IMPORT_SKIPS_BYTES 256
const char *occ_import_skips_text(const uint64_t skipped[OCC_IMPORT_SKIP_COUNT],
                                  char text[OCC_IMPORT_SKIPS_BYTES]);
