/*
 * Measured values of the warehouse's rows: means, rounded as far as their standard errors allow (random
 * digits do not compress), and the share of the row's time that each mean covers. See outbox.h.
 */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "outbox.h"
#include "store/measured.h"
#include "support/array.h"

/* Rounding. Each sent value may be any number of a range; if the value sent for the last minute lies in the
 * range, it is sent again, so that most values stay the same from minute to minute and compress well.
 *
 * A mean is off by at most half of its error (OFF_MEAN). The sent error includes this: the variance of
 * uniform rounding is added (sqrt(1 + 1/12) = ERROR_LOW), then it is rounded up, by at most sqrt(2) together
 * (ERROR_HIGH). A share that only weighs minutes with nearly the same mean is off by at most 1/8
 * (OFF_WEIGHT), shares that are compared with each other by 1/16 (OFF_SHARE). The share of elapsed occupancy
 * also weighs measured against expected values: it is off by at most 1/64 (OFF_ELAPSED), and the sum of both
 * changes by at most a quarter of the error (OFF_SUM); no share is known more precisely than 1e-6 of itself
 * (OFF_MIN).
 *
 * Launches without a value widen a mean's error (occ_measured_widened()): the shares of achieved and elapsed
 * occupancy are rounded down, so that the widened error grows by at most 1/16 (OFF_WIDENED). */
#define OFF_MEAN    0.5
#define ERROR_LOW   1.0408
#define ERROR_HIGH  1.4142
#define OFF_WEIGHT  (1.0 / 8)
#define OFF_SHARE   (1.0 / 16)
#define OFF_ELAPSED (1.0 / 64)
#define OFF_SUM     0.25
#define OFF_MIN     1e-6
#define OFF_WIDENED (1.0 / 16)
#define OFF_BOUND   (1.0 / 16) /* evidence, relative to the bound with which it is compared */
#define STEP_MIN    1e-7       /* smaller steps leave the digits unchanged */
#define WHOLE       1e-12      /* a quotient this close below a whole number counts as that number */

#define KEPT_MAX     16384
#define NUMBER_BYTES 32

/* The error that gives the precision of each value; an error maps to itself. Values without an error of their
 * own derive from the regression of achieved or elapsed occupancy and have its precision. */
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

/* The largest of 1, 2, 5, 10, 20, ... up to max_step. */
static double unit_of(double max_step)
{
    double unit = pow(10, floor(log10(max_step))), room = max_step / unit;
    return unit * (room >= 5 ? 5 : room >= 2 ? 2 : 1);
}

/* Returns a number from low to high: `last` if it lies there, otherwise a number with few digits near the
 * middle, so that the next minute's range is likely to contain it. */
static double choose(double low, double high, double max_step, double last)
{
    double middle = (low + high) / 2;
    if (last >= low && last <= high)
        return last;
    if (!(max_step > STEP_MIN) || !(fabs(middle) < max_step / DBL_EPSILON))
        return middle;
    double unit = unit_of(max_step);
    return round(middle / unit) * unit;
}

/* Returns a number from value - off to `value`: `last` if it lies there, otherwise the number with few digits
 * next below `value`. */
static double choose_below(double value, double off, double last)
{
    if (last >= value - off && last <= value)
        return last;
    double unit = unit_of(off);
    return off > STEP_MIN ? floor(value / unit * (1 + WHOLE)) * unit : value;
}

/* The error of active SMs and resident blocks: occupancy is multiplied by them, so their relative error
 * equals that of occupancy. */
static double error_in(const struct occ_measured_sums *sums, int value)
{
    int of = value == OCC_MEASURED_resident_blocks ? OCC_MEASURED_achieved
             : value == OCC_MEASURED_sm_active     ? OCC_MEASURED_elapsed
                                                   : value;
    double error = mean_of(sums, (int)error_of[value]), mean = mean_of(sums, of);
    return mean > 0 ? error * fmax(1, mean_of(sums, value) / mean) : error;
}

static double choose_mean(const struct occ_measured_sums *sums, int value, double last)
{
    double error = error_in(sums, value), mean = mean_of(sums, value);
    double low = mean - OFF_MEAN * error, high = mean + OFF_MEAN * error;
    if ((int)error_of[value] == value) {
        low = ERROR_LOW * error;
        high = ERROR_HIGH * error;
    } else if (mean >= 0)
        low = fmax(low, 0);
    return choose(low, high, (high - low) * 2 / 3, last);
}

/* true if the value's share only weighs minutes and is not compared with other shares. */
static bool is_weight(int value)
{
    return error_of[value] != OCC_MEASURED_achieved_error && value != OCC_MEASURED_sm_active &&
           value != OCC_MEASURED_elapsed && error_of[value] != OCC_MEASURED_group_elapsed_error;
}

