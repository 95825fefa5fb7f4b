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
    uint32_t enable_results; /* so often; then it succeeds */
    bool fails_full;         /* a buffer that overflowed makes the decode fail, instead of its flag */
    /* counted by the library */
    unsigned starts, stops, enables, disables;
    uint64_t interval_ns, sampled_ns, started_ns;
    uint64_t n; /* samples in the hardware buffer, the last one ends at sampled_ns */
    uint32_t append_mode;
    bool is_started, is_full;
};
