/* Log lines that could repeat for ever (a full disk, hostile handshakes): the first is written at once, then
 * at most one per period, with the number of suppressed lines. One thread. */
#pragma once

#include <stdint.h>

#include "support/log.h"

#define OCC_RATELIMIT_PERIOD_NS INT64_C(10000000000)

struct occ_ratelimit {
    int64_t quiet_until_ns; /* monotonic; 0: no line was written yet */
    uint64_t left_out;
};

void occ_ratelimit_log(struct occ_ratelimit *limit, int64_t now_ns, enum occ_log_level level,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));
