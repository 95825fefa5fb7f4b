/*
 * Predictions and the list of suggestions: worked examples, and what must hold on random launches: the change
 * that does nothing takes the same time, the way back is the inverse, more work for SMs is never slower.
 */
#include "occupancy/suggest.h"
#include "test_occupancy_launches.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define KIB 1024u

static struct occ_device device_named(const char *name)
{
    struct occ_device device;
    assert_int_equal(occ_device_from_name(name, &device), OCC_OK);
    return device;
}

static struct occ_launch launch_of(uint32_t blocks, uint32_t threads, uint32_t registers, uint32_t smem)
{
    return (struct occ_launch){
        .grid = {blocks, 1, 1},
        .block = {threads, 1, 1},
        .registers_per_thread = registers,
        .dynamic_smem_bytes = smem,
        .carveout_percent = -1,
    };
}

static struct occ_prediction predict(const char *gpu, const struct occ_launch *before,
                                     const struct occ_launch *after, enum occ_work_bound bound,
                                     int64_t spill_after)
{
    struct occ_device device = device_named(gpu);
    struct occ_prediction p;
    const struct occ_change change = {before, after, 0, spill_after, bound, OCC_OWNER_USER, true};
    assert_true(occ_predict(&device, &change, &p));
    assert_true(p.low <= p.ratio && p.ratio <= p.high);
    return p;
}

static struct found {
    struct occ_suggestion list[OCC_ADVICE_MAX];
    size_t n;
} suggest(const char *gpu, const struct occ_launch *launch, enum occ_owner owner, int64_t spills)
{
    struct found found;
    struct occ_device device = device_named(gpu);
    struct occ_result result;
    assert_int_equal(occ_analyse(&device, launch, &result), OCC_OK);
    found.n = occ_suggest(
        &(struct occ_suggest_input){&device, launch, &result, OCC_WORK_UNKNOWN, owner, spills, true},
        found.list);
    return found;
}

static const struct occ_suggestion *first_of(const struct found *found, enum occ_advice_kind kind)
{
    for (size_t i = 0; i < found->n; i++)
        if (found->list[i].advice.kind == kind)
            return &found->list[i];
    return NULL;
}

/* ---- predictions ---- */

static void blocks_for_idle_sms(void **state)
{
    (void)state;
    struct occ_launch before = launch_of(27, 128, 32, 0), after = launch_of(108, 128, 32, 0);
    struct occ_prediction p = predict("a100", &before, &after, OCC_WORK_MEMORY, 0);
    assert_true(fabs(p.ratio - 0.5) < 1e-9); /* four times the SMs: the square root */
    assert_int_equal(p.term, OCC_TERM_SMS);
    assert_true(p.is_promised);
    assert_int_equal(p.published.cases, 17);
}

static void warps_count_up_to_the_knee(void **state)
{
    (void)state;
    struct occ_launch few = launch_of(1u << 20, 256, 128, 0); /* 16 warps per SM */
    struct occ_launch more = launch_of(1u << 20, 256, 64, 0), most = launch_of(1u << 20, 256, 32, 0);
    struct occ_prediction p = predict("a100", &few, &more, OCC_WORK_MEMORY, 0);
    assert_true(fabs(p.ratio - pow(16 / 28.0, 0.25)) < 1e-3);
    assert_true(p.is_promised);
    p = predict("a100", &more, &most, OCC_WORK_MEMORY, 0); /* 32 to 64 */
    assert_true(fabs(p.ratio - 1) < 1e-3);
    assert_false(p.is_promised);
    p = predict("a100", &few, &more, OCC_WORK_COMPUTE, 0); /* a coin flip */
    assert_true(fabs(p.ratio - 1) < 1e-3);
}

static void added_spills_promise_nothing(void **state)
{
    (void)state;
    struct occ_launch few = launch_of(1u << 20, 256, 255, 0), more = launch_of(1u << 20, 256, 64, 0);
    assert_false(predict("a100", &few, &more, OCC_WORK_MEMORY, 16).is_promised);
    struct occ_launch idle = launch_of(1, 256, 255, 0); /* a large gain elsewhere */
    assert_true(predict("a100", &idle, &more, OCC_WORK_MEMORY, 0).is_promised);
    assert_false(predict("a100", &idle, &more, OCC_WORK_MEMORY, 16).is_promised);
}