/* Maximum rounding of the share of achieved or elapsed occupancy. */
static double off_covered(const struct occ_measured_row *row, int value, double share)
{
    const struct occ_measured_sums *sums = row->sums;
    double mean = mean_of(sums, value), error = mean_of(sums, (int)error_of[value]);
    double widened = mean > 0 ? occ_measured_widened(OCC_MEASURED_WINDOWS * share * error /
                                                         (occ_measured_rest_spread(sums) * mean),
                                                     fmax(1 - share, 0))
                              : INFINITY;
    double off =
        fmin((value == OCC_MEASURED_elapsed ? OFF_ELAPSED : OFF_SHARE) * share, OFF_WIDENED * widened);
    if (value == OCC_MEASURED_elapsed)
        off = fmin(off, OFF_SUM * error / fabs(mean - row->expected_elapsed));
    return fmax(off, OFF_MIN * share);
}

/* The share of launch time with this value. A weight is replaced by the share of elapsed occupancy, since the
 * value is found for other launches each minute. The shares of individual and group values together are at
 * most 1. */
static double choose_share(const struct occ_measured_row *row, int value, const double *last)
{
    const struct occ_measured_sums *sums = row->sums;
    bool as_elapsed = is_weight(value) && sums->ns[OCC_MEASURED_elapsed] > 0;
    double share = sums->ns[as_elapsed ? OCC_MEASURED_elapsed : value] / (double)row->total_ns;
    double off = (is_weight(value) ? OFF_WEIGHT : OFF_SHARE) * share, high = share + off;
    if (value == OCC_MEASURED_achieved || value == OCC_MEASURED_elapsed)
        return choose_below(share, off_covered(row, value, share), last[value]);
    if (value == OCC_MEASURED_group_elapsed)
        high = fmin(high, fmax(share, 1 - last[OCC_MEASURED_elapsed]));
    return choose(share - off, high, high - share + off, last[value]);
}

void occ_kept_free(struct occ_kept *kept)
{
    occ_map_free(&kept->index);
    free(kept->values);
    *kept = (struct occ_kept){0};
}

/* The last values sent for a row; zeros for a new one. */
static struct occ_kept_values *find_kept(struct occ_kept *kept, uint64_t row, struct occ_kept_values *none)
{
    uint32_t at = occ_map_get(&kept->index, row);
    if (at != OCC_MAP_NONE)
        return &kept->values[at];
    if (kept->n == KEPT_MAX) {
        occ_map_clear(&kept->index);
        kept->n = 0;
    }
    if (!occ_grow((void **)&kept->values, &kept->allocated, kept->n, KEPT_MAX, sizeof *kept->values) ||
        occ_map_put(&kept->index, row, (uint32_t)kept->n) == OCC_MAP_NONE)
        return none;
    kept->values[kept->n] = *none;
    return &kept->values[kept->n++];
}

/* Avoids snprintf() for 0, the most frequent value. */
static size_t print(char *out, double value)
{
    *out = '0';
    return value == 0 ? 1 : (size_t)snprintf(out, NUMBER_BYTES, "%.9g", value);
}

/* The aliases of the table `minute` read achieved and elapsed by index. */
static_assert(OCC_MEASURED_achieved == 0 && OCC_MEASURED_elapsed == 2, "schema/clickhouse/warehouse.sql");
void occ_outbox_put_measured(struct occ_body *rows, const struct occ_measured_row *row, struct occ_kept *kept)
{
    const struct occ_measured_sums *sums = row->sums;
#define X(name, text) sums->name,
    const uint64_t sources[] = {OCC_MEASURED_SOURCES(X) sums->overlapped};
#undef X
    char means[OCC_MEASURED_VALUE_COUNT * NUMBER_BYTES] = "[", shares[sizeof means] = "[";
    size_t n_means = 1, n_shares = 1;
    bool is_measured = occ_measured_launches(sums) > 0 && row->total_ns > 0;
    struct occ_kept_values none = {0}, *last = is_measured ? find_kept(kept, row->key, &none) : &none;
    for (int i = 0; i < OCC_MEASURED_VALUE_COUNT && is_measured; i++) {
        if (i > 0)
            means[n_means++] = shares[n_shares++] = ',';
        bool is_known = sums->ns[i] > 0;
        if (is_known) {
            last->means[i] = choose_mean(sums, i, last->means[i]);
            last->shares[i] = choose_share(row, i, last->shares);
        }
        n_means += print(means + n_means, is_known ? last->means[i] : 0);
        n_shares += print(shares + n_shares, is_known ? last->shares[i] : 0);
    }
    means[n_means++] = shares[n_shares++] = ']';
    occ_body_put_list(rows, sources, is_measured ? sizeof sources / sizeof *sources : 0);
    occ_body_put_text(rows, means, n_means);
    occ_body_put_text(rows, shares, n_shares);
}

/* ---- evidence ---- */

struct range {
    double middle, off;
};

/* The reader compares the variance with the square of the error sent, so the variance is raised by the
 * increase of that square. */
