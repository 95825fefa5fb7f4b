/* The queues of a GPU's thread: launches on the way in, and results by minute, run and configuration on the
 * way out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "daemon/sampling/gpu_queues.h"
#include "daemon/sampling/record_age.h"

#define MINUTE_NS INT64_C(60000000000)

static struct occ_attribution_launch launch_at(int64_t start_ns, uint64_t tag)
{
    return (struct occ_attribution_launch){.start_ns = start_ns, .end_ns = start_ns + 1, .tag = tag};
}

static void add(struct occ_launch_queue *queue, int64_t start_ns, uint64_t tag)
{
    const struct occ_attribution_launch launch = launch_at(start_ns, tag);
    assert_true(occ_launch_queue_add(queue, &launch, SIZE_MAX));
}

static void assert_ordered(const struct occ_launch_queue *queue)
{
    for (size_t i = 1; i < queue->n; i++)
        assert_true(occ_launch_queue_at(queue, i - 1)->start_ns <= occ_launch_queue_at(queue, i)->start_ns);
}

static void launches_are_merged_by_start(void **state)
{
    (void)state;
    struct occ_launch_queue queue = {0}, more = {0};
    uint32_t random = 1;
    assert_int_equal(occ_launch_queue_merge(&queue, &more, 1000), 0);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 40; i++) {
            random = random * 1103515245 + 12345;
            add(&more, (int64_t)(random >> 16) % 100 + round * 10, (uint64_t)(round * 40 + i));
        }
        assert_int_equal(occ_launch_queue_merge(&queue, &more, 1000), 0);
        assert_int_equal(more.n, 0);
        assert_ordered(&queue);
    }
    assert_int_equal(queue.n, 800);
    uint64_t tags = 0;
    for (size_t i = 0; i < queue.n; i++)
        tags += queue.items[i].tag;
    assert_int_equal(tags, 799 * 800 / 2); /* each launch once */
    int64_t first_ns = occ_launch_queue_at(&queue, 300)->start_ns;
    occ_launch_queue_remove(&queue, 300);
    assert_int_equal(queue.n, 500);
    assert_int_equal(occ_launch_queue_at(&queue, 0)->start_ns, first_ns);
    free(queue.items);
    free(more.items);
}

/* Launches of one GPU may start at the same time; waiting launches come first, so that new ones do not move
 * them. */
static void of_equal_starts_the_waiting_ones_come_first(void **state)
{
    (void)state;
    struct occ_launch_queue queue = {0}, more = {0};
    static const int64_t waiting[] = {1, 5, 5, 9}, coming[] = {0, 5, 9};
    static const uint64_t tags[] = {10, 0, 1, 2, 11, 3, 12};
    for (uint64_t i = 0; i < 4; i++)
        add(&queue, waiting[i], i);
    for (uint64_t i = 0; i < 3; i++)
        add(&more, coming[i], 10 + i);
    assert_int_equal(occ_launch_queue_merge(&queue, &more, 1000), 0);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(occ_launch_queue_at(&queue, i)->tag, tags[i]);
    free(queue.items);
    free(more.items);
}

/* Plays rounds of a GPU with 80 000 launches a second and records 4 s old: waiting launches do not move when
 * others leave. */
static void launches_leave_without_a_move_of_the_rest(void **state)
{
    (void)state;
    enum { WAITING = 320000, ROUND = 4000 };
    struct occ_launch_queue queue = {0}, more = {0};
    int64_t next_ns = 0, left = 0, moved = 0;
    for (int round = 0; round < 400; round++) {
        for (int i = 0; i < ROUND; i++, next_ns++)
            add(&more, next_ns, (uint64_t)next_ns);
        assert_int_equal(occ_launch_queue_merge(&queue, &more, 1 << 20), 0);
        if (queue.n < WAITING)
            continue;
        const struct occ_attribution_launch *stays = occ_launch_queue_at(&queue, ROUND);
        occ_launch_queue_remove(&queue, ROUND);
        left += ROUND;
        assert_int_equal(occ_launch_queue_at(&queue, 0)->tag, left);
        moved += occ_launch_queue_at(&queue, 0) != stays;
    }
    assert_int_equal(moved, 0);
    assert_true(queue.allocated <= 1 << 20);
    for (size_t i = 0; i < queue.n; i++)
        assert_int_equal(occ_launch_queue_at(&queue, i)->tag, left + (int64_t)i);
    occ_launch_queue_remove(&queue, queue.n - 10); /* returns memory */
    assert_int_equal(occ_launch_queue_at(&queue, 9)->tag, next_ns - 1);
    assert_true(queue.allocated <= 1 << 19);
    free(queue.items);
    free(more.items);
}

