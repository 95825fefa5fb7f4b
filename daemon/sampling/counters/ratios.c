/* See ratios.h. */
#include "ratios.h"

#include <math.h>

#define RATIO_MAX    1.25 /* 1, plus room for noise */
#define LAUNCHED_MAX 1e12 /* blocks per sample */

bool occ_ratios_read(struct occ_ratio_scale *scale, const struct occ_sample *sample,
                     struct occ_attribution_sample *ret)
{
    const double *value = sample->value, sms = scale->sm_count;
    double ns = (double)(sample->end_ns - sample->start_ns), cycles = value[OCC_COUNTER_ELAPSED];
    if (cycles > 0 && isfinite(cycles) && ns > 0)
        scale->cycles_per_ns = cycles / ns;
    cycles = isnan(cycles) && scale->cycles_per_ns > 0 ? scale->cycles_per_ns * ns : cycles;
    bool has_cycles = cycles > 0 && isfinite(cycles), is_possible = true;
    *ret = (struct occ_attribution_sample){.start_ns = sample->start_ns, .end_ns = sample->end_ns};
    ret->ratio[OCC_RATIO_WARPS] =
        (float)(value[OCC_COUNTER_WARPS] / (sms * scale->max_warps_per_sm * cycles));
    ret->ratio[OCC_RATIO_ACTIVE] = (float)(value[OCC_COUNTER_ACTIVE] / (sms * cycles));
    ret->ratio[OCC_RATIO_BLOCKS] = (float)(value[OCC_COUNTER_BLOCKS] / (sms * cycles));
    double launched = value[OCC_COUNTER_LAUNCHED];
    ret->launched = launched >= 0 && launched <= LAUNCHED_MAX ? (float)launched : NAN;
    for (int i = 0; i < OCC_STALL_COUNT; i++) /* counted per TPC, which has two SMs */
        ret->ratio[OCC_RATIO_STALLS + i] =
            (float)(value[OCC_COUNTER_STALL_REGISTERS + i] / (sms / 2 * cycles));
    for (int i = 0; i < OCC_UTILIZATION_COUNT; i++)
        ret->ratio[OCC_RATIO_UTILIZATION + i] = (float)(value[OCC_COUNTER_UTILIZATION + i] / 100);
    for (int r = 0; r < OCC_RATIO_COUNT; r++) {
        double ratio = (double)ret->ratio[r], max = r == OCC_RATIO_BLOCKS ? OCC_BLOCKS_MAX : RATIO_MAX;
        if (has_cycles && (isnan(ratio) || (ratio >= 0 && ratio <= max)))
            continue;
        is_possible = false;
        ret->ratio[r] = NAN;
    }
    double most = value[OCC_COUNTER_ACTIVE_MAX];
    ret->imbalance = most > 0 ? (float)(1 - value[OCC_COUNTER_ACTIVE_MIN] / most) : NAN;
    return is_possible;
}
