/*
 * A source of device-level hardware counters, one object a GPU: PM sampling through CUPTI (pm.c), NVML's GPM (gpm.c).
 * Both libraries are bound at run time; a source that cannot work says why in a reason that a person can act on.
 *
 * Shapes and units: a sample covers [start_ns, end_ns) of CLOCK_REALTIME as the source converts it (the offset to
 * the kernels' timestamps is not known). Counters are sums over all SMs and the interval; what the
 * counter set at hand does not hold is NaN, never 0.
 *
 * Threads: one object belongs to one thread. No function blocks longer than one decode.
 */
#ifndef OCC_SAMPLER_SOURCE_H
#define OCC_SAMPLER_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "support/error.h"

/* Sums over SMs and interval except where it says otherwise. */
enum occ_counter {
    OCC_COUNTER_WARPS,           /* warp-cycles: resident warps summed over cycles */
    OCC_COUNTER_BLOCKS,          /* block-cycles: resident blocks summed over cycles */
    OCC_COUNTER_ACTIVE,          /* SM-cycles with at least one resident warp */
    OCC_COUNTER_ACTIVE_MIN,      /* the same of the least active SM */
    OCC_COUNTER_ACTIVE_MAX,      /* the same of the most active SM */
    OCC_COUNTER_ELAPSED,         /* cycles of one SM that the interval lasted */
    OCC_COUNTER_STALL_REGISTERS, /* cycles that the launch of warps waited for registers */
    OCC_COUNTER_STALL_SMEM,      /* the same for shared memory */
    OCC_COUNTER_STALL_BLOCKS,    /* the same for a block slot */
    OCC_COUNTER_STALL_WARPS,     /* the same for warp slots */
    OCC_COUNTER_STALL_BARRIERS,  /* the same for barriers */
    OCC_COUNTER_COUNT
};

struct occ_sample {
    int64_t start_ns, end_ns;
    double value[OCC_COUNTER_COUNT]; /* NaN: not in this set */
};

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
