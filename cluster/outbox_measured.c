/*
 * What the warehouse keeps of a row's measured values: means, rounded to what their standard errors justify
 * (random digits do not compress), and the share of the row's time for which there is one. See outbox.h.
 */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "outbox.h"
#include "store/measured.h"

/* A mean is off by at most a quarter of its error, which is rounded up, by at most a quarter. A share, which
 * is a weight among minutes with nearly the same mean, is off by at most 1/16. That of elapsed occupancy
 * weighs what was measured against what is expected, too, so it is rounded like the mean: what that changes
 * in the sum of both is less, since they differ by less than 1. Finer than 1e-5 of it no share is. */
#define STEPS_OF_MEAN    2
#define STEPS_OF_ERROR   4
#define STEPS_OF_SHARE   8
#define STEPS_OF_ELAPSED 50000
#define STEP_MIN         1e-7 /* below it digits stay as they are */
#define NUMBER_BYTES     32

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

/* A multiple stays one, whatever its last digit, and a step the same. */
static double round_up(double x)
{
    return ceil(x - 1e-6);
}

/* Prints a multiple of 1, 2 or 5 x a power of ten that is at most `max_step`: 0.437 is 437e-3. */
static int print(char *out, double value, double max_step, double (*to_integer)(double))
{
    if (value == 0) { /* most are: no need of snprintf() */
        *out = '0';
        return 1;
    }
    if (!(max_step > STEP_MIN) || !(fabs(value) < max_step / DBL_EPSILON))
        return snprintf(out, NUMBER_BYTES, "%.9g", value);
    max_step *= 1 + 1e-9;
    int exponent = (int)floor(log10(max_step));
    double unit = pow(10, exponent), room = max_step / unit, steps = room >= 5 ? 5 : room >= 2 ? 2 : 1;
    int64_t n = (int64_t)(to_integer(value / (steps * unit)) * steps);
    for (; n != 0 && n % 10 == 0; n /= 10)
        exponent++;
    return n == 0 || exponent == 0 ? snprintf(out, NUMBER_BYTES, "%lld", (long long)n)
                                   : snprintf(out, NUMBER_BYTES, "%llde%d", (long long)n, exponent);
}

/* Active SMs and blocks, by which occupancy is multiplied, are off by as large a part of them as it is. */
static double error_in(const struct occ_measured_sums *sums, int value)
{
    int of = value == OCC_MEASURED_resident_blocks ? OCC_MEASURED_achieved
             : value == OCC_MEASURED_sm_active     ? OCC_MEASURED_elapsed
                                                   : value;
    double error = mean_of(sums, (int)error_of[value]), mean = mean_of(sums, of);
    return mean > 0 ? error * fmax(1, mean_of(sums, value) / mean) : error;
}

static int print_mean(char *out, const struct occ_measured_sums *sums, int value)
{
    int of = (int)error_of[value];
    double error = error_in(sums, value);
    return of == value ? print(out, error, error / STEPS_OF_ERROR, round_up)
                       : print(out, mean_of(sums, value), error / STEPS_OF_MEAN, round);
}

/* Whose part of the time goes for a value's. Values that were found for some of the launches only, each
 * minute for others, are weighed as if for all that have an elapsed occupancy. */
static int share_of(const struct occ_measured_sums *sums, int value)
{
    bool is_weight = error_of[value] != OCC_MEASURED_achieved_error && value != OCC_MEASURED_sm_active &&
                     error_of[value] != OCC_MEASURED_group_elapsed_error;
    return is_weight && sums->ns[value] > 0 && sums->ns[OCC_MEASURED_elapsed] > 0 ? OCC_MEASURED_elapsed
                                                                                  : value;
}

static int print_share(char *out, const struct occ_measured_sums *sums, int value, double total_ns)
{
    double share = sums->ns[share_of(sums, value)] / total_ns, max_step = share / STEPS_OF_SHARE;
    if (value == OCC_MEASURED_elapsed || value == OCC_MEASURED_group_elapsed)
        max_step = fmin(max_step,
                        fmax(mean_of(sums, (int)error_of[value]) / STEPS_OF_MEAN, share / STEPS_OF_ELAPSED));
    return print(out, share, max_step, round);
}

/* The table's aliases read achieved and elapsed by their places. */
static_assert(OCC_MEASURED_achieved == 0 && OCC_MEASURED_elapsed == 2, "schema/clickhouse/warehouse.sql");
void occ_outbox_put_measured(struct occ_body *rows, const struct occ_measured_sums *sums, uint64_t total_ns)
{
#define X(name, text) sums->name,
    const uint64_t sources[] = {OCC_MEASURED_SOURCES(X) sums->overlapped};
#undef X
    char means[OCC_MEASURED_VALUE_COUNT * NUMBER_BYTES] = "[", shares[sizeof means] = "[";
    size_t n_means = 1, n_shares = 1;
    bool is_measured = occ_measured_launches(sums) > 0 && total_ns > 0;
    for (int i = 0; i < OCC_MEASURED_VALUE_COUNT && is_measured; i++) {
        if (i > 0)
            means[n_means++] = shares[n_shares++] = ',';
        n_means += (size_t)print_mean(means + n_means, sums, i);
        n_shares += (size_t)print_share(shares + n_shares, sums, i, (double)total_ns);
    }
    means[n_means++] = shares[n_shares++] = ']';
    occ_body_put_list(rows, sources, is_measured ? sizeof sources / sizeof *sources : 0);
    occ_body_put_text(rows, means, n_means);
    occ_body_put_text(rows, shares, n_shares);
}
