/*
 * A source of device-level hardware counters, one object a GPU: PM sampling through CUPTI (pm.c), NVML's GPM (gpm.c).
 * Both libraries are bound at run time; a source that cannot work says why in a reason that a person can act on.
 *
 * Threads: one object belongs to one thread. No function blocks longer than one decode.
 */
#ifndef OCC_COUNTERS_SOURCE_H
#define OCC_COUNTERS_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "attribution/sample.h"
#include "support/error.h"

/* Why a source is not (or no longer) there. X(NAME, word, text) */
#define OCC_SOURCE_STATES(X)                                                                                 \
    X(OK, "ok", "sampling")                                                                                  \
    X(NO_LIBRARY, "no_library", "the library is not installed")                                              \
    X(NO_DRIVER, "no_driver", "the driver does not answer")                                                  \
    X(NO_PERMISSION, "no_permission",                                                                        \
      "needs root, CAP_PERFMON or the driver's option NVreg_RestrictProfilingToAdminUsers=0")                \
    X(NOT_SUPPORTED, "not_supported", "this GPU, driver or mode (MIG, vGPU) has no such counters")           \
    X(BUSY, "busy", "another tool uses the counters")                                                        \
    X(LOST, "gpu_lost", "the GPU does not answer any more")                                                  \
    X(IDLE, "idle", "the counters were closed, since no program had used this GPU for 10 s")                 \
    X(PAUSED, "paused", "paused by request")                                                                 \
    X(FAILED, "failed", "an unexpected error")

enum occ_source_state {
#define X(name, word, text) OCC_SOURCE_##name,
    OCC_SOURCE_STATES(X)
#undef X
        OCC_SOURCE_STATE_COUNT
};
const char *occ_source_state_word(enum occ_source_state state);
const char *occ_source_state_text(enum occ_source_state state);

struct occ_source_options {
    uint32_t device;        /* CUDA ordinal as the library counts */
    int64_t interval_ns;    /* wanted; a source may take a longer one (GPM: >= 100 ms) */
    uint64_t buffer_bytes;  /* hardware buffer; 0: by interval and chip */
    const char *cupti_path; /* NULL: as found (OCCTRACE_CUPTI, toolkit, system) */
    const char *nvml_path;  /* NULL: libnvidia-ml.so.1 */
};

struct occ_source;

struct occ_source_stats {
    uint64_t samples, bad_samples; /* bad: end <= start, or counters that cannot be */
    uint64_t overflows, gaps;      /* hardware buffer overflowed; time that no sample covers */
    uint64_t rotations;            /* counter sets switched */
    uint64_t bytes_per_sample;     /* that decoded samples take in memory; 0: not known */
};

/* A kind of source. */
struct occ_source_kind {
    const char *word; /* "pm", "gpm" */
    /* *ret_source is NULL and the state other than OK when it cannot work; `err` then has the library's words. */
    enum occ_source_state (*open)(const struct occ_source_options *options, struct occ_source **ret_source,
                                  struct occ_error *err);
    /* Copies what came since the last call, oldest first, at most `max`; *ret_n of them. */
    enum occ_source_state (*read)(struct occ_source *source, struct occ_sample *samples, size_t max,
                                  size_t *ret_n, struct occ_error *err);
    /* Another interval from now on (bursts). */
    enum occ_source_state (*set_interval)(struct occ_source *source, int64_t interval_ns,
                                          struct occ_error *err);
    void (*get_stats)(const struct occ_source *source, struct occ_source_stats *ret_stats);
    void (*close)(struct occ_source *source); /* gives the counters back; NULL is fine */
};
extern const struct occ_source_kind occ_source_pm, occ_source_gpm;

#endif
