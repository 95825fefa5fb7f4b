/*
 * Answers questions about a history with the structs of explain/. All commands and agent tools that report
 * GPU time call these functions, so that their numbers agree. A reader of another source (a warehouse) can
 * fill the same structs.
 *
 * The time for an overview does not grow with the number of launches: sums of durations are exact and come
 * from rollups; the overlap of kernels and the waits for launches are estimated from at most
 * OCC_GPU_ESTIMATE_LAUNCHES launches (store/gaps.h).
 *
 * One thread at a time, like the store. Errors: support/error.h.
 */
#pragma once

#include <stdint.h>

#include "explain/verdict.h"
#include "store/store.h"
#include "support/json.h"

/* Texts and data of a kernel on a device. Item i describes row i of the totals' kernels. */
struct occ_answer_kernel {
    const char *name, *demangled; /* short and full name; NULL: a small kernel beyond the limit for names */
    const char *label;            /* family and tile in words: "GEMM 128x64"; "": no rule knows the kernel */
    int64_t device;
    const char *device_name;
    struct occ_dominant_config config; /* the configuration with the longest time; changes are for it */
    uint64_t total_ns;                 /* durations of all configurations */
};

/* Uses of the GPU time, and the changes that save most of it. */
struct occ_overview {
    struct occ_totals totals; /* one row per device, and one per kernel and device */
    const struct occ_answer_kernel *kernels;
    const double *duration_s;           /* sum of durations on each of totals.gpus */
    struct occ_gpu_time time;           /* all GPUs together; window_s 0: unknown */
    const struct occ_finding *findings; /* the largest predicted saving first */
    size_t n_findings;
    uint64_t launches;
    double kernel_s;   /* sum of durations, with communication */
    double read_ratio; /* share of the launches read for busy time and waits; NaN: no launches */
    /* True if no launch of any GPU could be read: overlap and waits for launches are unknown, and busy time
     * is an upper bound. */
    bool is_busy_most;
    double measured_ratio; /* share of kernel_s with measured occupancy */
    bool is_simulated;
    void *memory;
};

/* Makes an overview of the filter's runs, time and GPU. Ignores the filter's conditions on kernels, ranges
 * and streams, since GPU time is shared by all kernels. Without launches the overview has `launches` 0. Free
 * it with occ_overview_free(). */
int occ_overview_ask(struct occ_store *store, const struct occ_filter *filter,
                     struct occ_overview *ret_overview, struct occ_error *err);
/* Makes an overview from `kernels`, the answer of occ_store_top() by kernel to the filter of
 * occ_overview_filter(). The caller may free `kernels` before the overview. */
int occ_overview_make(struct occ_store *store, const struct occ_filter *filter, const struct occ_top *kernels,
                      struct occ_overview *ret_overview, struct occ_error *err);
/* Makes an overview without findings, which takes less time. */
int occ_overview_make_times(struct occ_store *store, const struct occ_filter *filter,
                            const struct occ_top *kernels, struct occ_overview *ret_overview,
                            struct occ_error *err);
void occ_overview_free(struct occ_overview *overview);

/* Returns the filter without its conditions on kernels, ranges and streams. */
struct occ_filter occ_overview_filter(const struct occ_filter *filter);
/* Returns true if the filter has conditions on kernels, ranges or streams. */
bool occ_overview_is_partial(const struct occ_filter *filter);

/* Shares of the GPU time for people, as integers that add up to `steps` (100: percent). */
struct occ_gpu_steps {
    unsigned launch_wait, pause, communication, copies, used, unknown, lost[OCC_PART_COUNT];
};
struct occ_gpu_steps occ_overview_steps(const struct occ_gpu_time *time, unsigned steps);

/* Converts `total_ns`, a sum of kernel durations on a device (0: on all), to a share of the GPU time. Overlap
 * of kernels is deducted in proportion to durations. Returns NaN if the GPU time is unknown. */
double occ_overview_share(const struct occ_overview *overview, int64_t device, double total_ns);

/* A kernel that loses GPU time, on all its devices. */
struct occ_worst_kernel {
    size_t kernel; /* index of its row with the largest loss */
    double share;  /* of the GPU time */
    double used;   /* part of its warp slots that held a warp */
};
/* Finds at most `max` kernels with a loss of at least OCC_FINDING_MIN, the largest loss first. None if the
 * GPU time is unknown. Returns 0 or OCC_E_NO_MEMORY. */
int occ_overview_worst(const struct occ_overview *overview, size_t max, struct occ_worst_kernel *ret_worst,
                       size_t *ret_n);
/* Prints the largest cause of row `kernel` in words, as occ_why_text(). Returns `text`. */
const char *occ_overview_why(const struct occ_overview *overview, size_t kernel, char text[OCC_WHY_BYTES]);

/* Prints the source of a finding's occupancy: "modelled", "simulated", "measured in 12 % of its time".
 * Returns `text`. */
const char *occ_confidence_text(const struct occ_finding *finding, char *text, size_t size);

/* Prints the overview for people: busy time of the GPUs, parts of the GPU time (100 % together), the largest
 * loss, and the source of the occupancy. Returns the number of lines; 0: no launches. Names of GPUs are not
 * sanitised. */
enum { OCC_OVERVIEW_LINES = 4, OCC_OVERVIEW_LINE_BYTES = 256 };
size_t occ_overview_text(const struct occ_overview *overview,
                         char lines[OCC_OVERVIEW_LINES][OCC_OVERVIEW_LINE_BYTES]);

/* Writes the members "gpu_time" (null: unknown) and "findings" (at most `max`) into the open object. */
void occ_overview_json(struct occ_json *json, const struct occ_overview *overview, size_t max);
