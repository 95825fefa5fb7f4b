/*
 * See edges.h. An edge is placed inside its sample by the part of it during which the device was active: if a kernel
 * starts in sample [a, b) and its SMs were active for a part f of it, the edge is at b - f (b - a).
 */
#include "edges.h"

#include <math.h>
#include <stdlib.h>

/* Part of the sample during which the average SM was active; NaN: its counters are not there. */
static double active_part(const struct occ_sample *sample, uint32_t sms)
{
    double part = sample->value[OCC_COUNTER_ACTIVE] / (sample->value[OCC_COUNTER_ELAPSED] * sms);
    return part > 1 ? 1 : part;
}

static double length_of(const struct occ_sample *sample)
{
    return (double)(sample->end_ns - sample->start_ns);
}

/* First sample that ends after `ns`. */
static size_t first_after(const struct occ_sample *samples, size_t n, int64_t ns)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (samples[middle].end_ns > ns)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Sums the active time of the samples that overlap [from, to): with the device idle on the one side of the edge and
 * active on the other, the edge lies so far from the active side. NaN: samples are missing, or it is not such an edge. */
static double active_time(const struct occ_sample *samples, size_t n, uint32_t sms, int64_t from, int64_t to,
                          const struct occ_sample **ret_first, const struct occ_sample **ret_last)
{
    double active = 0;
    size_t i = first_after(samples, n, from);
    if (i >= n || samples[i].start_ns > from)
        return NAN;
    *ret_first = *ret_last = &samples[i];
    for (; i < n && samples[i].start_ns < to; i++) {
        if (samples[i].start_ns > (*ret_last)->end_ns + 1000)
            return NAN; /* a gap */
        active += active_part(&samples[i], sms) * length_of(&samples[i]);
        *ret_last = &samples[i];
    }
    return active;
}

enum direction { RISING, FALLING };

static double edge_near(const struct occ_sample *samples, size_t n, uint32_t sms, int64_t at_ns,
                        int64_t window_ns, enum direction direction)
{
    const struct occ_sample *first = NULL, *last = NULL;
    double active = active_time(samples, n, sms, at_ns - window_ns, at_ns + window_ns, &first, &last);
    if (isnan(active))
        return NAN;
    double before = active_part(direction == RISING ? first : last, sms);
    double after = active_part(direction == RISING ? last : first, sms);
    if (!(before < 0.02) || !(after > 0.9))
        return NAN;
    /* relative to at_ns: times since the epoch lose nanoseconds in a double */
    return direction == RISING ? (double)(last->end_ns - at_ns) - active
                               : (double)(first->start_ns - at_ns) + active;
}

static void add(struct gpu_span *edges, size_t *n, int64_t at_ns, double distance_ns)
{
    if (!isnan(distance_ns))
        edges[(*n)++] = (struct gpu_span){at_ns, at_ns + (int64_t)llround(distance_ns)};
}

void gpu_edges_find(const struct occ_sample *samples, size_t n, uint32_t sms, const struct gpu_span *kernels,
                    size_t n_kernels, int64_t window_ns, struct gpu_span *rising, size_t *ret_rising,
                    struct gpu_span *falling, size_t *ret_falling)
{
    *ret_rising = *ret_falling = 0;
    for (size_t i = 0; i < n_kernels; i++) {
        int64_t start = kernels[i].start_ns, end = kernels[i].end_ns;
        add(rising, ret_rising, start, edge_near(samples, n, sms, start, window_ns, RISING));
        add(falling, ret_falling, end, edge_near(samples, n, sms, end, window_ns, FALLING));
    }
}

/* ---- offsets ---- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const struct gpu_span *edges, size_t n)
{
    double *sorted = malloc(n * sizeof *sorted);
    if (!sorted)
        return NAN;
    for (size_t i = 0; i < n; i++)
        sorted[i] = (double)(edges[i].end_ns - edges[i].start_ns);
    qsort(sorted, n, sizeof *sorted, compare);
    double value = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    free(sorted);
    return value;
}

void gpu_offset_of(const struct gpu_span *edges, size_t n, struct gpu_offset *ret_offset)
{
    *ret_offset = (struct gpu_offset){n, NAN, NAN, NAN, NAN, NAN, NAN};
    if (n < 3)
        return;
    double count = (double)n, sum = 0, time = 0, least = INFINITY, most = -INFINITY;
    double squares = 0, times = 0, products = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)(edges[i].end_ns - edges[i].start_ns);
        sum += d;
        time += (double)(edges[i].start_ns - edges[0].start_ns);
        least = fmin(least, d);
        most = fmax(most, d);
    }
    for (size_t i = 0; i < n; i++) {
        double d = (double)(edges[i].end_ns - edges[i].start_ns) - sum / count;
        double t = (double)(edges[i].start_ns - edges[0].start_ns) - time / count;
        squares += d * d;
        times += t * t;
        products += d * t;
    }
    *ret_offset = (struct gpu_offset){.n = n,
                                      .mean_ns = sum / count,
                                      .sd_ns = sqrt(squares / (count - 1)),
                                      .median_ns = median(edges, n),
                                      .least_ns = least,
                                      .most_ns = most,
                                      .drift_ppm = times > 0 ? products / times * 1e6 : NAN};
}
