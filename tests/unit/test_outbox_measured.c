/*
 * The shipper rounds measured values for the warehouse. A reader that adds the rows up gets no smaller error
 * than the history has, and withholds means for the same reasons.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/outbox.h"

#define SERIES   400
#define MINUTES  12
#define TOTAL_NS UINT64_C(40000000000)
#define MEAN_LESS                                                                                            \
    0.97 /* rounding moves a mean, and the part of launches without a value, by up to half of the mean's     \
            error */
#define MEAN_MORE 1.48 /* rounding raises an error by up to 1.4142, and a share rounded down adds 1/16 */
#define NEAR      0.3  /* relative margin of evidence around a bound that rounding may cross */

static uint64_t state_of_random = 1;

static double random_between(double low, double high)
{
    state_of_random = state_of_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (high - low) * (double)(state_of_random >> 33) / 0x1p31;
}

/* ---- a row ---- */

/* A launch configuration with similar values in all minutes. */
struct series {
    double mean, error, share, achieved_share, spread, shift, shift_error, rest;
};

static struct series random_series(void)
{
    struct series s = {.mean = random_between(0.05, 0.95),
                       .error = pow(10, random_between(-6, -1.7)),
                       .share = random_between(0, 1) < 0.3 ? 1 : random_between(0.3, 1)};
    s.achieved_share = random_between(0, 1) < 0.5 ? s.share : s.share * random_between(0.97, 1);
    s.rest = (1 - s.share) * random_between(0, 1);
    s.spread = random_between(0, 1) < 0.4 ? random_between(0, 0.3) * s.mean : 0;
    s.shift = random_between(0, 1) < 0.4 ? random_between(-0.1, 0.1) : 0;
    s.shift_error = random_between(0, 0.02);
    return s;
}

static void put_value(struct occ_measured_sums *sums, int value, double mean, double ns)
{
    sums->sum[value] = mean * ns;
    sums->ns[value] = ns;
}

/* Draws the sums of a minute of the series: mean and share differ slightly from minute to minute. */
static struct occ_measured_sums sums_of(const struct series *s)
{
    struct occ_measured_sums sums = {.direct = 10};
    double share = s->share < 1 ? s->share * random_between(0.97, 1) : 1, ns = share * TOTAL_NS;
    double achieved_ns = ns * s->achieved_share / s->share, rest_ns = s->rest * TOTAL_NS;
    double mean = s->mean + random_between(-0.1, 0.1) * s->error;
    put_value(&sums, OCC_MEASURED_elapsed, mean, ns);
    put_value(&sums, OCC_MEASURED_elapsed_error, s->error, ns);
    put_value(&sums, OCC_MEASURED_achieved, mean, achieved_ns);
    put_value(&sums, OCC_MEASURED_achieved_error, s->error, achieved_ns);
    sums.elapsed_square_sum = (mean * mean + s->spread * s->spread + s->error * s->error) * ns;
    sums.rest_ns = rest_ns;
    sums.rest_shift_sum = s->shift * rest_ns;
    sums.rest_error_sum = s->shift_error * rest_ns;
    return sums;
}

static void add(struct occ_measured_sums *sums, const struct occ_measured_sums *more)
{
    sums->direct += more->direct;
    for (int i = 0; i < OCC_MEASURED_VALUE_COUNT; i++) {
        sums->sum[i] += more->sum[i];
        sums->ns[i] += more->ns[i];
    }
#define X(name) sums->name += more->name;
    OCC_MEASURED_EVIDENCE(X)
#undef X
}

/* ---- the warehouse's row ---- */

/* "[1,2]" -> the numbers, as the server's Float32; their number. */
static size_t read_list(const char *text, double *numbers)
{
    size_t n = 0;
    for (const char *at = text; *at && *at != ']';) {
        char *end = NULL;
        numbers[n++] = (double)strtof(at + 1, &end);
        assert_ptr_not_equal(end, at + 1);
        at = end;
    }
    return n;
}

/* Converts a shipped row back into sums, like cluster/ask/launches.c. */
static struct occ_measured_sums read_back(const struct occ_body *rows)
{
    struct occ_measured_sums sums = {.direct = 10};
    double means[OCC_MEASURED_VALUE_COUNT], shares[OCC_MEASURED_VALUE_COUNT], evidence[OCC_EVIDENCE_COUNT];
    char *text = strndup(rows->data, rows->n), *rest = text;
    assert_non_null(text);
    (void)strsep(&rest, "\t");
    assert_int_equal(read_list(strsep(&rest, "\t"), means), OCC_MEASURED_VALUE_COUNT);
    assert_int_equal(read_list(strsep(&rest, "\t"), shares), OCC_MEASURED_VALUE_COUNT);
    assert_int_equal(read_list(rest, evidence), OCC_EVIDENCE_COUNT);
    free(text);
    for (int i = 0; i < OCC_MEASURED_VALUE_COUNT; i++)
        put_value(&sums, i, means[i], shares[i] * TOTAL_NS);
    double mean = means[OCC_MEASURED_elapsed];
    sums.elapsed_square_sum =
        (mean * mean + evidence[OCC_EVIDENCE_SPREAD]) * shares[OCC_MEASURED_elapsed] * TOTAL_NS;
    sums.rest_shift_sum = evidence[OCC_EVIDENCE_SHIFT] * TOTAL_NS;
    sums.rest_error_sum = evidence[OCC_EVIDENCE_ERROR] * TOTAL_NS;
    sums.rest_ns = evidence[OCC_EVIDENCE_REST] * TOTAL_NS;
    return sums;
}

