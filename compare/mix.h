/* What a mean changes by: its parts, or the mix of them. Pure but for malloc; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "support/error.h"

/* A part of a side, such as a kernel. */
struct diff_mix_part {
    uint64_t key;         /* the same on both sides; unique on one */
    double weight, value; /* value: NaN: not known */
};
struct diff_mix_side {
    const struct diff_mix_part *parts;
    size_t n;
};

/* What of the ratio of both means, less 1, comes from the parts and from their mix. */
struct diff_mix {
    double parts, mix;
};

/*
 * The mean of a side is the sum of w x, w a part's share of the weight and x its value. From a to b it
 * changes by the sum of (wb - wa)(xa + xb)/2, another mix, and of (wa + wb)/2 (xb - xa), the parts
 * themselves; a part of one side only is mix.
 */
int diff_mix_split(const struct diff_mix_side sides[2], struct diff_mix *ret_mix, struct occ_error *err);
