/* Small parts of the daemon, each without the rest: times of launches, descriptors that others sent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "daemon/batch.h"
#include "support/clock.h"

#define SECOND INT64_C(1000000000)
#define SKEW   (60 * SECOND)

/* How many launches are left of one at each of these times, of a program that started at `process_start_ns`.
 */
static size_t kept_of(int64_t process_start_ns, const uint64_t *starts_ns, size_t n, uint64_t duration_ns)
{
    static struct occ_batch batch;
    struct occ_producer producer = {.process_start_ns = process_start_ns};
    batch.producer = &producer;
    batch.n = n;
    for (size_t i = 0; i < n; i++)
        batch.launches[i] = (struct occ_ring_launch){.start_ns = starts_ns[i], .duration_ns = duration_ns};
    occ_batch_drop_impossible(&batch, SKEW);
    assert_int_equal(producer.bad_times, n - batch.n);
    return batch.n;
}

/* Boards without a battery start at the epoch; an unknown start is taken to be a day ago. */
static void launches_of_the_first_minute_are_possible(void **state)
{
    (void)state;
    const uint64_t starts_ns[] = {1, 30 * SECOND, 90 * SECOND, 4000 * SECOND};
    static const int64_t process_starts_s[] = {-80000, 0, 1, 30, 59, 60, 61};
    for (size_t i = 0; i < sizeof process_starts_s / sizeof *process_starts_s; i++) {
        int64_t start_s = process_starts_s[i];
        assert_int_equal(kept_of(start_s * SECOND, starts_ns, 4, SECOND), start_s == 61 ? 3 : 4);
    }
}

static void launches_before_their_process_or_of_the_future_are_dropped(void **state)
{
    (void)state;
    uint64_t now_ns = (uint64_t)occ_now_ns(), hour_ns = 3600 * SECOND;
    const uint64_t starts_ns[] = {now_ns - hour_ns - SKEW - SECOND, now_ns - hour_ns - SKEW + SECOND, now_ns,
                                  now_ns + hour_ns, UINT64_MAX};
    assert_int_equal(kept_of((int64_t)(now_ns - hour_ns), starts_ns, 5, SECOND), 2);
    assert_int_equal(kept_of((int64_t)(now_ns - hour_ns), starts_ns, 5, UINT64_MAX), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_of_the_first_minute_are_possible),
        cmocka_unit_test(launches_before_their_process_or_of_the_future_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
