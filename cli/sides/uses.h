/* GPU times of the launches of a side (compare/gpu_time.h), from the launches in their order. One thread. */
#pragma once

#include "compare/gpu_time.h"

/* A launch whose GPU time is not known yet: it ends with the next start on its GPU. */
struct side_use {
    uint64_t device;
    int64_t start_ns, end_ns; /* end_ns: the last end of the run's launches on this GPU so far */
    uint32_t slice, pair;
};
struct side_uses {
    struct diff_uses *uses;
    uint32_t side, run;
    struct side_use *last; /* the last launch on each GPU */
    size_t n, allocated;
};

/* Adds the next launch, in the order of starts in its run. Returns false without memory. */
bool side_uses_add(struct side_uses *side, uint32_t run, const struct side_use *launch);
/* Ends the side, and frees the memory. */
void side_uses_end(struct side_uses *side);
