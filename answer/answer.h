/*
 * Answers to questions about a history, as the structs of explain/. Every command and every agent that tells
 * where GPU time goes asks here, so that all of them have the same numbers. Another source (a warehouse)
 * fills the same structs.
 *
 * An overview needs a bounded time, however many launches there are: sums of durations are exact (rollups),
 * the union of overlapping launches and the waits for launches come from at most OCC_GPU_ESTIMATE_LAUNCHES
 * launches (store/gaps.h). `read_ratio` is the part of the launches that were read.
 *
 * One thread at a time, like the store. Errors: support/error.h.
 */
#pragma once

#include <stdint.h>

#include "explain/verdict.h"
#include "store/store.h"
#include "support/json.h"

/* Texts and data of struct occ_totals' kernels, with the same index. */
struct occ_answer_kernel {
    const char *name, *demangled; /* the function's own name, full name; NULL: one of many small kernels */
    const char *label;            /* family and tile in words: "GEMM 128x64"; "": no rule knows the kernel */
    int64_t device;
    const char *device_name;
    struct occ_dominant_config config; /* the launch configuration with most time, for which changes are */
    uint64_t total_ns;                 /* of all its configurations */
};

/* Where the GPU time of launches went, and what to change. */
struct occ_overview {
    struct occ_totals totals; /* a row for each device, and for each kernel on a device */
    const struct occ_answer_kernel *kernels;
    struct occ_gpu_time time;           /* of all GPUs; window_s 0: not known */
    const struct occ_finding *findings; /* the largest predicted saving first */
    size_t n_findings;
    uint64_t launches;
    double kernel_s;   /* sum of durations, with communication */
    double read_ratio; /* part of the launches that were read for busy time and waits; NaN: no launches */
    /* true: no launch of a GPU could be read, so that its kernels count as not overlapping: busy time is at
     * most what is given, and no wait for a launch is known */
    bool is_busy_most;
    double measured_ratio; /* part of kernel_s with measured occupancy */
    bool is_simulated;
    void *memory;
};

/* Uses the filter's runs, time and GPU. Its texts for kernels, ranges and streams have no influence: GPU time
 * is about all kernels. No launches: launches 0. */
int occ_overview_ask(struct occ_store *store, const struct occ_filter *filter,
                     struct occ_overview *ret_overview, struct occ_error *err);
/* The same from the answer of `top` by kernel to the filter of occ_overview_filter(). The overview does not
 * refer to `kernels`. */
int occ_overview_make(struct occ_store *store, const struct occ_filter *filter, const struct occ_top *kernels,
                      struct occ_overview *ret_overview, struct occ_error *err);
/* The same without findings, which cost a part of the time. */
int occ_overview_make_times(struct occ_store *store, const struct occ_filter *filter,
                            const struct occ_top *kernels, struct occ_overview *ret_overview,
                            struct occ_error *err);
void occ_overview_free(struct occ_overview *overview);

/* The filter without choices among the kernels of a GPU. */
struct occ_filter occ_overview_filter(const struct occ_filter *filter);
/* True if the filter chooses among the kernels of a GPU. */
bool occ_overview_is_partial(const struct occ_filter *filter);

/* Shares of the GPU time in steps of 1 / `steps` that add up to `steps`, for people (100: percent). */
struct occ_gpu_steps {
    unsigned launch_wait, pause, communication, copies, used, unknown, lost[OCC_PART_COUNT];
};
struct occ_gpu_steps occ_overview_steps(const struct occ_gpu_time *time, unsigned steps);

/* Share of the GPU time of `total_ns` of kernels, which may overlap, on a device (0: on any); NaN: not
 * known. */
double occ_overview_share(const struct occ_overview *overview, int64_t device, double total_ns);

/* The part of a finding's subject that was measured, in words: "modelled", "simulated", "measured in 12 % of
 * its time". */
const char *occ_confidence_text(const struct occ_finding *finding, char *text, size_t size);

/* The overview for people: how busy the GPUs were, where the time went (parts that add up to 100 %), the
 * largest loss, how sure that is. Returns the number of lines; 0: no launches. Names of GPUs are not
 * sanitised. */
enum { OCC_OVERVIEW_LINES = 4, OCC_OVERVIEW_LINE_BYTES = 256 };
size_t occ_overview_text(const struct occ_overview *overview,
                         char lines[OCC_OVERVIEW_LINES][OCC_OVERVIEW_LINE_BYTES]);

/* Write the members "gpu_time" (null: not known) and "findings" of the open object. At most `max` findings.
 */
void occ_overview_json(struct occ_json *json, const struct occ_overview *overview, size_t max);