static struct range spread_of(const struct occ_measured_sums *sums, double sent_error)
{
    double mean = mean_of(sums, OCC_MEASURED_elapsed), error = mean_of(sums, OCC_MEASURED_elapsed_error);
    double allowed = OCC_MEASURED_UNRESOLVED_SPREAD * mean, sent = fmax(sent_error, error);
    if (!(sums->ns[OCC_MEASURED_elapsed] > 0))
        return (struct range){0};
    double variance = sums->elapsed_square_sum / sums->ns[OCC_MEASURED_elapsed] - mean * mean;
    return (struct range){.middle = fmax(variance + sent * sent - error * error, 0),
                          .off = OFF_BOUND * (allowed * allowed + sent * sent)};
}

static void choose_evidence(const struct occ_measured_row *row, struct occ_kept_values *last)
{
    const struct occ_measured_sums *sums = row->sums;
    double total_ns = (double)row->total_ns, error = sums->rest_error_sum / total_ns,
           rest = sums->rest_ns / total_ns;
    const struct range ranges[] = {
        [OCC_EVIDENCE_SPREAD] = spread_of(sums, last->means[OCC_MEASURED_elapsed_error]),
        [OCC_EVIDENCE_SHIFT] = {sums->rest_shift_sum / total_ns,
                                OFF_BOUND *
                                    (OCC_ERRORS_OF_95_PERCENT * error + OCC_MEASURED_CONTRADICTION * rest)},
        [OCC_EVIDENCE_ERROR] = {error, OFF_BOUND * error},
        [OCC_EVIDENCE_REST] = {rest, OFF_BOUND * rest},
    };
    for (int i = 0; i < OCC_EVIDENCE_COUNT; i++) {
        double low = ranges[i].middle - ranges[i].off, high = ranges[i].middle + ranges[i].off;
        low = i == OCC_EVIDENCE_SHIFT ? low : fmax(low, 0);
        last->evidence[i] = choose(low, high, high - low, last->evidence[i]);
    }
}

void occ_outbox_put_evidence(struct occ_body *rows, const struct occ_measured_row *row, struct occ_kept *kept)
{
    const struct occ_measured_sums *sums = row->sums;
    bool is_known = row->total_ns > 0 && (sums->elapsed_square_sum > 0 || sums->rest_ns > 0);
    struct occ_kept_values none = {0}, *last = is_known ? find_kept(kept, row->key, &none) : &none;
    char list[OCC_EVIDENCE_COUNT * NUMBER_BYTES] = "[";
    size_t n = 1;
    if (is_known)
        choose_evidence(row, last);
    for (int i = 0; i < OCC_EVIDENCE_COUNT && is_known; i++) {
        if (i > 0)
            list[n++] = ',';
        n += print(list + n, last->evidence[i]);
    }
    list[n++] = ']';
    occ_body_put_text(rows, list, n);
}

/* ---- sums ---- */

#define NS_MAX   1e30
#define MEAN_MAX 1e12

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t column(sqlite3_stmt *stmt, int i)
{
    int64_t value = sqlite3_column_int64(stmt, i);
    return value > 0 ? (uint64_t)value : 0;
}

void occ_outbox_read_measured(sqlite3_stmt *stmt, int at, struct occ_measured_sums *sums)
{
    bool is_possible = true;
#define X(name, text) sums->name = column(stmt, at++);
    OCC_MEASURED_SOURCES(X)
    X(overlapped, "")
#undef X
    for (int i = 0; i < OCC_MEASURED_VALUE_COUNT; i++) {
        sums->sum[i] = sqlite3_column_double(stmt, at++);
        sums->ns[i] = sqlite3_column_double(stmt, at++);
        is_possible &= sums->ns[i] < NS_MAX && fabs(sums->sum[i]) <= MEAN_MAX * sums->ns[i];
    }
#define X(name)                                                                                              \
    sums->name = sqlite3_column_double(stmt, at++);                                                          \
    is_possible &= fabs(sums->name) < NS_MAX;
    OCC_MEASURED_EVIDENCE(X)
#undef X
    is_possible &= fmin(fmin(sums->elapsed_square_sum, sums->rest_error_sum), sums->rest_ns) >= 0 &&
                   sums->elapsed_square_sum <= MEAN_MAX * sums->ns[OCC_MEASURED_elapsed];
    if (!is_possible)
        *sums = (struct occ_measured_sums){0};
}

void occ_outbox_add_measured(struct occ_measured_sums *sums, const struct occ_measured_sums *more)
{
#define X(name, text) sums->name = add_saturated(sums->name, more->name);
    OCC_MEASURED_SOURCES(X)
    X(overlapped, "")
#undef X
    for (int i = 0; i < OCC_MEASURED_VALUE_COUNT; i++) {
        sums->sum[i] += more->sum[i];
        sums->ns[i] += more->ns[i];
    }
#define X(name) sums->name += more->name;
    OCC_MEASURED_EVIDENCE(X)
#undef X
}
