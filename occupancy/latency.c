/* See latency.h. Threads: any. */
#include "latency.h"

#include <math.h>

#define RATIO_MAX 2.0 /* same limit as in waterfall.c */

/* Sources: CUDA C++ Programming Guide 12.9, "Multiprocessor Level" (7.x: typically 4 cycles, so that 16 warps
 * hide them); Volta and Turing Tuning Guides, "Instruction Scheduling" (4 cycles; 6 on Pascal). NVIDIA
 * documents no number for 5.x and for 8.0 and later; 3.x issues pairs of instructions, for which latency.h's
 * formula is wrong. */
static const struct {
    uint32_t first_cc, last_cc;
    double cycles;
} documented[] = {
    {60, 62, 6},
    {70, 75, 4},
};

double occ_arithmetic_latency(uint32_t cc)
{
    for (size_t i = 0; i < sizeof documented / sizeof *documented; i++)
        if (cc >= documented[i].first_cc && cc <= documented[i].last_cc)
            return documented[i].cycles;
    return NAN;
}

static bool is_counted(double ratio)
{
    return ratio > 0 && ratio <= RATIO_MAX;
}

/* The relative error of a product or a quotient of two values with independent errors. Without hypot(), which
 * would need glibc 2.35. */
static double relative_error(double a, double a_error, double b, double b_error)
{
    double of_a = a_error / a, of_b = b_error / b;
    return a_error >= 0 && b_error >= 0 ? sqrt(of_a * of_a + of_b * of_b) : (double)NAN;
}

static struct occ_latency measure(const struct occ_device *device, const struct occ_measurement *m)
{
    double issued = m->utilization.ratio[OCC_HW_ISSUE];
    double resident = m->achieved * device->max_threads_per_sm / device->warp_size;
    double needed = resident / issued;
    return (struct occ_latency){
        .source = OCC_LATENCY_MEASURED,
        .cycles = needed / device->sub_partitions,
        .resident_warps = resident,
        .needed_warps = needed,
        .needed_error =
            needed * relative_error(m->achieved, m->achieved_error, issued, m->utilization.issue_error),
        .independent = fmax(1, 1 / issued),
    };
}

static struct occ_latency assume(const struct occ_device *device, double cycles, double resident,
                                 double independent)
{
    double alone = cycles * device->sub_partitions; /* warps without independent instructions */
    return (struct occ_latency){
        .source = OCC_LATENCY_ASSUMED,
        .cycles = cycles,
        .resident_warps = resident,
        .needed_warps = independent > 1 ? alone / independent : alone,
        .needed_error = NAN,
        .independent = fmax(1, alone / resident),
    };
}

struct occ_latency occ_latency_of(const struct occ_device *device, double resident_warps, double independent,
                                  const struct occ_measurement *measured)
{
    double cycles = occ_arithmetic_latency(device->cc);
    if (measured && is_counted(measured->achieved) && is_counted(measured->utilization.ratio[OCC_HW_ISSUE]))
        return measure(device, measured);
    if (cycles > 0 && resident_warps > 0)
        return assume(device, cycles, resident_warps, independent);
    return (struct occ_latency){OCC_LATENCY_UNKNOWN, NAN, NAN, NAN, NAN, NAN};
}

bool occ_latency_is_hidden(const struct occ_latency *latency)
{
    return latency->resident_warps >= latency->needed_warps;
}
