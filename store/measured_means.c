/* Computes means from sums of measured values, and decides if they are representative. Also compiled into the
 * SQLite extension, so that the virtual table `launch` and our own programs cannot differ. Any thread. */
#include <math.h>

#include "measured.h"

/* The largest mean that a counter can report, with room for noise; the file is untrusted. */
static double max_of(enum occ_measured_value value)
{
    return value == OCC_MEASURED_resident_blocks ? 4096 : value == OCC_MEASURED_variance_inflation ? 1e9 : 2;
}

double occ_measured_mean(const struct occ_measured_sums *sums, enum occ_measured_value value)
{
    double mean = sums->ns[value] > 0 ? sums->sum[value] / sums->ns[value] : NAN;
    return mean >= 0 && mean <= max_of(value) ? mean : NAN;
}

/* True if (nearly) all launches with an elapsed occupancy have the value: means of different launches must
 * not be mixed. */
static bool is_of_all(const struct occ_measured_sums *sums, enum occ_measured_value value)
{
    return sums->ns[value] >= (1 - OCC_MEASURED_MINORITY) * sums->ns[OCC_MEASURED_elapsed];
}

/* The number of launches with values of their own. */
static uint64_t own_launches(const struct occ_measured_sums *sums)
{
    return occ_measured_launches(sums) - sums->grouped;
}

/* Time of launches with values of their own; some reports have only achieved occupancy. */
static double own_ns(const struct occ_measured_sums *sums)
{
    double elapsed_ns = sums->ns[OCC_MEASURED_elapsed];
    return elapsed_ns > 0 ? elapsed_ns : sums->ns[OCC_MEASURED_achieved];
}

static double all_ns(const struct occ_measured_sums *sums, double total_ns)
{
    double longest_ns = fmax(sums->ns[OCC_MEASURED_elapsed], sums->ns[OCC_MEASURED_achieved]);
    return fmax(total_ns, longest_ns + sums->ns[OCC_MEASURED_group_elapsed]);
}

double occ_measured_ratio(const struct occ_measured_sums *sums, double total_ns)
{
    double ratio = own_launches(sums) > 0 ? own_ns(sums) / all_ns(sums, total_ns) : 0;
    return ratio > 0 && ratio <= 1 ? ratio : 0;
}

double occ_measured_rest_spread(const struct occ_measured_sums *sums)
{
    double shift = fabs(sums->rest_shift_sum) / sums->rest_ns,
           mean = occ_measured_mean(sums, OCC_MEASURED_elapsed);
    double spread = sums->rest_ns > 0 && mean > 0 ? shift / mean : 0;
    return fmax(spread, OCC_MEASURED_UNRESOLVED_SPREAD);
}

double occ_measured_widened(double error, double rest)
{
    if (isnan(error))
        return rest > 0 ? rest : NAN;
    return isnan(rest) ? NAN : fmax(error, rest) + OCC_MEASURED_CHORD * fmin(error, rest);
}

/* The error of a mean over `ns` of `total_ns`, widened for the rest of the time. */
static double widened(double error, double mean, double ns, double total_ns, double spread)
{
    return occ_measured_widened(error, (1 - fmin(ns / total_ns, 1)) * spread * mean);
}

/* ---- reasons to withhold ---- */

static bool durations_differ(const struct occ_measured_sums *sums)
{
    double own = (double)own_launches(sums), others = (double)sums->grouped;
    double own_elapsed_ns = sums->ns[OCC_MEASURED_elapsed], others_ns = sums->ns[OCC_MEASURED_group_elapsed];
    if (others_ns <= OCC_MEASURED_MINORITY * (own_elapsed_ns + others_ns) || own_elapsed_ns <= 0)
        return false;
    double longer = (own_elapsed_ns / own) / (others_ns / others);
    return !(longer < OCC_MEASURED_ALIKE && longer > 1 / OCC_MEASURED_ALIKE);
}

static bool launches_differ(const struct occ_measured_sums *sums)
{
    double mean = occ_measured_mean(sums, OCC_MEASURED_elapsed),
           allowed = OCC_MEASURED_UNRESOLVED_SPREAD * mean;
    double error = sums->sum[OCC_MEASURED_elapsed_error] / sums->ns[OCC_MEASURED_elapsed];
    double variance = sums->elapsed_square_sum / sums->ns[OCC_MEASURED_elapsed] - mean * mean;
    return variance - error * error > allowed * allowed;
}

static bool total_contradicts(const struct occ_measured_sums *sums)
{
    double noise = OCC_ERRORS_OF_95_PERCENT * sums->rest_error_sum;
    return fabs(sums->rest_shift_sum) > fmax(noise, OCC_MEASURED_CONTRADICTION * sums->rest_ns);
}

static enum occ_withheld withheld(const struct occ_measured_sums *sums, double ratio)
{
    bool covers_all = ratio >= 1 - OCC_MEASURED_MINORITY;
    if (occ_measured_launches(sums) == 0)
        return OCC_WITHHELD_NOT;
    if (own_launches(sums) == 0)
        return OCC_WITHHELD_GROUP;
    if (durations_differ(sums))
        return OCC_WITHHELD_DURATIONS;
    if (!covers_all && total_contradicts(sums))
        return OCC_WITHHELD_TOTAL;
    return !covers_all && launches_differ(sums) ? OCC_WITHHELD_LAUNCHES : OCC_WITHHELD_NOT;
}