/* A full queue accepts as many launches as have left. */
static void a_full_queue_has_room_again(void **state)
{
    (void)state;
    struct occ_launch_queue queue = {0}, more = {0};
    for (int64_t at_ns = 0; at_ns < 64; at_ns++)
        add(&more, at_ns, (uint64_t)at_ns);
    assert_int_equal(occ_launch_queue_merge(&queue, &more, 60), 4);
    occ_launch_queue_remove(&queue, 7);
    for (int64_t at_ns = 60; at_ns < 70; at_ns++)
        add(&more, at_ns, (uint64_t)at_ns);
    assert_int_equal(occ_launch_queue_merge(&queue, &more, 60), 3);
    assert_int_equal(queue.n, 60);
    for (size_t i = 0; i < queue.n; i++)
        assert_int_equal(occ_launch_queue_at(&queue, i)->tag, i + 7);
    free(queue.items);
    free(more.items);
}

/* Plays rounds of 50 ms on a simulated clock; once per second the launches of `age_ns` ago arrive. Returns
 * the number of launches behind the watermark at their arrival, in the last 60 of `seconds`. */
static unsigned late_launches(struct occ_record_age *age, int64_t age_ns, int seconds)
{
    int64_t now_ns = MINUTE_NS, advanced_ns = 0;
    unsigned late = 0;
    for (int round = 0; round < 20 * seconds; round++, now_ns += 50000000) {
        for (int i = 0; round % 20 == 0 && i < 100; i++) {
            int64_t end_ns = now_ns - age_ns + i * 10000000;
            occ_record_age_add(age, end_ns, now_ns);
            late += round >= 20 * (seconds - 60) && end_ns - 20000 < advanced_ns;
        }
        int64_t until_ns = now_ns - occ_record_age_watermark(age);
        advanced_ns = until_ns > advanced_ns ? until_ns : advanced_ns;
    }
    return late;
}

static void the_watermark_follows_the_age_of_records(void **state)
{
    (void)state;
    const int64_t second_ns = 1000000000;
    struct occ_record_age age = {0};
    assert_int_equal(occ_record_age_watermark(&age), 4 * second_ns);
    assert_int_equal(late_launches(&age, 2 * second_ns, 70), 0);
    assert_int_equal(occ_record_age_watermark(&age), 4 * second_ns);
    /* a GPU that is always busy: some of the first launches are late, later ones are not */
    assert_int_equal(late_launches(&age, 9 * second_ns, 70), 0);
    assert_int_equal(late_launches(&age, 19 * second_ns, 70), 0);
    assert_true(occ_record_age_watermark(&age) > 19 * second_ns);
    /* bounded: an hour-old record has waited for a daemon */
    occ_record_age_add(&age, 0, 3600 * second_ns);
    assert_true(occ_record_age_watermark(&age) <= 21 * second_ns);
    /* the watermark goes back slowly */
    assert_int_equal(late_launches(&age, 2 * second_ns, 70), 0);
    assert_true(occ_record_age_watermark(&age) > 5 * second_ns);
    assert_int_equal(late_launches(&age, 2 * second_ns, 600), 0);
    assert_int_equal(occ_record_age_watermark(&age), 4 * second_ns);
}

static void a_full_queue_drops_the_latest(void **state)
{
    (void)state;
    struct occ_launch_queue queue = {0}, more = {0};
    const struct occ_attribution_launch extra = launch_at(9, 9);
    for (int64_t start_ns = 0; start_ns < 10; start_ns += 2)
        add(&queue, start_ns, 0);
    for (int64_t start_ns = 9; start_ns > 0; start_ns -= 2)
        add(&more, start_ns, 1);
    queue.allocated = queue.n; /* simulates a lack of memory */
    assert_false(occ_launch_queue_add(&queue, &extra, 5));
    assert_int_equal(occ_launch_queue_merge(&queue, &more, 8), 2);
    assert_int_equal(queue.n, 8);
    assert_ordered(&queue);
    static const int64_t starts[] = {0, 1, 2, 3, 4, 5, 6, 8};
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(queue.items[i].start_ns, starts[i]);
    free(queue.items);
    free(more.items);
}

static struct occ_attribution_value value_of(int64_t minute, int64_t run, uint32_t config,
                                             enum occ_attribution_source source)
{
    return (struct occ_attribution_value){
        .tag = occ_gpu_results_tag(run, 77),
        .shape = config,
        .start_ns = minute * MINUTE_NS + 5,
        .end_ns = minute * MINUTE_NS + 105,
        .measured = {.source = source, .achieved = NAN, .elapsed = 0.5, .sm_active = 0.75}};
}

static const struct occ_measured_sums *find(const struct occ_gpu_results *results, int64_t minute,
                                            int64_t run, uint32_t config)
{
    for (size_t i = 0; i < results->n_sums; i++)
        if (results->sums[i].minute == minute && results->sums[i].run == run &&
            results->sums[i].config == config)
            return &results->sums[i].sums;
    return NULL;
}

