/* What sums of measured occupancy say: means, and for whom they stand. For the tools and, as launch_table.h says compiled
 * a second time, for the virtual table `launch`, so that all of them say the same. Any thread. */
#include <math.h>

#include "measured.h"

double occ_measured_mean(const struct occ_measured_sums *sums, enum occ_measured_value value)
{
    return sums->ns[value] > 0 ? sums->sum[value] / sums->ns[value] : NAN;
}

bool occ_measured_stand_for_all(const struct occ_measured_sums *sums)
{
    double own = (double)(sums->direct + sums->regressed + sums->exact), others = (double)sums->grouped;
    double own_ns = sums->ns[OCC_MEASURED_elapsed], others_ns = sums->ns[OCC_MEASURED_group_elapsed];
    if (others_ns <= OCC_MEASURED_MINORITY * (own_ns + others_ns) || own_ns <= 0)
        return true;
    double longer = (own_ns / own) / (others_ns / others);
    return longer < OCC_MEASURED_ALIKE && longer > 1 / OCC_MEASURED_ALIKE;
}

static enum occ_value_source source_of(const struct occ_measured_sums *sums)
{
    if (occ_measured_launches(sums) == 0)
        return OCC_FROM_MODEL;
    if (sums->exact > sums->regressed + sums->direct)
        return OCC_FROM_EXACT;
    if (sums->regressed + sums->direct == 0 || !occ_measured_stand_for_all(sums))
        return OCC_FROM_GROUPED;
    return sums->regressed >= sums->direct ? OCC_FROM_REGRESSED : OCC_FROM_DIRECT;
}

void occ_measured_means(const struct occ_measured_sums *sums, struct occ_measurement *ret_measurement)
{
    struct occ_measurement *m = ret_measurement;
    *m = (struct occ_measurement){.source = source_of(sums)};
    const struct {
        double *mean;
        enum occ_measured_value value;
    } means[] = {
        {&m->achieved, OCC_MEASURED_achieved},
        {&m->achieved_error, OCC_MEASURED_achieved_error},
        {&m->elapsed, OCC_MEASURED_elapsed},
        {&m->elapsed_error, OCC_MEASURED_elapsed_error},
        {&m->variance_inflation, OCC_MEASURED_variance_inflation},
        {&m->sm_active, OCC_MEASURED_sm_active},
        {&m->resident_blocks, OCC_MEASURED_resident_blocks},
        {&m->imbalance, OCC_MEASURED_imbalance},
        {&m->stall[OCC_LIMIT_REGISTERS], OCC_MEASURED_stall_registers},
        {&m->stall[OCC_LIMIT_SMEM], OCC_MEASURED_stall_shared_memory},
        {&m->stall[OCC_LIMIT_BLOCKS], OCC_MEASURED_stall_blocks},
        {&m->stall[OCC_LIMIT_WARPS], OCC_MEASURED_stall_warps},
        {&m->stall[OCC_LIMIT_BARRIERS], OCC_MEASURED_stall_barriers},
    };
    bool known = m->source != OCC_FROM_MODEL && m->source != OCC_FROM_GROUPED;
    for (size_t i = 0; i < sizeof means / sizeof *means; i++)
        *means[i].mean = known ? occ_measured_mean(sums, means[i].value) : NAN;
    m->stall[OCC_LIMIT_CLUSTER] = NAN;
}