static void an_impossible_launch_has_no_prediction(void **state)
{
    (void)state;
    struct occ_device device = device_named("a100");
    struct occ_launch good = launch_of(1, 32, 32, 0), bad = {0};
    struct occ_prediction p;
    assert_false(occ_predict(&device, &(struct occ_change){.before = &good, .after = &bad}, &p));
    assert_false(occ_predict(&device, &(struct occ_change){.before = &bad, .after = &good}, &p));
}

static void the_way_back_is_the_inverse(void **state)
{
    (void)state;
    struct occ_device device;
    random_state = 0x9ed1c7;
    for (size_t i = 0; occ_device_at(i, &device) == OCC_OK; i++) {
        random_sms(&device);
        for (int n = 0; n < 200; n++) {
            struct occ_launch one = random_launch(&device), other = random_launch(&device);
            struct occ_prediction there, back, same;
            struct occ_change change = {&one, &other, -1, -1, OCC_WORK_MEMORY, OCC_OWNER_USER, true};
            if (!occ_predict(&device, &change, &there))
                continue;
            change.before = &other;
            change.after = &one;
            assert_true(occ_predict(&device, &change, &back));
            assert_true(fabs(there.ratio * back.ratio - 1) < 1e-9);
            change.before = &one;
            assert_true(occ_predict(&device, &change, &same));
            assert_true(same.ratio == 1 && !same.is_promised && same.low < 1 && same.high > 1);
        }
    }
}

/* ---- suggestions ---- */

static void no_promise_above_the_knee(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(1u << 20, 256, 48, 0); /* 40 of 64 warps */
    struct found found = suggest("a100", &launch, OCC_OWNER_USER, -1);
    const struct occ_suggestion *registers = first_of(&found, OCC_ADVICE_REGISTERS);
    assert_non_null(registers);
    assert_false(registers->prediction.is_promised);
    assert_true(registers->is_unlikely);
    for (size_t i = 0; i < found.n; i++)
        assert_false(found.list[i].prediction.is_promised);
}

static void registers_by_force_come_after_other_promises(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(250, 256, 128, 0); /* 2.3 of 2 blocks each: a tail, and 16 warps */
    struct found found = suggest("a100", &launch, OCC_OWNER_USER, -1);
    bool forced = false;
    size_t promises = 0;
    for (size_t i = 0; i < found.n && found.list[i].prediction.is_promised; i++, promises++) {
        assert_false(forced && !found.list[i].is_forced);
        forced |= found.list[i].is_forced;
    }
    assert_true(forced && promises > 1);
    found = suggest("a100", &launch, OCC_OWNER_USER, 64); /* it spills as it is */
    assert_false(first_of(&found, OCC_ADVICE_REGISTERS)->prediction.is_promised);
}

static void tails_of_many_waves_are_no_advice(void **state)
{
    (void)state;
    struct occ_launch few = launch_of(108 * 2 * 3 + 1, 256, 128, 0);
    struct occ_launch many = launch_of(108 * 2 * 5 + 1, 256, 128, 0);
    struct found found = suggest("a100", &few, OCC_OWNER_USER, -1);
    assert_non_null(first_of(&found, OCC_ADVICE_GRID_DOWN));
    found = suggest("a100", &few, OCC_OWNER_COMMUNICATION, -1);
    assert_null(first_of(&found, OCC_ADVICE_GRID_DOWN));
    found = suggest("a100", &many, OCC_OWNER_USER, -1);
    assert_null(first_of(&found, OCC_ADVICE_GRID_DOWN));
    assert_null(first_of(&found, OCC_ADVICE_GRID_UP));
    found = suggest("a100", &(struct occ_launch[]){launch_of(108, 256, 128, 0)}[0], OCC_OWNER_USER, -1);
    assert_null(first_of(&found, OCC_ADVICE_FILL_WAVE)); /* persistent */
}

/* 48 registers where shared memory allows 3 blocks: 80 cost none. */
static void registers_and_memory_that_cost_no_block(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(1u << 20, 256, 48, 32 * KIB);
    struct found found = suggest("rtx5090", &launch, OCC_OWNER_USER, -1);
    const struct occ_suggestion *more = first_of(&found, OCC_ADVICE_FREE_REGISTERS);
    assert_non_null(more);
    assert_int_equal(more->advice.needed, 80);
    assert_int_equal(more->advice.blocks_then, more->advice.blocks_now);
    assert_false(more->prediction.is_promised);
    found = suggest("rtx5090", &launch, OCC_OWNER_USER, 24); /* spills although registers are free */
    assert_true(first_of(&found, OCC_ADVICE_FREE_REGISTERS)->prediction.is_promised);

    launch = launch_of(1u << 20, 256, 128, 10 * KIB); /* registers: 2 blocks */
    found = suggest("a100", &launch, OCC_OWNER_USER, -1);
    more = first_of(&found, OCC_ADVICE_FREE_SMEM);
    assert_non_null(more);
    assert_true(more->advice.needed > 10 * KIB);
    assert_int_equal(more->advice.blocks_then, 2);
}

