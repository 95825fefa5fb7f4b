/*
 * CUPTI's profiler host: which counters a chip has, their configuration for one pass, and their values
 * afterwards. Used by the range profiler (injector/exact/) and by PM sampling (daemon/sampling/counters/).
 *
 * Errors: 0 or CUPTI's result code. Memory comes from mmap(2), since some callers are CUPTI's callbacks;
 * nothing is printed. Threads: one at a time for each struct.
 */
#pragma once

#include "functions.h"
#include "library.h"

/* False: no memory, or size 0; the image is zeroed. */
bool occ_cupti_image_new(struct occ_cupti_image *image, size_t size);
void occ_cupti_image_free(struct occ_cupti_image *image);

struct occ_cupti_host {
    const struct occ_cupti_host_calls *call;
    struct occ_cupti_metrics metrics;
    void *object;
    struct occ_cupti_image config;
    size_t passes; /* passes that the metrics need; more than 1 would replay kernels */
};

/* NULL, or the name of the first function that the library lacks. */
const char *occ_cupti_host_bind(const struct occ_cupti *cupti, struct occ_cupti_host_calls *call);

/* Returns the image that lists the usable counters. `ask` is CUPTI's function for `subject`: a context or a
 * device. After a failure the image is zeroed, which stands for all counters of the chip. */
uint32_t occ_cupti_availability(uint32_t (*ask)(struct occ_params_availability *params), uintptr_t subject,
                                struct occ_cupti_image *ret_image);

/* Configures the metrics for `chip` (the name from cuptiDeviceGetChipName) and for one of
 * OCC_PROFILER_TYPE_*. `availability` may be zeroed. The caller has set host->call and host->metrics. A
 * failure closes `host`. */
uint32_t occ_cupti_host_open(struct occ_cupti_host *host, uint32_t type, const char *chip,
                             const struct occ_cupti_image *availability);

/* Computes the metrics of one range or sample in `data`, in the order of the metrics. */
uint32_t occ_cupti_host_evaluate(const struct occ_cupti_host *host, const struct occ_cupti_image *data,
                                 size_t range, double *ret_values);

/* A zeroed, partly opened or closed host is allowed. */
void occ_cupti_host_close(struct occ_cupti_host *host);
