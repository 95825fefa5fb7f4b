/* Causes of the change of a mean: its parts, or their mix. Pure but for malloc; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "support/error.h"

/* A part of a side, such as a kernel. */
struct diff_mix_part {
    uint64_t key;         /* the same for a part on both sides; unique on a side */
    double weight, value; /* value: NaN: not known */
};
struct diff_mix_side {
    const struct diff_mix_part *parts;
    size_t n;
};

/* The relative change of the mean as the sum of two terms: from the parts' values, and from their mix. */
struct diff_mix {
    double parts, mix;
};

/*
 * The mean of a side is the sum of w x: w is a part's share of the weight, x its value. From side a to side b
 * the mean changes by the sum of (wb - wa)(xa + xb)/2 (the mix) and of (wa + wb)/2 (xb - xa) (the parts). A
 * part of one side only counts as mix.
 */
int diff_mix_split(const struct diff_mix_side sides[2], struct diff_mix *ret_mix, struct occ_error *err);
