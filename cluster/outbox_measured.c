/*
 * What the warehouse keeps of a row's measured values: means, rounded to what their standard errors justify
 * (random digits do not compress), and the share of the row's time for which there is one. See outbox.h.
 */
#include <assert.h>
#include <math.h>

#include "outbox.h"
#include "store/measured.h"

/* A mean is off by at most a tenth of its error. */
#define STEPS_AN_ERROR 5
#define ERROR_MIN      1e-6 /* below it digits stay as they are */
/* Significant bits after the first: an error is rounded up, by at most 1/8; a share, which is a weight among
 * minutes with nearly the same mean, to within 1/64. */
#define ERROR_BITS 3
#define SHARE_BITS 5

/* Whose error tells how exact a value is; its own name: it is an error. Values without an error of their own
 * come from the regression of achieved or elapsed occupancy, and are no more exact than that is. */
#define ERROR(value, error) [OCC_MEASURED_##value] = OCC_MEASURED_##error
static const enum occ_measured_value error_of[] = {
    ERROR(achieved, achieved_error),
    ERROR(achieved_error, achieved_error),
    ERROR(elapsed, elapsed_error),
    ERROR(elapsed_error, elapsed_error),
    ERROR(variance_inflation, variance_inflation),
    ERROR(sm_active, elapsed_error),
    ERROR(resident_blocks, achieved_error),
    ERROR(imbalance, elapsed_error),
    ERROR(stall_registers, elapsed_error),
    ERROR(stall_shared_memory, elapsed_error),
    ERROR(stall_blocks, elapsed_error),
    ERROR(stall_warps, elapsed_error),
    ERROR(stall_barriers, elapsed_error),
    ERROR(group_achieved, group_elapsed_error),
    ERROR(group_elapsed, group_elapsed_error),
    ERROR(group_elapsed_error, group_elapsed_error),
    ERROR(issue_active, issue_active_error),
    ERROR(issue_active_error, issue_active_error),
    ERROR(dram_throughput, throughput_error),
    ERROR(l2_throughput, throughput_error),
    ERROR(l1_throughput, throughput_error),
    ERROR(tensor_active, throughput_error),
    ERROR(throughput_error, throughput_error),
};
static_assert(sizeof error_of / sizeof *error_of == OCC_MEASURED_VALUE_COUNT, "one for each value");

static double mean_of(const struct occ_measured_sums *sums, int value)
{
    return sums->ns[value] > 0 ? sums->sum[value] / sums->ns[value] : 0;
}

/* The largest power of two that is not above x. */
static double power_below(double x)
{
    return exp2(floor(log2(x)));
}

static double rounded_mean(const struct occ_measured_sums *sums, int value)
{
    int of = (int)error_of[value];
    double mean = mean_of(sums, value), error = mean_of(sums, of);
    if (!(error > ERROR_MIN))
        return mean;
    double step = of == value ? ldexp(power_below(error), -ERROR_BITS) : power_below(error / STEPS_AN_ERROR);
    return step * (of == value ? ceil(error / step) : round(mean / step));
}

static double rounded_share(double ns, uint64_t total_ns)
{
    double share = ns / (double)total_ns, step = ldexp(power_below(share), -SHARE_BITS);
    return ns > 0 ? step * round(share / step) : 0;
}

/* The table's aliases read achieved and elapsed by their places. */
static_assert(OCC_MEASURED_achieved == 0 && OCC_MEASURED_elapsed == 2, "schema/clickhouse/warehouse.sql");
void occ_outbox_put_measured(struct occ_body *rows, const struct occ_measured_sums *sums, uint64_t total_ns)
{
#define X(name, text) sums->name,
    const uint64_t sources[] = {OCC_MEASURED_SOURCES(X) sums->overlapped};
#undef X
    double means[OCC_MEASURED_VALUE_COUNT], shares[OCC_MEASURED_VALUE_COUNT];
    bool is_measured = occ_measured_launches(sums) > 0 && total_ns > 0;
    size_t n = is_measured ? OCC_MEASURED_VALUE_COUNT : 0;
    for (size_t i = 0; i < n; i++) {
        means[i] = rounded_mean(sums, (int)i);
        shares[i] = rounded_share(sums->ns[i], total_ns);
    }
    occ_body_put_list(rows, sources, is_measured ? sizeof sources / sizeof *sources : 0);
    occ_body_put_floats(rows, means, n);
    occ_body_put_floats(rows, shares, n);
}
