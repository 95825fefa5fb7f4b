/*
 * CUPTI's profiler host: which counters a chip has, their configuration for one pass, and their values
 * afterwards. Used by the range profiler (injector/exact/) and by PM sampling (daemon/counters/).
 *
 * Errors: 0 or CUPTI's result code. Memory comes from mmap(2), since some callers are CUPTI's callbacks;
 * nothing is printed. Threads: one at a time for each struct.
 */
#pragma once

#include "functions.h"
#include "library.h"

/* False: no memory, or size 0; the image is then none. */
bool occ_cupti_image_new(struct occ_cupti_image *image, size_t size);
void occ_cupti_image_free(struct occ_cupti_image *image);

struct occ_cupti_host {
    const struct occ_cupti_host_calls *call;
    struct occ_cupti_metrics metrics;
    void *object;
    struct occ_cupti_image config;
    size_t passes; /* that the metrics need; more than 1 would replay kernels */
};

/* NULL or the name of a function that the library lacks. */
const char *occ_cupti_host_bind(const struct occ_cupti *cupti, struct occ_cupti_host_calls *call);

/* The image that lists which counters may be used. `ask` is CUPTI's function for `subject`: a context or a
 * device. On failure the image is none, which stands for everything that the chip has. */
uint32_t occ_cupti_availability(uint32_t (*ask)(struct occ_params_availability *params), uintptr_t subject,
                                struct occ_cupti_image *ret_image);

/* Configures the metrics for `chip` (as cuptiDeviceGetChipName names it) and for one of OCC_PROFILER_TYPE_*;
 * `availability` may be none. `host` has `call` and `metrics`; on failure it is closed. */
uint32_t occ_cupti_host_open(struct occ_cupti_host *host, uint32_t type, const char *chip,
                             const struct occ_cupti_image *availability);

/* Values of one range or sample in `data`, in the order of the metrics. */
uint32_t occ_cupti_host_evaluate(const struct occ_cupti_host *host, const struct occ_cupti_image *data,
                                 size_t range, double *ret_values);

/* One that is zeroed, half made or closed is fine. */
void occ_cupti_host_close(struct occ_cupti_host *host);