/* The most frequent source among launches with values of their own. */
static enum occ_value_source source_of(const struct occ_measured_sums *sums)
{
    if (occ_measured_launches(sums) == 0)
        return OCC_FROM_MODEL;
    if (own_launches(sums) == 0)
        return OCC_FROM_GROUPED;
    if (sums->ncu > own_launches(sums) - sums->ncu)
        return OCC_FROM_NCU;
    if (sums->exact > sums->regression + sums->direct)
        return OCC_FROM_EXACT;
    return sums->regression >= sums->direct ? OCC_FROM_REGRESSED : OCC_FROM_DIRECT;
}

/* ---- means ---- */

static void fill_means(const struct occ_measured_sums *sums, struct occ_measurement *m)
{
    const struct {
        double *mean;
        enum occ_measured_value value;
        bool of_all; /* the value is defined for the same launches as `elapsed` */
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
    bool known = m->source != OCC_FROM_MODEL && m->source != OCC_FROM_GROUPED && !m->withheld;
    for (size_t i = 0; i < sizeof means / sizeof *means; i++)
        *means[i].mean = known && (!means[i].of_all || is_of_all(sums, means[i].value))
                             ? occ_measured_mean(sums, means[i].value)
                             : NAN;
    m->stall[OCC_LIMIT_CLUSTER] = NAN;
    m->utilization.ratio[OCC_HW_COMPUTE] = m->utilization.ratio[OCC_HW_MEMORY] = NAN;
}

/* Widens the errors of all throughputs, which have the error of the least certain throughput. */
static void widen_throughput(const struct occ_measured_sums *sums, double time_ns,
                             struct occ_hw_utilization *u)
{
    static const struct {
        enum occ_hw_unit unit;
        enum occ_measured_value value;
    } units[] = {{OCC_HW_DRAM, OCC_MEASURED_dram_throughput},
                 {OCC_HW_L2, OCC_MEASURED_l2_throughput},
                 {OCC_HW_L1, OCC_MEASURED_l1_throughput},
                 {OCC_HW_TENSOR, OCC_MEASURED_tensor_active}};
    double widest = u->throughput_error, spread = occ_measured_rest_spread(sums);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        double error =
            widened(u->throughput_error, u->ratio[units[i].unit], sums->ns[units[i].value], time_ns, spread);
        widest = error > widest || isnan(widest) ? error : widest;
    }
    u->throughput_error = widest;
}

/* Factor from the mean error of launches to the error of their mean: below 1 for regression, whose errors are
 * partly independent. */
static double part_of_error(const struct occ_measured_sums *sums)
{
    return 2 * sums->regression >= own_launches(sums) ? OCC_MEASURED_WINDOWS : 1;
}

static void widen(const struct occ_measured_sums *sums, double total_ns, struct occ_measurement *m)
{
    const struct {
        double *error, mean;
        enum occ_measured_value value;
    } errors[] = {
        {&m->achieved_error, m->achieved, OCC_MEASURED_achieved},
        {&m->elapsed_error, m->elapsed, OCC_MEASURED_elapsed},
        {&m->utilization.issue_error, m->utilization.ratio[OCC_HW_ISSUE], OCC_MEASURED_issue_active},
    };
    double time_ns = all_ns(sums, total_ns), spread = occ_measured_rest_spread(sums);
    m->achieved_error *= part_of_error(sums);
    m->elapsed_error *= part_of_error(sums);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        *errors[i].error =
            widened(*errors[i].error, errors[i].mean, sums->ns[errors[i].value], time_ns, spread);
    widen_throughput(sums, time_ns, &m->utilization);
}

void occ_measured_means(const struct occ_measured_sums *sums, double total_ns,
                        struct occ_measurement *ret_measurement)
{
    double ratio = occ_measured_ratio(sums, total_ns);
    *ret_measurement = (struct occ_measurement){
        .source = source_of(sums), .measured_ratio = ratio, .withheld = withheld(sums, ratio)};
    if (ret_measurement->withheld)
        ret_measurement->source =
            ret_measurement->withheld == OCC_WITHHELD_GROUP ? OCC_FROM_GROUPED : OCC_FROM_WITHHELD;
    fill_means(sums, ret_measurement);
    widen(sums, total_ns, ret_measurement);
}

double occ_measured_own(const struct occ_measured_sums *sums, double total_ns,
                        struct occ_measurement *ret_measurement)
{
    struct occ_measurement *m = ret_measurement;
    *m = (struct occ_measurement){.source = source_of(sums),
                                  .measured_ratio = occ_measured_ratio(sums, total_ns)};
    fill_means(sums, m);
    double ratio = isnan(m->elapsed) ? 0 : sums->ns[OCC_MEASURED_elapsed] / all_ns(sums, total_ns);
    return ratio > 0 ? ratio : 0; /* infinite ratios count as 0 */
}
