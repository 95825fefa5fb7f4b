/*
 * The age of launch records: from the launch's end to its arrival in the daemon. A flush a second and a
 * commit a second make 2 s; on a GPU that is always busy CUPTI keeps records until a buffer is full. Launches
 * that start before the watermark are taken to be complete, and are joined with their samples. Pure; one
 * thread.
 */
#pragma once

#include <stdint.h>

#define OCC_RECORD_AGE_MIN_NS    INT64_C(3000000000)
#define OCC_RECORD_AGE_MAX_NS    INT64_C(20000000000) /* older records waited for a daemon, not for CUPTI */
#define OCC_RECORD_AGE_MARGIN_NS INT64_C(1000000000)

struct occ_record_age {
    int64_t worst_ns; /* largest age, decaying */
};

static inline void occ_record_age_add(struct occ_record_age *age, int64_t end_ns, int64_t arrived_ns)
{
    int64_t ns = arrived_ns - end_ns;
    if (ns > age->worst_ns && ns <= OCC_RECORD_AGE_MAX_NS)
        age->worst_ns = ns;
}

/* Distance of the watermark from the clock. Each call lowers the largest age by 1/2048: by half in 71 s at a
 * round every 50 ms. */
static inline int64_t occ_record_age_watermark(struct occ_record_age *age)
{
    age->worst_ns -= age->worst_ns / 2048;
    return OCC_RECORD_AGE_MARGIN_NS +
           (age->worst_ns > OCC_RECORD_AGE_MIN_NS ? age->worst_ns : OCC_RECORD_AGE_MIN_NS);
}
