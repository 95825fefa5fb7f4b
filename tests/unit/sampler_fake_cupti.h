/* Script and call counts of the PM sampling of sampler_fake_cupti.c; the library exports the struct as
 * fake_pm. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct fake_pm {
    const char *chip;
    uint64_t now_ns;         /* the device's time */
    uint64_t capacity;       /* samples in the hardware buffer */
    uint32_t enable_result;  /* result of cuptiPmSamplingEnable, */
    unsigned enable_from;    /* from this call on (0: the first one), */
    unsigned enable_results; /* for this number of calls; later calls succeed */
    uint32_t vgpu;           /* cuptiProfilerDeviceSupported's answer; 0: unknown */
    const char *lacks[2];    /* metrics that the chip lacks */
    bool keeps_one_config;   /* only samples of the first configuration can be decoded */
    bool fails_full;         /* an overflowed buffer makes the decode fail instead of setting its flag */
    /* counted by the library */
    unsigned starts, stops, enables, disables, initialised_images, configurations;
    bool is_enabled;
    const uint8_t *config, *first_config; /* the client's bytes, not a copy */
    uint64_t interval_ns, first_interval_ns, sampled_ns, started_ns;
    uint32_t n_metrics; /* of the newest configuration */
    uint64_t n;         /* samples in the hardware buffer; the last one ends at sampled_ns */
    uint32_t append_mode;
    bool is_started, is_full;
};
