/*
 * The recorded launches on another GPU: one row per kernel and device. The driver's choices on the recorded
 * device are not applied to the other device, except a carve-out if both have the same compute capability;
 * registers and durations stay the same. Pure; any thread.
 */
#pragma once

#include "store/store.h"

/* Means of a side; NaN and "": no configuration was analysed there. */
struct elsewhere_figures {
    double theoretical, expected_achieved_low, expected_achieved_high, expected_elapsed_low,
        expected_elapsed_high, waves, waste;
    char limiters[64], expected[24]; /* expected: text with both ends of expected achieved occupancy */
};

/* A kernel on its recorded device. If configurations run on the other device, `here` and `there` are over the
 * same configurations. */
struct elsewhere_row {
    int64_t kernel_id, device_id;
    double device_number; /* NaN: a device model, since a warehouse has no devices */
    const char *kernel, *words, *demangled, *device; /* words: NULL for none */
    const char *refused_because;                     /* reason of the first refused configuration */
    bool simulated;
    struct elsewhere_figures here, there;
    double
        compared_ns; /* time of the configurations of `here` and `there`; 0: none runs on the other device */
    uint64_t launches, total_ns;
    uint32_t configs, refused, not_analysed;
};

/* Evaluates all configurations on `device`, the kernel with the longest total time first. `rows` has room for
 * one row per configuration. Returns the number of rows. */
size_t elsewhere_rows(const struct occ_config_rows *configs, const struct occ_device *device,
                      struct elsewhere_row *rows);
