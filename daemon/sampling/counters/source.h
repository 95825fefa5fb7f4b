/*
 * A source of device-wide hardware counters, one object per GPU: PM sampling through CUPTI (pm.c), NVML's GPM
 * (gpm.c). Both libraries are bound at run time. A source that cannot work reports a state and a reason that
 * a person can act on.
 *
 * Threads: an object belongs to one thread; several may open at once (occ_source_open). A function blocks no
 * longer than decodes and a new session take.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample.h"
#include "support/error.h"

/* X(NAME, word, text): why a source is not available. */
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

/* A GPU found by occ_gpus_find(). */
struct occ_gpu_found {
    uint32_t ordinal; /* CUDA's ordinal */
    uint8_t uuid[16]; /* uuid of the MIG slice if the driver shows one */
    uint32_t sm_count, max_warps_per_sm;
    uint32_t warp_size;
    uint32_t cc_major, cc_minor; /* compute capability: 9.0 is Hopper */
    char name[96];
};

struct occ_source_options {
    struct occ_gpu_found gpu;
    int64_t interval_ns;       /* requested; a source may use a longer one (GPM: at least 100 ms) */
    uint64_t buffer_bytes;     /* size of the hardware buffer; 0: the default */
    const char *cupti_path;    /* NULL: the search of cupti/library.h */
    const char *cupti_offered; /* path from a program that uses it, not checked; NULL: none */
    const char *nvml_path;     /* NULL: libnvidia-ml.so.1 */
    int64_t turn_ns;           /* length of the turn of PM's first counter set; 0: the default */
    bool keeps_first_set;      /* an earlier change of the counter set or the interval failed */
};

struct occ_source;

struct occ_source_stats {
    uint64_t samples, bad_samples; /* bad: end <= start, or no values */
    uint64_t overflows, gaps;      /* overflows of the hardware buffer; intervals without a sample */
    uint64_t rotations;            /* changes of the counter set */
    uint64_t bytes_per_sample;     /* size after decoding; 0: unknown */
    uint64_t failed_changes;       /* failed changes of the counter set or the interval */
    uint64_t renewals;             /* restarts after the end of another GPU's session ended this one */
};

struct occ_source_kind {
    const char *word; /* "pm", "gpm" */
    size_t bytes;     /* size of its struct occ_source, which is zeroed before begin() */
    /* On failure the state is not OK and `err` has the library's text; the caller then calls close(). */
    enum occ_source_state (*begin)(struct occ_source *source, const struct occ_source_options *options,
                                   struct occ_error *err);
    /* Copies at most `max` samples since the last call, oldest first; *ret_n is their number. */
    enum occ_source_state (*read)(struct occ_source *source, struct occ_sample *samples, size_t max,
                                  size_t *ret_n, struct occ_error *err);
    /* Changes the interval (bursts). NOT_SUPPORTED: the interval stays and the source keeps working. */
    enum occ_source_state (*set_interval)(struct occ_source *source, int64_t interval_ns,
                                          struct occ_error *err);
    void (*get_stats)(const struct occ_source *source, struct occ_source_stats *ret_stats);
    /* Text for people: limitations of this source compared to others of its kind; "": none. */
    const char *(*get_note)(const struct occ_source *source);
    void (*close)(struct occ_source *source); /* releases the counters; NULL is allowed */
};
extern const struct occ_source_kind occ_source_pm, occ_source_gpm;

/* Maximum time between two reads of a source: an image has room for twice as long, in case the reader is
 * late. */
int64_t occ_source_read_every_ns(int64_t interval_ns);

/* Opens sources one at a time: neither the driver nor CUPTI promises that several threads may initialise it
 * at once. On failure *ret_source is NULL. */
enum occ_source_state occ_source_open(const struct occ_source_kind *kind,
                                      const struct occ_source_options *options,
                                      struct occ_source **ret_source, struct occ_error *err);