static struct occ_measured_sums ship(const struct occ_measured_sums *sums, struct occ_kept *kept)
{
    const struct occ_measured_row row = {.sums = sums, .key = 1, .total_ns = TOTAL_NS, .expected_elapsed = 1};
    struct occ_body rows = {0};
    occ_outbox_put_measured(&rows, &row, kept);
    occ_outbox_put_evidence(&rows, &row, kept);
    assert_false(rows.failed);
    struct occ_measured_sums back = read_back(&rows);
    occ_body_free(&rows);
    return back;
}

/* The sums of a series in the history and in the warehouse. */
static void ship_series(const struct series *s, struct occ_measured_sums *ret_ours,
                        struct occ_measured_sums *ret_theirs)
{
    struct occ_kept kept = {0};
    *ret_ours = *ret_theirs = (struct occ_measured_sums){0};
    for (int i = 0; i < MINUTES; i++) {
        struct occ_measured_sums sums = sums_of(s), back = ship(&sums, &kept);
        add(ret_ours, &sums);
        add(ret_theirs, &back);
    }
    occ_kept_free(&kept);
}

/* ---- the properties ---- */

static void check_error(double theirs, double ours, const char *what, int number)
{
    if (!(theirs >= MEAN_LESS * ours && theirs <= MEAN_MORE * ours))
        fail_msg("series %d: the error of %s is %.9g, the history's %.9g", number, what, theirs, ours);
}

static void no_error_is_smaller_than_the_history_s(void **state)
{
    (void)state;
    for (int i = 0; i < SERIES; i++) {
        struct series s = random_series();
        struct occ_measured_sums ours, theirs;
        struct occ_measurement a, b;
        s.spread = s.shift = 0;
        ship_series(&s, &ours, &theirs);
        occ_measured_means(&ours, (double)TOTAL_NS * MINUTES, &a);
        occ_measured_means(&theirs, (double)TOTAL_NS * MINUTES, &b);
        check_error(b.elapsed_error, a.elapsed_error, "elapsed occupancy", i);
        check_error(b.achieved_error, a.achieved_error, "achieved occupancy", i);
        assert_true(b.measured_ratio <= a.measured_ratio * (1 + 1e-6));
    }
}

static enum occ_withheld withheld(const struct occ_measured_sums *sums)
{
    struct occ_measurement m;
    occ_measured_means(sums, (double)TOTAL_NS * MINUTES, &m);
    return m.withheld;
}

/* Returns true if slightly less and slightly more evidence give the same reason. */
static bool is_clear(const struct occ_measured_sums *sums)
{
    struct occ_measured_sums less = *sums, more = *sums;
    double mean = occ_measured_mean(sums, OCC_MEASURED_elapsed), ns = sums->ns[OCC_MEASURED_elapsed];
    double spread = sums->elapsed_square_sum - mean * mean * ns;
    less.elapsed_square_sum -= NEAR * spread;
    more.elapsed_square_sum += NEAR * spread;
    less.rest_shift_sum *= 1 - NEAR;
    more.rest_shift_sum *= 1 + NEAR;
    double ratio = occ_measured_ratio(sums, (double)TOTAL_NS * MINUTES);
    return withheld(&less) == withheld(&more) && fabs(ratio - (1 - OCC_MEASURED_MINORITY)) > 0.02;
}

static void means_are_withheld_for_the_history_s_reason(void **state)
{
    int found[OCC_WITHHELD_COUNT] = {0};
    (void)state;
    for (int i = 0; i < SERIES; i++) {
        struct series s = random_series();
        struct occ_measured_sums ours, theirs;
        ship_series(&s, &ours, &theirs);
        if (!is_clear(&ours))
            continue;
        found[withheld(&ours)]++;
        if (withheld(&theirs) != withheld(&ours))
            fail_msg("series %d: withheld for reason %d, by the history for %d", i, withheld(&theirs),
                     withheld(&ours));
    }
    assert_true(found[OCC_WITHHELD_NOT] > 10 && found[OCC_WITHHELD_TOTAL] > 10 &&
                found[OCC_WITHHELD_LAUNCHES] > 10);
}

/* A minute may have only launches without a value. */
static void evidence_goes_without_measured_values(void **state)
{
    const struct occ_measured_sums rest = {.rest_shift_sum = 4e9, .rest_error_sum = 4e7, .rest_ns = 4e10},
                                   nothing = {0};
    const struct occ_measured_row rows[] = {{.sums = &rest, .key = 1, .total_ns = TOTAL_NS},
                                            {.sums = &nothing, .key = 2, .total_ns = TOTAL_NS}};
    struct occ_kept kept = {0};
    struct occ_body body = {0};
    (void)state;
    occ_outbox_put_evidence(&body, &rows[0], &kept);
    occ_outbox_put_evidence(&body, &rows[1], &kept);
    occ_body_end_row(&body);
    occ_body_put_raw(&body, "", 1);
    assert_string_equal(body.data, "[0,0.1,0.001,1]\t[]\n");
    occ_body_free(&body);
    occ_kept_free(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_error_is_smaller_than_the_history_s),
        cmocka_unit_test(means_are_withheld_for_the_history_s_reason),
        cmocka_unit_test(evidence_goes_without_measured_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