static void blocks_of_other_sizes(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(1u << 20, 1024, 40, 24 * KIB); /* one block of 1024 per SM */
    struct found found = suggest("rtx3090", &launch, OCC_OWNER_USER, -1);
    const struct occ_suggestion *half = first_of(&found, OCC_ADVICE_HALF_BLOCK);
    assert_non_null(half);
    assert_int_equal(half->advice.needed, 512);
    launch.dynamic_smem_bytes = 0; /* nothing to wait for */
    found = suggest("rtx3090", &launch, OCC_OWNER_USER, -1);
    assert_null(first_of(&found, OCC_ADVICE_HALF_BLOCK));

    launch = launch_of(1u << 20, 96, 29, 0);
    found = suggest("rtx2080ti", &launch, OCC_OWNER_USER, -1);
    assert_non_null(first_of(&found, OCC_ADVICE_LARGER_BLOCK));

    launch = launch_of(1u << 20, 144, 32, 0);
    found = suggest("a100", &launch, OCC_OWNER_USER, -1);
    assert_int_equal(first_of(&found, OCC_ADVICE_WHOLE_WARPS)->advice.needed, 160);
}

static void a_grid_below_the_sms(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(20, 256, 128, 48 * KIB);
    struct found found = suggest("a100", &launch, OCC_OWNER_USER, -1);
    const struct occ_suggestion *fill = first_of(&found, OCC_ADVICE_FILL_SMS);
    assert_non_null(fill);
    assert_int_equal(fill->advice.needed, 108);
    assert_true(fill->prediction.is_promised);
    assert_null(first_of(&found, OCC_ADVICE_REGISTERS)); /* most SMs have no block */
    assert_null(first_of(&found, OCC_ADVICE_SMEM));
}

static void random_launches_have_ordered_lists(void **state)
{
    (void)state;
    struct occ_device device;
    random_state = 0x5a99e5;
    for (size_t i = 0; occ_device_at(i, &device) == OCC_OK; i++) {
        for (int n = 0; n < 300; n++) {
            random_sms(&device);
            struct occ_launch launch = random_launch(&device);
            struct occ_suggestion list[OCC_ADVICE_MAX];
            struct occ_result result, then;
            if (occ_analyse(&device, &launch, &result) != OCC_OK)
                continue;
            size_t count = occ_suggest(&(struct occ_suggest_input){&device, &launch, &result, OCC_WORK_MEMORY,
                                                                   OCC_OWNER_USER, -1, true},
                                       list);
            assert_true(count <= OCC_ADVICE_MAX);
            for (size_t k = 0; k < count; k++) {
                const struct occ_prediction *p = &list[k].prediction;
                assert_int_equal(occ_analyse(&device, &list[k].advice.launch, &then), OCC_OK);
                assert_int_equal(then.blocks_per_sm, list[k].advice.blocks_then);
                assert_true(isfinite(p->ratio) && p->low > 0 && p->low <= p->ratio && p->ratio <= p->high);
                assert_true(!p->is_promised || p->ratio <= OCC_PROMISED_RATIO);
                assert_false(k > 0 && p->is_promised && !list[k - 1].prediction.is_promised);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_for_idle_sms),
        cmocka_unit_test(warps_count_up_to_the_knee),
        cmocka_unit_test(added_spills_promise_nothing),
        cmocka_unit_test(an_impossible_launch_has_no_prediction),
        cmocka_unit_test(the_way_back_is_the_inverse),
        cmocka_unit_test(no_promise_above_the_knee),
        cmocka_unit_test(registers_by_force_come_after_other_promises),
        cmocka_unit_test(tails_of_many_waves_are_no_advice),
        cmocka_unit_test(registers_and_memory_that_cost_no_block),
        cmocka_unit_test(blocks_of_other_sizes),
        cmocka_unit_test(a_grid_below_the_sms),
        cmocka_unit_test(random_launches_have_ordered_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
