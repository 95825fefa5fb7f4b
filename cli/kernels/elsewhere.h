/*
 * The recorded launches on another GPU: one row per kernel and device. The driver's choices on the recorded
 * device are not applied to the other device, except a carve-out if both have the same compute capability;
 * registers and durations stay the same. Pure; any thread.
 */
#pragma once

#include "store/store.h"

/* Values of a kernel on one device; NaN and "": no configuration was analysed there. */
struct elsewhere_figures {
    /* means over the configurations, weighted by their time */
    double theoretical, expected_achieved_low, expected_achieved_high, expected_elapsed_low,
        expected_elapsed_high;
    double waves; /* waves of the configuration with the longest total time, like `limiters` */
    double waste; /* sum, in warp-seconds */
    char limiters[64];
    char expected[24]; /* text with both ends of expected achieved occupancy */
};

/* A kernel on its recorded device. `there` is over the configurations that run on the other device; `here` is
 * over the same configurations, as far as they are analysed, or over all if none runs there. Texts belong to
 * the configurations. */
struct elsewhere_row {
    int64_t kernel_id, device_id;
    double device_number; /* device_id; NaN: a GPU model, since a warehouse has no devices */
    const char *kernel, *words, *demangled, *device; /* words: NULL for none */
    const char *refused_because; /* reason of the first configuration that cannot run there; NULL: all can */
    bool simulated;
    struct elsewhere_figures here, there;
    double compared_ns; /* time of the configurations of `there`; 0: `here` and `there` cannot be compared */
    uint64_t launches, total_ns;
    uint32_t configs, refused,
        not_analysed; /* numbers of configurations; not_analysed: on their own device */
};

/* Evaluates all configurations on `device`. Configurations of a kernel and device must be adjacent. The
 * kernel with the longest total time is first. `rows` has room for as many rows as there are configurations.
 * Returns the number of rows. */
size_t elsewhere_rows(const struct occ_config_rows *configs, const struct occ_device *device,
                      struct elsewhere_row *rows);
