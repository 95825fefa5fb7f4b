/* Means of sums of measured values, and whether they are representative. Also compiled into the SQLite
 * extension, so that the virtual table `launch` and our own programs cannot differ. Any thread. */
#include <math.h>

#include "measured.h"

/* The largest mean that a counter can report, with room for noise; the file is not to be trusted. */
static double max_of(enum occ_measured_value value)
{
    return value == OCC_MEASURED_resident_blocks ? 4096 : value == OCC_MEASURED_variance_inflation ? 1e9 : 2;
}

double occ_measured_mean(const struct occ_measured_sums *sums, enum occ_measured_value value)
{
    double mean = sums->ns[value] > 0 ? sums->sum[value] / sums->ns[value] : NAN;
    return mean >= 0 && mean <= max_of(value) ? mean : NAN;
}

/* Whether (nearly) all launches with an elapsed occupancy have the value: means of different launches must
 * not be mixed. */
static bool is_of_all(const struct occ_measured_sums *sums, enum occ_measured_value value)
{
    return sums->ns[value] >= (1 - OCC_MEASURED_MINORITY) * sums->ns[OCC_MEASURED_elapsed];
}

/* Launches with values of their own. */
static uint64_t own_launches(const struct occ_measured_sums *sums)
{
    return occ_measured_launches(sums) - sums->grouped;
}

bool occ_measured_is_representative(const struct occ_measured_sums *sums)
{
    double own = (double)own_launches(sums), others = (double)sums->grouped;
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
    if (own_launches(sums) == 0 || !occ_measured_is_representative(sums))
        return OCC_FROM_GROUPED;
    if (sums->ncu > own_launches(sums) - sums->ncu)
        return OCC_FROM_NCU;
    if (sums->exact > sums->regression + sums->direct)
        return OCC_FROM_EXACT;
    return sums->regression >= sums->direct ? OCC_FROM_REGRESSED : OCC_FROM_DIRECT;
}

void occ_measured_means(const struct occ_measured_sums *sums, struct occ_measurement *ret_measurement)
{
    struct occ_measurement *m = ret_measurement;
    *m = (struct occ_measurement){.source = source_of(sums)};
    const struct {
        double *mean;
        enum occ_measured_value value;
        bool of_all; /* goes with elapsed */
    } means[] = {
        {&m->achieved, OCC_MEASURED_achieved, true},
        {&m->achieved_error, OCC_MEASURED_achieved_error, true},
        {&m->elapsed, OCC_MEASURED_elapsed, false},
        {&m->elapsed_error, OCC_MEASURED_elapsed_error, false},
        {&m->variance_inflation, OCC_MEASURED_variance_inflation, false},
        {&m->sm_active, OCC_MEASURED_sm_active, true},
        {&m->resident_blocks, OCC_MEASURED_resident_blocks, true},
        {&m->imbalance, OCC_MEASURED_imbalance, false},
        {&m->stall[OCC_LIMIT_REGISTERS], OCC_MEASURED_stall_registers, false},
        {&m->stall[OCC_LIMIT_SMEM], OCC_MEASURED_stall_shared_memory, false},
        {&m->stall[OCC_LIMIT_BLOCKS], OCC_MEASURED_stall_blocks, false},
        {&m->stall[OCC_LIMIT_WARPS], OCC_MEASURED_stall_warps, false},
        {&m->stall[OCC_LIMIT_BARRIERS], OCC_MEASURED_stall_barriers, false},
        {&m->utilization.ratio[OCC_HW_ISSUE], OCC_MEASURED_issue_active, false},
        {&m->utilization.ratio[OCC_HW_DRAM], OCC_MEASURED_dram_throughput, false},
        {&m->utilization.ratio[OCC_HW_L2], OCC_MEASURED_l2_throughput, false},
        {&m->utilization.ratio[OCC_HW_L1], OCC_MEASURED_l1_throughput, false},
        {&m->utilization.ratio[OCC_HW_TENSOR], OCC_MEASURED_tensor_active, false},
        {&m->utilization.issue_error, OCC_MEASURED_issue_active_error, false},
        {&m->utilization.throughput_error, OCC_MEASURED_throughput_error, false},
    };
    bool known = m->source != OCC_FROM_MODEL && m->source != OCC_FROM_GROUPED;
    for (size_t i = 0; i < sizeof means / sizeof *means; i++)
        *means[i].mean = known && (!means[i].of_all || is_of_all(sums, means[i].value))
                             ? occ_measured_mean(sums, means[i].value)
                             : NAN;
    m->stall[OCC_LIMIT_CLUSTER] = NAN;
    m->utilization.ratio[OCC_HW_COMPUTE] = m->utilization.ratio[OCC_HW_MEMORY] = NAN;
}

double occ_measured_part(const struct occ_measured_sums *sums, double total_ns,
                         struct occ_measurement *ret_measurement)
{
    struct occ_measured_sums own = *sums;
    double ns = sums->ns[OCC_MEASURED_elapsed], all_ns = ns + sums->ns[OCC_MEASURED_group_elapsed];
    own.ns[OCC_MEASURED_group_elapsed] = 0; /* so that nothing is withheld */
    occ_measured_means(&own, ret_measurement);
    double part = isnan(ret_measurement->elapsed) ? 0 : ns / fmax(total_ns, all_ns);
    return part > 0 ? part : 0; /* infinite ones are none */
}
