/*
 * A source of device-wide hardware counters, one object for each GPU: PM sampling through CUPTI (pm.c),
 * NVML's GPM (gpm.c). Both libraries are bound at run time. A source that cannot work reports a state and a
 * reason that a person can act on.
 *
 * Threads: an object belongs to one thread; several may open at once (occ_source_open). No function blocks
 * longer than one decode.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample.h"
#include "support/error.h"

/* Why a source is not, or no longer, available. X(NAME, word, text) */
#define OCC_SOURCE_STATES(X)                                                                                 \
    X(OK, "ok", "sampling")                                                                                  \
    X(NO_LIBRARY, "no_library", "no usable library is installed")                                            \
    X(NO_DRIVER, "no_driver", "the driver does not answer")                                                  \
    X(NO_PERMISSION, "no_permission",                                                                        \
      "needs root, CAP_PERFMON or the driver's option NVreg_RestrictProfilingToAdminUsers=0")                \
    X(NOT_SUPPORTED, "not_supported", "this GPU, driver or mode (MIG, vGPU) has no such counters")           \
    X(NOT_PASSED, "not_passed", "the kernel or the hypervisor does not pass the counters (gVisor, vGPU)")    \
    X(BUSY, "busy", "another tool uses the counters")                                                        \
    X(LOST, "gpu_lost", "the GPU does not answer")                                                           \
    X(IDLE, "idle", "the counters were closed, since no program had used this GPU for 10 s")                 \
    X(PAUSED, "paused", "paused by request")                                                                 \
    X(FAILED, "failed", "an unexpected error")

#define OCC_SOURCE_ENUMERATOR(name, word, text) OCC_SOURCE_##name,
enum occ_source_state { OCC_SOURCE_STATES(OCC_SOURCE_ENUMERATOR) OCC_SOURCE_STATE_COUNT };
const char *occ_source_state_word(enum occ_source_state state);
const char *occ_source_state_text(enum occ_source_state state);

/* A GPU as occ_gpus_find() finds it. */
struct occ_gpu_found {
    uint32_t ordinal; /* CUDA's */
    uint8_t uuid[16]; /* of a MIG slice, if that is what the driver shows */
    uint32_t sm_count, max_warps_per_sm;
    uint32_t warp_size;
    uint32_t cc_major, cc_minor; /* compute capability: 9.0 is Hopper */
    char name[96];
};

struct occ_source_options {
    struct occ_gpu_found gpu;
    int64_t interval_ns;       /* requested; a source may take a longer one (GPM: at least 100 ms) */
    uint64_t buffer_bytes;     /* hardware buffer; 0: the default */
    const char *cupti_path;    /* NULL: by the rules of cupti/library.h */
    const char *cupti_offered; /* by a program that uses it, not checked; NULL: none */
    const char *nvml_path;     /* NULL: libnvidia-ml.so.1 */
    int64_t turn_ns;           /* of PM's first counter set; 0: the default */
    bool keeps_first_set;      /* a change of the counter set or the interval has failed before */
};

struct occ_source;

struct occ_source_stats {
    uint64_t samples, bad_samples; /* bad: end <= start, or no values */
    uint64_t overflows, gaps;      /* of the hardware buffer; intervals that no sample covers */
    uint64_t rotations;            /* changes of the counter set */
    uint64_t bytes_per_sample;     /* decoded; 0: unknown */
    uint64_t failed_changes;       /* of the counter set or the interval */
    uint64_t renewals;             /* after the end of another GPU's sampling had ended this one's */
};

struct occ_source_kind {
    const char *word; /* "pm", "gpm" */
    size_t bytes;     /* of its struct occ_source, which is all 0 before it begins */
    /* On failure the state is not OK and `err` has the library's text; close() follows. */
    enum occ_source_state (*begin)(struct occ_source *source, const struct occ_source_options *options,
                                   struct occ_error *err);
    /* Copies the samples since the last call, oldest first, at most `max`; *ret_n is their number. */
    enum occ_source_state (*read)(struct occ_source *source, struct occ_sample *samples, size_t max,
                                  size_t *ret_n, struct occ_error *err);
    /* Changes the interval (bursts). NOT_SUPPORTED: it stays, and the source works on. */
    enum occ_source_state (*set_interval)(struct occ_source *source, int64_t interval_ns,
                                          struct occ_error *err);
    void (*get_stats)(const struct occ_source *source, struct occ_source_stats *ret_stats);
    /* What this source does less of than others of its kind, for people; "": nothing. */
    const char *(*get_note)(const struct occ_source *source);
    void (*close)(struct occ_source *source); /* releases the counters; NULL is fine */
};
extern const struct occ_source_kind occ_source_pm, occ_source_gpm;

/* A source has to be read so often: what one decode holds is bounded, and a reader may be late by once more.
 */
int64_t occ_source_read_every_ns(int64_t interval_ns);

/* One thread at a time: neither the driver nor CUPTI promises that several may initialise it at once. On
 * failure *ret_source is NULL. */
enum occ_source_state occ_source_open(const struct occ_source_kind *kind,
                                      const struct occ_source_options *options,
                                      struct occ_source **ret_source, struct occ_error *err);
