/* See bound.h. Threads: any. */
#include "bound.h"

#include <math.h>
#include <stdbool.h>

#define RATIO_MAX     2.0 /* same limit as in waterfall.c */
#define OF_95_PERCENT 1.96

static bool is_known(const struct occ_hw_utilization *u, enum occ_hw_unit unit)
{
    return u->ratio[unit] >= 0 && u->ratio[unit] <= RATIO_MAX;
}

enum occ_hw_unit occ_busiest_unit(const struct occ_hw_utilization *u)
{
    enum occ_hw_unit busiest = OCC_HW_COUNT;
    for (int i = 0; i < OCC_HW_COUNT; i++)
        if (is_known(u, (enum occ_hw_unit)i) && (busiest == OCC_HW_COUNT || u->ratio[i] > u->ratio[busiest]))
            busiest = (enum occ_hw_unit)i;
    return busiest;
}

/* True if every unit that may be the busiest was counted. */
static bool is_whole(const struct occ_hw_utilization *u)
{
    bool ours = true;
    for (int i = OCC_HW_ISSUE; i <= OCC_HW_TENSOR; i++)
        ours &= is_known(u, (enum occ_hw_unit)i);
    return ours || (is_known(u, OCC_HW_COMPUTE) && is_known(u, OCC_HW_MEMORY));
}

/* Half of the 95 % interval; ncu gives no error. */
static double half_width(const struct occ_hw_utilization *u, enum occ_hw_unit unit)
{
    double error = unit == OCC_HW_ISSUE ? u->issue_error : u->throughput_error;
    return unit < OCC_HW_COMPUTE && error > 0 ? OF_95_PERCENT * error : 0;
}

enum occ_bound occ_bound_of(const struct occ_hw_utilization *u, const struct occ_result *result)
{
    double low = 0, high = 0;
    for (int i = 0; i < OCC_HW_COUNT; i++)
        if (is_known(u, (enum occ_hw_unit)i)) {
            low = fmax(low, u->ratio[i] - half_width(u, (enum occ_hw_unit)i));
            high = fmax(high, u->ratio[i] + half_width(u, (enum occ_hw_unit)i));
        }
    if (low >= OCC_BOUND_THROUGHPUT_MIN)
        return OCC_BOUND_THROUGHPUT;
    if (result && result->full_waves == 0)
        return OCC_BOUND_TOO_LITTLE_WORK;
    if (!is_whole(u))
        return OCC_BOUND_NOT_MEASURED;
    return high < OCC_BOUND_LATENCY_MAX ? OCC_BOUND_LATENCY : OCC_BOUND_BETWEEN;
}
