/* Log histogram of durations (format: histogram.h). No globals. */
#include "histogram.h"

void occ_histogram_free(struct occ_histogram *h)
{
    free(h->bins);
    *h = (struct occ_histogram){0};
}

bool occ_histogram_cover(struct occ_histogram *h, uint32_t bin)
{
    if (bin >= OCC_HISTOGRAM_BINS)
        return false;
    uint32_t first = h->count == 0 || bin < h->first ? bin : h->first;
    uint32_t end = h->count == 0 ? bin + 1 : h->first + (uint32_t)h->count;
    if (bin >= end)
        end = bin + 1;
    uint32_t count = end - first;
    if (count > h->capacity) {
        /* room for a few more bins above: durations of one configuration lie within an octave or two */
        uint32_t capacity = count + 4;
        uint64_t *bins = realloc(h->bins, capacity * sizeof *bins);
        if (!bins)
            return false;
        h->bins = bins;
        h->capacity = (uint16_t)capacity;
    }
    uint32_t shift = h->count ? h->first - first : 0;
    memmove(h->bins + shift, h->bins, h->count * sizeof *h->bins);
    memset(h->bins, 0, shift * sizeof *h->bins);
    memset(h->bins + shift + h->count, 0, (count - shift - h->count) * sizeof *h->bins);
    h->first = (uint16_t)first;
    h->count = (uint16_t)count;
    return true;
}

static bool add_bin(struct occ_histogram *h, uint32_t bin, uint64_t n)
{
    if (n == 0)
        return true;
    if ((bin < h->first || bin >= h->first + (uint32_t)h->count) && !occ_histogram_cover(h, bin))
        return false;
    h->bins[bin - h->first] += n;
    return true;
}

int occ_histogram_add_bytes(struct occ_histogram *h, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    struct occ_reader r = {.at = at, .end = at ? at + bytes : NULL};
    uint64_t bin = occ_read_varint(&r);
    while (r.at < r.end && bin < OCC_HISTOGRAM_BINS)
        if (!add_bin(h, (uint32_t)bin++, occ_read_varint(&r)))
            return OCC_E_NO_MEMORY;
    return !r.failed && r.at == r.end ? 0 : OCC_E_CORRUPT;
}

void occ_histogram_write(const struct occ_histogram *h, struct occ_writer *w)
{
    occ_write_varint(w, h->first);
    for (uint32_t i = 0; i < h->count; i++)
        occ_write_varint(w, h->bins[i]);
}

uint64_t occ_histogram_quantile(const struct occ_histogram *h, double share)
{
    double all = 0, below = 0;
    for (uint32_t i = 0; i < h->count; i++)
        all += (double)h->bins[i];
    for (uint32_t i = 0; i < h->count; i++) {
        double here = (double)h->bins[i];
        if (here > 0 && below + here >= share * all) {
            double low = (double)occ_histogram_low(h->first + i),
                   high = (double)occ_histogram_low(h->first + i + 1);
            return (uint64_t)(low + (high - low) * (share * all - below) / here);
        }
        below += here;
    }
    return 0;
}

uint64_t occ_histogram_quantile_within(const struct occ_histogram *h, double share, uint64_t min,
                                       uint64_t max)
{
    uint64_t value = occ_histogram_quantile(h, share);
    return h->count == 0 ? 0 : value < min ? min : value > max ? max : value;
}
