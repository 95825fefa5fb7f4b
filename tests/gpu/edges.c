/*
 * See edges.h. An edge is placed inside its sample by the sample's active part: if a kernel starts in sample
 * [a, b) and its SMs were active for a part f of the sample, the edge is at b - f (b - a). Parts are relative
 * to the samples well inside the kernel: the counters of a device that is always active may stay below 1.
 */
#include "edges.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { MOST_SAMPLES = 512, GAP_NS = 1000 }; /* in a window; maximum distance of neighbouring samples */

/* Returns the sample's part during which the average SM was active; NaN without counters. */
static double active_part(const struct occ_sample *sample, uint32_t sms)
{
    return sample->value[OCC_COUNTER_ACTIVE] / (sample->value[OCC_COUNTER_ELAPSED] * sms);
}

/* Returns the first sample that ends after `ns`. */
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

/* A sequence of samples without gaps, in the direction from idle to active: a falling edge is a rising one
 * backwards. Times are ns from the trace's edge; in a double, times since the epoch would lose nanoseconds.
 */
struct stretch {
    double start[MOST_SAMPLES], end[MOST_SAMPLES], part[MOST_SAMPLES];
    size_t n;
};

enum direction { RISING, FALLING };

static bool take_stretch(struct stretch *stretch, const struct occ_sample *samples, size_t n, uint32_t sms,
                         int64_t at_ns, int64_t window_ns)
{
    size_t i = first_after(samples, n, at_ns - window_ns);
    stretch->n = 0;
    for (; i < n && samples[i].start_ns < at_ns + window_ns; i++) {
        if (stretch->n == MOST_SAMPLES)
            return false;
        stretch->start[stretch->n] = (double)(samples[i].start_ns - at_ns);
        stretch->end[stretch->n] = (double)(samples[i].end_ns - at_ns);
        stretch->part[stretch->n] = active_part(&samples[i], sms);
        bool apart = stretch->n && stretch->start[stretch->n] > stretch->end[stretch->n - 1] + GAP_NS;
        if (isnan(stretch->part[stretch->n]) || apart)
            return false;
        stretch->n++;
    }
    return stretch->n >= 8;
}

static void swap(double *a, double *b)
{
    double kept = *a;
    *a = *b;
    *b = kept;
}

/* Mirrors time at the trace's edge. */
static void turn(struct stretch *stretch)
{
    for (size_t i = 0, j = stretch->n - 1; i < j; i++, j--) {
        swap(&stretch->start[i], &stretch->start[j]);
        swap(&stretch->end[i], &stretch->end[j]);
        swap(&stretch->part[i], &stretch->part[j]);
    }
    for (size_t i = 0; i < stretch->n; i++) {
        double start = stretch->start[i];
        stretch->start[i] = -stretch->end[i];
        stretch->end[i] = -start;
    }
}

/* Returns the time of the rise; NaN unless the stretch is idle, then active, with room on both sides. */
static double rise_of(const struct stretch *s)
{
    double plateau = 0, active = 0;
    size_t at = 0;
    while (at < s->n && s->part[at] < 0.5)
        at++;
    if (at < 2 || at + 4 > s->n)
        return NAN;
    for (size_t i = 0; i + 1 < at; i++)
        if (!(s->part[i] < 0.02))
            return NAN;
    for (size_t i = at + 2; i < s->n; i++)
        plateau += s->part[i] / (double)(s->n - at - 2);
    for (size_t i = at + 2; i < s->n; i++)
        if (!(s->part[i] > 0.9 * plateau))
            return NAN;
    for (size_t i = at - 1; i <= at + 1; i++)
        active += s->part[i] / plateau * (s->end[i] - s->start[i]);
    return plateau > 0.5 ? s->end[at + 1] - active : (double)NAN;
}

static double edge_near(const struct occ_sample *samples, size_t n, uint32_t sms, int64_t at_ns,
                        int64_t window_ns, enum direction direction)
{
    struct stretch stretch;
    if (!take_stretch(&stretch, samples, n, sms, at_ns, window_ns))
        return NAN;
    if (direction == RISING)
        return rise_of(&stretch);
    turn(&stretch);
    return -rise_of(&stretch);
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
