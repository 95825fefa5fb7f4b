/*
 * Histogram of durations with 8 bins an octave: values 0...7 have a bin each, above that bin (e - 2) * 8 +
 * the three bits below the leading one, e the leading bit's number. A bin's width is at most 12.5 % of its
 * values. Only the bins between the lowest and the highest in use take memory. One thread at a time.
 *
 * As bytes: varint first bin, then a varint count of each bin up to the last that is not empty.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "support/error.h"

#define OCC_HISTOGRAM_BINS 496u

struct occ_histogram {
    uint64_t *bins;
    uint16_t first, count, capacity; /* bins[0] is bin `first` */
};

static inline uint32_t occ_histogram_bin(uint64_t value)
{
    if (value < 8)
        return (uint32_t)value;
    uint32_t e = 63u - (uint32_t)__builtin_clzll(value);
    return (e - 2) * 8 + (uint32_t)(value >> (e - 3) & 7);
}

/* The smallest value of a bin. */
static inline uint64_t occ_histogram_low(uint32_t bin)
{
    return bin < 8 ? bin : (uint64_t)(8 + bin % 8) << (bin / 8 - 1);
}

void occ_histogram_free(struct occ_histogram *h);

/* Makes bin `bin` addressable. false: no memory. */
bool occ_histogram_cover(struct occ_histogram *h, uint32_t bin);

static inline bool occ_histogram_add(struct occ_histogram *h, uint64_t value, uint64_t n)
{
    uint32_t bin = occ_histogram_bin(value);
    uint32_t at = bin - h->first;
    if (at >= h->count && !occ_histogram_cover(h, bin))
        return false;
    h->bins[bin - h->first] += n;
    return true;
}

/* Adds a histogram in the form of occ_histogram_write(). OCC_E_NO_MEMORY; OCC_E_CORRUPT: not a histogram.
 * After an error, a part of the histogram may be added. */
int occ_histogram_add_bytes(struct occ_histogram *h, const void *data, size_t bytes);
void occ_histogram_write(const struct occ_histogram *h, struct occ_writer *w);

/* The value below which the share `share` (0...1) of all values lies, interpolated in its bin; 0 when
 * empty. */
uint64_t occ_histogram_quantile(const struct occ_histogram *h, double share);
/* The same, limited to the smallest and the largest value, since a bin may extend beyond them. */
uint64_t occ_histogram_quantile_within(const struct occ_histogram *h, double share, uint64_t min,
                                       uint64_t max);
