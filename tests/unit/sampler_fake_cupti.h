/* Script and counts of the PM sampling of sampler_fake_cupti.c; the test finds the struct as fake_pm in the
 * library. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct fake_pm {
    const char *chip;
    uint64_t now_ns;         /* the device's time */
    uint64_t capacity;       /* samples in the hardware buffer */
    uint32_t enable_result;  /* of cuptiPmSamplingEnable, */
    unsigned enable_from;    /* from this call on, which is 0 the first time, */
    unsigned enable_results; /* so often; then it succeeds */
    uint32_t vgpu;           /* cuptiProfilerDeviceSupported's answer; 0: unknown */
    const char *lacks[2];    /* metrics that the chip has not */
    bool keeps_one_config;   /* samples of another configuration than the first cannot be decoded */
    bool fails_full;         /* a buffer that overflowed makes the decode fail, instead of its flag */
    /* counted by the library */
    unsigned starts, stops, enables, disables, initialised_images, configurations;
    bool is_enabled;
    const uint8_t *config, *first_config; /* the client's, not copied */
    uint64_t interval_ns, first_interval_ns, sampled_ns, started_ns;
    uint32_t n_metrics; /* of the configuration that was made last */
    uint64_t n;         /* samples in the hardware buffer, the last one ends at sampled_ns */
    uint32_t append_mode;
    bool is_started, is_full;
};