static void values_are_added_up_by_minute_run_and_configuration(void **state)
{
    (void)state;
    struct occ_gpu_results results = {0};
    assert_true(occ_gpu_results_is_empty(&results));
    for (int again = 0; again < 3; again++)
        for (int64_t minute = 100; minute < 103; minute++)
            for (int64_t run = 1; run < 4; run++)
                for (uint32_t config = 1; config < 20; config++) {
                    const struct occ_attribution_value value =
                        value_of(minute, run, config, OCC_ATTRIBUTION_REGRESSED);
                    occ_gpu_results_add_value(&results, &value);
                }
    assert_int_equal(results.n_sums, 3 * 3 * 19);
    assert_int_equal(results.n_values, 0);
    assert_int_equal(results.dropped, 0);
    for (int64_t minute = 100; minute < 103; minute++)
        for (int64_t run = 1; run < 4; run++)
            for (uint32_t config = 1; config < 20; config++) {
                const struct occ_measured_sums *sums = find(&results, minute, run, config);
                assert_non_null(sums);
                assert_int_equal(sums->regression, 3);
                assert_true(sums->sum[OCC_MEASURED_elapsed] == 150 && sums->ns[OCC_MEASURED_elapsed] == 300);
                assert_true(sums->sum[OCC_MEASURED_sm_active] == 225);
                assert_true(sums->ns[OCC_MEASURED_achieved] == 0); /* not measured */
                assert_true(sums->ns[OCC_MEASURED_group_elapsed] == 0);
            }
    occ_gpu_results_free(&results);
    assert_true(occ_gpu_results_is_empty(&results));
}

static void only_direct_values_are_a_launch_s_own(void **state)
{
    (void)state;
    struct occ_gpu_results results = {0};
    static const enum occ_attribution_source sources[] = {OCC_ATTRIBUTION_NONE, OCC_ATTRIBUTION_DIRECT,
                                                          OCC_ATTRIBUTION_REGRESSED, OCC_ATTRIBUTION_GROUP};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        const struct occ_attribution_value value = value_of(7, 3, 11, sources[i]);
        occ_gpu_results_add_value(&results, &value);
    }
    assert_int_equal(results.n_sums, 1);
    const struct occ_measured_sums *sums = &results.sums[0].sums;
    assert_true(sums->direct == 1 && sums->regression == 1 && sums->grouped == 1);
    assert_true(sums->ns[OCC_MEASURED_elapsed] == 200 && sums->ns[OCC_MEASURED_group_elapsed] == 100);
    assert_int_equal(results.n_values, 1);
    assert_int_equal(results.values[0].run, 3);
    assert_int_equal(results.values[0].value.config, 11);
    assert_int_equal(results.values[0].value.correlation, 77);
    assert_int_equal(results.values[0].value.start_ns, 7 * MINUTE_NS + 5);
    occ_gpu_results_free(&results);
}

static void results_are_bounded(void **state)
{
    (void)state;
    struct occ_gpu_results results = {0};
    for (uint32_t config = 0; config < 20000; config++) {
        const struct occ_attribution_value value = value_of(7, 3, config, OCC_ATTRIBUTION_REGRESSED);
        occ_gpu_results_add_value(&results, &value);
    }
    assert_true(results.n_sums > 0 && results.n_sums < 20000);
    assert_int_equal(results.n_sums + results.dropped, 20000);
    occ_gpu_results_free(&results);
}

/* Blocks are counted over all SMs, and reported per active SM. */
static void blocks_of_samples_are_per_active_sm(void **state)
{
    struct occ_gpu_results results = {0};
    struct occ_attribution_sample sample = {.start_ns = 5, .end_ns = 7};
    (void)state;
    sample.ratio[OCC_RATIO_WARPS] = 0.25F;
    sample.ratio[OCC_RATIO_BLOCKS] = 4;
    for (int i = 0; i < 2; i++) {
        sample.ratio[OCC_RATIO_ACTIVE] = i == 0 ? 0.5F : 0;
        assert_true(occ_gpu_results_add_sample(&results, &sample));
    }
    assert_true(results.samples[0].resident_blocks == 8 && results.samples[0].sm_active == 0.5);
    assert_true(results.samples[0].elapsed == 0.25 && results.samples[0].end_ns == 7);
    assert_true(isnan(results.samples[1].resident_blocks));
    occ_gpu_results_free(&results);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_are_merged_by_start),
        cmocka_unit_test(of_equal_starts_the_waiting_ones_come_first),
        cmocka_unit_test(launches_leave_without_a_move_of_the_rest),
        cmocka_unit_test(a_full_queue_has_room_again),
        cmocka_unit_test(blocks_of_samples_are_per_active_sm),
        cmocka_unit_test(the_watermark_follows_the_age_of_records),
        cmocka_unit_test(a_full_queue_drops_the_latest),
        cmocka_unit_test(values_are_added_up_by_minute_run_and_configuration),
        cmocka_unit_test(only_direct_values_are_a_launch_s_own),
        cmocka_unit_test(results_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
