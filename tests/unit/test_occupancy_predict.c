/*
 * Predictions and the list of suggestions: worked examples, and properties on random launches: the change
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
    struct occ_result result;
    assert_int_equal(occ_analyse(&device, before, &result), OCC_OK);
    const struct occ_launch_change change = {before,      after, &result,        0,
                                             spill_after, bound, OCC_OWNER_USER, true};
    assert_true(occ_predict(&device, &change, &p));
    assert_true(p.low <= p.ratio && p.ratio <= p.high);
    return p;
}

struct found {
    struct occ_suggestion list[OCC_ADVICE_MAX];
    size_t n;
};

/* `input` without device, launch and result; its grid is known. */
static struct found suggest_for(const char *gpu, const struct occ_launch *launch,
                                struct occ_suggest_input input)
{
    struct found found;
    struct occ_device device = device_named(gpu);
    struct occ_result result;
    assert_int_equal(occ_analyse(&device, launch, &result), OCC_OK);
    input.device = &device;
    input.launch = launch;
    input.result = &result;
    input.has_grid = true;
    found.n = occ_suggest(&input, found.list);
    return found;
}

static struct found suggest(const char *gpu, const struct occ_launch *launch, enum occ_owner owner,
                            int64_t spills)
{
    return suggest_for(gpu, launch, (struct occ_suggest_input){.owner = owner, .spill_bytes = spills});
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

/* Predicts for two sides that differ only in the fields of the terms. */
static struct occ_prediction predict_sides(struct occ_side before, struct occ_side after)
{
    return occ_predict_sides(&occ_published_cases, &before, &after, OCC_WORK_MEMORY, OCC_OWNER_USER);
}

static void a_loss_does_not_cite_cases_of_a_gain(void **state)
{
    (void)state;
    struct occ_side before = {.busy_sms = 1, .warps = 14, .lanes = 1, .block_threads = 128, .is_free = true},
                    after = {.busy_sms = 0.75, .warps = 28, .lanes = 1, .block_threads = 90, .is_free = true};
    struct occ_prediction p = predict_sides(before, after);
    assert_true(p.ratio > 1.02 && p.part[OCC_TERM_WARPS] < -p.part[OCC_TERM_SMS]);
    assert_int_equal(p.term, OCC_TERM_SMS);
    p = predict_sides(after, before);
    assert_int_equal(p.term, OCC_TERM_SMS);
}

static void work_that_leaves_sms_is_no_promise(void **state)
{
    (void)state;
    struct occ_side before = {.busy_sms = 1, .warps = 4, .lanes = 1, .block_threads = 128},
                    after = {.busy_sms = 0.8, .warps = 28, .lanes = 1, .block_threads = 128};
    struct occ_prediction p = predict_sides(before, after);
    assert_true(p.ratio < 0.8);
    assert_false(p.is_promised);
    after.busy_sms = 1;
    assert_true(predict_sides(before, after).is_promised);
    /* lanes: no published case */
    after = before;
    before.lanes = 0.5;
    p = predict_sides(before, after);
    assert_true(p.ratio < 0.6);
    assert_false(p.is_promised);
}

static void a_tail_needs_another_grid_and_promises_nothing(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(217, 256, 128, 0), even = launch_of(216, 256, 128, 0);
    struct occ_launch few_registers = launch_of(217, 256, 64, 0);
    struct occ_prediction p = predict("a100", &launch, &even, OCC_WORK_MEMORY, 0);
    assert_true(p.ratio < 0.8);
    assert_int_equal(p.term, OCC_TERM_TAIL);
    assert_false(p.is_promised);
    p = predict("a100", &launch, &few_registers, OCC_WORK_MEMORY, 0);
    assert_true(fabs(p.part[OCC_TERM_TAIL]) < 1e-9);
}

static void small_blocks_start_at_once_below_a_wave(void **state)
{
    (void)state;
    struct occ_launch large = launch_of(108, 128, 32, 0), small = launch_of(216, 64, 32, 0);
    struct occ_prediction p = predict("a100", &large, &small, OCC_WORK_MEMORY, 0);
    assert_true(fabs(p.part[OCC_TERM_SMALL_BLOCK]) < 1e-9);
    large.grid[0] = 1u << 20;
    small.grid[0] = 1u << 21;
    p = predict("a100", &large, &small, OCC_WORK_MEMORY, 0);
    assert_true(p.part[OCC_TERM_SMALL_BLOCK] > 0.1);
}

static void an_impossible_launch_has_no_prediction(void **state)
{
    (void)state;
    struct occ_device device = device_named("a100");
    struct occ_launch good = launch_of(1, 32, 32, 0), bad = {0};
    struct occ_prediction p;
    struct occ_result result;
    assert_int_equal(occ_analyse(&device, &good, &result), OCC_OK);
    const struct occ_launch_change change = {.before = &good, .after = &bad, .result = &result};
    assert_false(occ_predict(&device, &change, &p));
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
            struct occ_result result_one, result_other;
            struct occ_launch_change change = {&one, &other,          &result_one,    -1,
                                               -1,   OCC_WORK_MEMORY, OCC_OWNER_USER, true};
            if (occ_analyse(&device, &one, &result_one) != OCC_OK ||
                occ_analyse(&device, &other, &result_other) != OCC_OK)
                continue;
            assert_true(occ_predict(&device, &change, &there));
            change.before = &other;
            change.after = &one;
            change.result = &result_other;
            assert_true(occ_predict(&device, &change, &back));
            assert_true(fabs(there.ratio * back.ratio - 1) < 1e-9);
            change.before = &one;
            change.result = &result_one;
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

static void registers_by_force_are_for_kernels_that_do_not_spill(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(1u << 20, 256, 137, 8 * KIB); /* one block: 128 for two */
    struct found found = suggest("a100", &launch, OCC_OWNER_USER, -1);
    assert_true(found.list[0].is_forced && found.list[0].prediction.is_promised);
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
    assert_null(first_of(&found, OCC_ADVICE_GRID_UP)); /* 647 more blocks, instead of one less */
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
    struct occ_launch launch = launch_of(1u << 20, 768, 40, 24 * KIB); /* two blocks per SM */
    struct found found = suggest("a100", &launch, OCC_OWNER_USER, -1);
    const struct occ_suggestion *half = first_of(&found, OCC_ADVICE_HALF_BLOCK);
    assert_non_null(half);
    assert_int_equal(half->advice.needed, 384);
    launch.dynamic_smem_bytes = 0; /* nothing to wait for */
    found = suggest("a100", &launch, OCC_OWNER_USER, -1);
    assert_null(first_of(&found, OCC_ADVICE_HALF_BLOCK));

    launch = launch_of(1u << 20, 96, 29, 0);
    found = suggest("rtx2080ti", &launch, OCC_OWNER_USER, -1);
    assert_non_null(first_of(&found, OCC_ADVICE_LARGER_BLOCK));

    launch = launch_of(1u << 20, 144, 32, 0);
    found = suggest("a100", &launch, OCC_OWNER_USER, -1);
    const struct occ_suggestion *whole = first_of(&found, OCC_ADVICE_WHOLE_WARPS);
    assert_int_equal(whole->advice.needed, 160);
    assert_false(whole->prediction.is_promised);     /* no published case */
    assert_int_equal(whole->advice.cost_amount, 96); /* 144 x 2^20 threads in blocks of 160 */
    launch = launch_of(1u << 20, 100, 29, 0);
    found = suggest("rtx2080ti", &launch, OCC_OWNER_USER, -1);
    assert_int_equal(first_of(&found, OCC_ADVICE_LARGER_BLOCK)->advice.needed, 128);
    assert_null(first_of(&found, OCC_ADVICE_WHOLE_WARPS)); /* the same size */

    launch = launch_of(520, 256, 96, 16 * KIB);
    found = suggest("a100", &launch, OCC_OWNER_USER, -1);
    assert_int_equal(first_of(&found, OCC_ADVICE_HALF_BLOCK)->advice.needed, 128);
    for (size_t i = 0; i < found.n; i++) /* the same size for another reason */
        assert_false(found.list[i].advice.kind == OCC_ADVICE_BLOCK_SIZE &&
                     found.list[i].advice.needed == 128);
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

/* 40 of 108 SMs have a block of 1024 threads: quarters reach them all. */
static void large_blocks_are_split_for_idle_sms(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(40, 1024, 32, 0);
    struct found found = suggest("a100", &launch, OCC_OWNER_USER, -1);
    const struct occ_suggestion *split = first_of(&found, OCC_ADVICE_SPLIT_BLOCK);
    assert_non_null(split);
    assert_int_equal(split->advice.needed, 256);
    assert_int_equal(split->advice.launch.grid[0], 160);
    assert_int_equal(split->advice.cost_amount, 120);
    assert_true(split->prediction.is_promised && split->prediction.term == OCC_TERM_SMS);
    launch.grid[0] = 108;
    found = suggest("a100", &launch, OCC_OWNER_USER, -1);
    assert_null(first_of(&found, OCC_ADVICE_SPLIT_BLOCK));
}

static bool promises(const struct found *found, enum occ_advice_kind kind)
{
    bool promised = false;
    for (size_t i = 0; i < found->n; i++)
        promised |= found->list[i].advice.kind == kind && found->list[i].prediction.is_promised;
    return promised;
}

static void registers_that_a_compiler_would_spill(void **state)
{
    (void)state;
    struct occ_suggest_input input = {.spill_bytes = 0};
    struct occ_launch little = launch_of(1u << 20, 256, 137, 0), much = launch_of(1u << 20, 256, 128, 0),
                      most = launch_of(1u << 20, 128, 255, 0);
    struct found found = suggest_for("a100", &little, input);
    assert_true(promises(&found, OCC_ADVICE_REGISTERS)); /* 128 are enough */
    found = suggest_for("a100", &much, input);
    assert_non_null(first_of(&found, OCC_ADVICE_REGISTERS));
    assert_false(promises(&found, OCC_ADVICE_REGISTERS)); /* 80 */
    found = suggest_for("a100", &most, input);
    assert_non_null(first_of(&found, OCC_ADVICE_REGISTERS));
    assert_false(promises(&found, OCC_ADVICE_REGISTERS));
    found = suggest_for("a100", &little, (struct occ_suggest_input){.spill_bytes = -1, .local_bytes = 32});
    assert_false(promises(&found, OCC_ADVICE_REGISTERS)); /* local memory may be spills */
    found = suggest_for("a100", &little, (struct occ_suggest_input){.spill_bytes = 0, .local_bytes = 32});
    assert_true(promises(&found, OCC_ADVICE_REGISTERS)); /* an array */
    found = suggest_for("a100", &little,
                        (struct occ_suggest_input){.spill_bytes = 0, .traits = OCC_TRAIT_TENSOR_CORES});
    assert_false(promises(&found, OCC_ADVICE_REGISTERS));

    struct occ_launch both = launch_of(1u << 20, 256, 90, 75 * KIB);
    found = suggest_for("a100", &both, input);
    const struct occ_suggestion *two = first_of(&found, OCC_ADVICE_REGISTERS_SMEM);
    assert_non_null(two);
    assert_true(two->is_forced);
}

static void few_warps_by_design_are_no_promise(void **state)
{
    (void)state;
    struct occ_launch one = launch_of(1u << 20, 128, 40, 100 * KIB); /* one block of more than half */
    struct found found = suggest_for("a100", &one, (struct occ_suggest_input){.spill_bytes = 0});
    assert_non_null(first_of(&found, OCC_ADVICE_SMEM));
    assert_false(promises(&found, OCC_ADVICE_SMEM));
    found =
        suggest_for("a100", &one, (struct occ_suggest_input){.spill_bytes = 0, .bound = OCC_WORK_LATENCY});
    assert_true(promises(&found, OCC_ADVICE_SMEM)); /* measured: warps are missing */

    struct occ_launch small = launch_of(40, 256, 64, 0);
    found = suggest_for("a100", &small, (struct occ_suggest_input){.traits = OCC_TRAIT_PERSISTENT});
    assert_null(first_of(&found, OCC_ADVICE_FILL_WAVE));
    assert_null(first_of(&found, OCC_ADVICE_FILL_SMS));
    found = suggest_for("a100", &small, (struct occ_suggest_input){.traits = 0});
    assert_non_null(first_of(&found, OCC_ADVICE_FILL_WAVE));

    struct occ_launch many = launch_of(1u << 20, 256, 48, 0); /* 40 warps */
    found = suggest_for("a100", &many, (struct occ_suggest_input){.bound = OCC_WORK_LATENCY});
    assert_false(first_of(&found, OCC_ADVICE_REGISTERS)->is_unlikely);
}

static void code_of_others_is_no_promise(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(1u << 20, 256, 137, 0), small = launch_of(40, 256, 64, 0);
    struct found found = suggest("a100", &launch, OCC_OWNER_LIBRARY, -1);
    assert_non_null(first_of(&found, OCC_ADVICE_REGISTERS));
    assert_false(promises(&found, OCC_ADVICE_REGISTERS));
    found = suggest("a100", &small, OCC_OWNER_LIBRARY, -1);
    assert_true(promises(&found, OCC_ADVICE_FILL_WAVE)); /* a larger batch */
    found = suggest("a100", &small, OCC_OWNER_FRAMEWORK, -1);
    assert_non_null(first_of(&found, OCC_ADVICE_FILL_WAVE));
    assert_false(promises(&found, OCC_ADVICE_FILL_WAVE)); /* a fused kernel is another one */
}

static void short_launches_have_little_to_gain(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(4, 256, 32, 0);
    struct found found = suggest_for("a100", &launch, (struct occ_suggest_input){.duration_ns = 0});
    assert_true(first_of(&found, OCC_ADVICE_FILL_WAVE)->prediction.ratio < 0.15);
    found = suggest_for("a100", &launch, (struct occ_suggest_input){.duration_ns = 8000});
    assert_true(fabs(first_of(&found, OCC_ADVICE_FILL_WAVE)->prediction.ratio - 0.25) < 1e-9);
    assert_true(promises(&found, OCC_ADVICE_FILL_WAVE));
    for (double duration_ns = 4000; duration_ns > 100; duration_ns /= 2) {
        found = suggest_for("a100", &launch, (struct occ_suggest_input){.duration_ns = duration_ns});
        for (size_t i = 0; i < found.n; i++) {
            const struct occ_prediction *p = &found.list[i].prediction;
            assert_false(p->is_promised);
            assert_true(p->ratio >= fmin(2000 / duration_ns, 1));
            assert_true(isnan(p->low) ? isnan(p->high) : p->low <= p->ratio && p->ratio <= p->high);
            assert_false(p->low == p->high); /* no certainty: no interval instead */
        }
    }
}

static void the_time_of_an_empty_launch_has_no_interval(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(4, 256, 32, 0);
    struct found found = suggest_for("a100", &launch, (struct occ_suggest_input){.duration_ns = 2500});
    const struct occ_prediction *p = &first_of(&found, OCC_ADVICE_FILL_WAVE)->prediction;
    assert_true(fabs(p->ratio - 0.8) < 1e-9);
    assert_true(isnan(p->low) && isnan(p->high));
}

static void room_that_nobody_needs_is_no_advice(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(1u << 20, 1024, 16, 0); /* two blocks of all warps */
    struct found found = suggest("a100", &launch, OCC_OWNER_USER, 0);
    assert_null(first_of(&found, OCC_ADVICE_FREE_REGISTERS));
    assert_null(first_of(&found, OCC_ADVICE_FREE_SMEM));
    found = suggest("a100", &launch, OCC_OWNER_USER, 8);
    assert_non_null(first_of(&found, OCC_ADVICE_FREE_REGISTERS));

    launch = launch_of(1u << 20, 256, 128, 10 * KIB); /* registers: 2 blocks; the driver gave 32 KiB */
    launch.smem_config_bytes = 32 * KIB;
    found = suggest("a100", &launch, OCC_OWNER_USER, -1);
    assert_true(first_of(&found, OCC_ADVICE_FREE_SMEM)->advice.needed > 64 * KIB);
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
            size_t count = occ_suggest(&(struct occ_suggest_input){.device = &device,
                                                                   .launch = &launch,
                                                                   .result = &result,
                                                                   .bound = OCC_WORK_MEMORY,
                                                                   .owner = OCC_OWNER_USER,
                                                                   .spill_bytes = -1,
                                                                   .has_grid = true},
                                       list);
            assert_true(count <= OCC_ADVICE_MAX);
            for (size_t k = 0; k < count; k++) {
                const struct occ_prediction *p = &list[k].prediction;
                assert_int_equal(occ_analyse(&device, &list[k].advice.launch, &then), OCC_OK);
                assert_int_equal(then.blocks_per_sm, list[k].advice.blocks_then);
                assert_true(isfinite(p->ratio) && p->low > 0 && p->low <= p->ratio && p->ratio <= p->high);
                assert_true(!p->is_promised || p->ratio <= OCC_PROMISED_RATIO);
                assert_false(k > 0 && p->is_promised && !list[k - 1].prediction.is_promised);
                assert_false(k > 0 && p->is_promised && !list[k].is_forced && list[k - 1].is_forced);
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
        cmocka_unit_test(a_loss_does_not_cite_cases_of_a_gain),
        cmocka_unit_test(work_that_leaves_sms_is_no_promise),
        cmocka_unit_test(a_tail_needs_another_grid_and_promises_nothing),
        cmocka_unit_test(small_blocks_start_at_once_below_a_wave),
        cmocka_unit_test(an_impossible_launch_has_no_prediction),
        cmocka_unit_test(the_way_back_is_the_inverse),
        cmocka_unit_test(no_promise_above_the_knee),
        cmocka_unit_test(registers_by_force_are_for_kernels_that_do_not_spill),
        cmocka_unit_test(tails_of_many_waves_are_no_advice),
        cmocka_unit_test(registers_and_memory_that_cost_no_block),
        cmocka_unit_test(blocks_of_other_sizes),
        cmocka_unit_test(a_grid_below_the_sms),
        cmocka_unit_test(large_blocks_are_split_for_idle_sms),
        cmocka_unit_test(registers_that_a_compiler_would_spill),
        cmocka_unit_test(few_warps_by_design_are_no_promise),
        cmocka_unit_test(code_of_others_is_no_promise),
        cmocka_unit_test(short_launches_have_little_to_gain),
        cmocka_unit_test(the_time_of_an_empty_launch_has_no_interval),
        cmocka_unit_test(room_that_nobody_needs_is_no_advice),
        cmocka_unit_test(random_launches_have_ordered_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
