/* Findings: order, cause, and the cheapest change for the owner of a kernel. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "explain/verdict.h"
#include "occupancy/suggest.h"

/* A kernel that runs for a second of the ten of the only GPU. */
struct world {
    struct occ_gpu_totals gpu;
    struct occ_kernel_owner owner;
    struct occ_kernel_totals kernels[4];
    struct occ_candidate candidates[4];
    struct occ_finding *findings;
    size_t n;
};

static struct occ_candidate candidate(enum occ_advice_kind kind, uint64_t now, uint64_t needed,
                                      struct occ_saving saving)
{
    return (struct occ_candidate){.kind = kind,
                                  .now = now,
                                  .needed = needed,
                                  .saving = saving,
                                  .forecast = {1 - saving.median, 0, 0, 8, 1, true, false}};
}

static struct world world_of(const char *name, unsigned cause, double loss)
{
    struct world w = {.gpu = {.window_s = 10, .busy_s = 1, .copies_s = NAN, .communication_s = NAN}};
    occ_kernel_owner(name, &w.owner);
    w.kernels[0] = (struct occ_kernel_totals){.kernel = 1, .time_s = 1, .used = 1 - loss, .waves = 4};
    w.kernels[0].part[cause] = loss;
    return w;
}

/* The findings about kernels of `n` kernels; `w` keeps its address. */
static void find(struct world *w, size_t n)
{
    struct occ_totals totals = {&w->gpu, 1, w->kernels, n};
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        w->kernels[i].owner = &w->owner;
    assert_int_equal(occ_find(&totals, &w->findings, &w->n), 0);
    for (size_t i = 0; i < w->n; i++)
        if (w->findings[i].kind == OCC_FINDING_KERNEL)
            w->findings[kept++] = w->findings[i];
    w->n = kept;
}

static void expect_change(const char *name, unsigned cause, const char *change)
{
    struct world w = world_of(name, cause, 0.5);
    find(&w, 1);
    assert_int_equal(w.n, 1);
    assert_int_equal(w.findings[0].cause, cause);
    assert_string_equal(occ_change_word(w.findings[0].change), change);
    assert_float_equal(w.findings[0].share, 0.1, 1e-12);
    assert_float_equal(w.findings[0].lost, 0.05, 1e-12);
    free(w.findings);
}

#define OWN     "my_kernel(float*)"
#define TRITON  "triton_poi_fused_add_0"
#define TORCH   "void at::native::reduce_kernel<512, 1>(int)"
#define CUBLAS  "ampere_sgemm_128x64_nn"
#define ALIGNED "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x6_tn_align4>(int)"
#define ALIGN1  "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x6_tn_align1>(int)"
#define FMHA    "fmhaSm100aKernel_QkvE4m3OBfloat16H64CausalPersistentContext"

static void test_change_depends_on_the_owner(void **state)
{
    (void)state;
    expect_change(OWN, OCC_CAUSE_REGISTERS, "launch_bounds");
    expect_change(OWN, OCC_CAUSE_CARVEOUT, "carveout");
    expect_change(OWN, OCC_CAUSE_SMALL_GRID, "tile");
    expect_change(OWN, OCC_CAUSE_TAIL, "grid");
    expect_change(TRITON, OCC_CAUSE_REGISTERS, "num_warps");
    expect_change(TRITON, OCC_CAUSE_SMEM, "num_stages");
    expect_change(TRITON, OCC_CAUSE_SMALL_GRID, "block");
    expect_change(TORCH, OCC_CAUSE_SMALL_GRID, "fuse");
    expect_change(TORCH, OCC_CAUSE_TAIL, "fuse"); /* one shape gives each of its kernels another grid */
    expect_change(CUBLAS, OCC_CAUSE_SMALL_GRID, "batch");
    expect_change(CUBLAS, OCC_CAUSE_TAIL, "shapes");
    expect_change(CUBLAS, OCC_CAUSE_REGISTERS, "algorithm");
    expect_change(ALIGN1, OCC_CAUSE_REGISTERS, "pad");
    expect_change(ALIGNED, OCC_CAUSE_REGISTERS, "leave");
    expect_change(ALIGNED, OCC_CAUSE_SMALL_GRID, "batch");
    expect_change(FMHA, OCC_CAUSE_SMALL_GRID, "leave");
}

static void test_low_by_design_is_labelled(void **state)
{
    struct world w = world_of(ALIGNED, OCC_CAUSE_REGISTERS, 0.75);
    (void)state;
    find(&w, 1);
    assert_string_equal(occ_low_reason_text(w.findings[0].low_reasons),
                        "low by design: a few warps keep the tensor cores busy");
    assert_float_equal(w.findings[0].saves.high, 0, 1e-12);
    free(w.findings);
    w = world_of(OWN, OCC_CAUSE_SMALL_GRID, 0.75);
    w.kernels[0].by_design = OCC_BY_DESIGN_PERSISTENT;
    find(&w, 1);
    assert_int_equal(w.findings[0].low_reasons, OCC_LOW_MAYBE_PERSISTENT);
    assert_int_equal(w.findings[0].change, OCC_CHANGE_TILE); /* a guess does not forbid advice */
    free(w.findings);
}

/* Tensor cores of SMs without a block are idle, whatever the other SMs need. */
static void test_tensor_cores_need_a_block_for_each_sm(void **state)
{
    struct world w = world_of(ALIGNED, OCC_CAUSE_REGISTERS, 0.75);
    (void)state;
    w.kernels[0].waves = 0.2;
    w.kernels[0].grid_per_sm = 0.6;
    find(&w, 1);
    assert_int_equal(w.findings[0].low_reasons, 0);
    assert_int_equal(w.findings[0].change, OCC_CHANGE_BATCH);
    assert_int_equal(w.findings[0].aside, OCC_ASIDE_FEW_BLOCKS);
    free(w.findings);
    w.candidates[0] = candidate(OCC_ADVICE_FILL_WAVE, 80, 660, (struct occ_saving){0.2, 0.1, 0.3, 17});
    w.kernels[0].candidates = w.candidates;
    w.kernels[0].n_candidates = 1;
    find(&w, 1);
    assert_int_equal(w.findings[0].needed, 660);
    assert_float_equal(w.findings[0].saves.median, 0.02, 1e-12);
    free(w.findings);
    w.kernels[0].grid_per_sm = 0.97; /* the last blocks would gain less than 2 % */
    find(&w, 1);
    assert_int_equal(w.findings[0].change, OCC_CHANGE_LEAVE);
    free(w.findings);
    w = world_of(FMHA, OCC_CAUSE_REGISTERS, 0.75); /* a persistent kernel's grid is chosen */
    w.kernels[0].grid_per_sm = 0.6;
    find(&w, 1);
    assert_int_equal(w.findings[0].change, OCC_CHANGE_LEAVE);
    free(w.findings);
}

/* No change of a kernel makes a launch faster than a launch without work; fewer launches do. */
static void test_shortest_launches_are_fused(void **state)
{
    static const char *const names[] = {OWN, TRITON, TORCH, CUBLAS, ALIGN1, ALIGNED};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct world w = world_of(names[i], OCC_CAUSE_SMALL_GRID, 0.99);
        w.candidates[0] = candidate(OCC_ADVICE_SPLIT_BLOCK, 128, 64, (struct occ_saving){0, 0, 0, 17});
        w.kernels[0].candidates = w.candidates;
        w.kernels[0].n_candidates = 1;
        w.kernels[0].launches = 550000; /* of 1.8 us */
        find(&w, 1);
        assert_int_equal(w.findings[0].change, OCC_CHANGE_FUSE);
        assert_int_equal(w.findings[0].aside, OCC_ASIDE_LAUNCH_TIME);
        assert_int_equal(w.findings[0].advice, OCC_ADVICE_COUNT);
        assert_true(isnan(w.findings[0].saves.median));
        free(w.findings);
        w.kernels[0].launches = 400000; /* of 2.5 us */
        find(&w, 1);
        assert_int_not_equal(w.findings[0].aside, OCC_ASIDE_LAUNCH_TIME);
        free(w.findings);
    }
}

/* The list has no advice about the tail of many waves, and neither has the finding. */
static void test_tail_of_many_waves_has_no_change(void **state)
{
    static const char *const names[] = {OWN, TRITON, TORCH, CUBLAS};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct world w = world_of(names[i], OCC_CAUSE_TAIL, 0.06);
        w.kernels[0].waves = 8.5;
        find(&w, 1);
        assert_int_equal(w.findings[0].change, OCC_CHANGE_NONE);
        free(w.findings);
    }
}

/* Fewer registers gain nothing while the blocks do not fill a wave. */
static void test_no_register_advice_below_a_wave(void **state)
{
    struct world w = world_of(OWN, OCC_CAUSE_REGISTERS, 0.5);
    (void)state;
    w.kernels[0].waves = 0.3;
    w.candidates[0] = candidate(OCC_ADVICE_REGISTERS, 64, 40, (struct occ_saving){0.3, 0.2, 0.4, 9});
    w.candidates[1] = candidate(OCC_ADVICE_FILL_WAVE, 64, 660, (struct occ_saving){0.1, 0.0, 0.2, 9});
    w.kernels[0].candidates = w.candidates;
    w.kernels[0].n_candidates = 1;
    find(&w, 1);
    assert_int_equal(w.findings[0].change, OCC_CHANGE_TILE);
    assert_true(isnan(w.findings[0].saves.median));
    free(w.findings);
    w.kernels[0].n_candidates = 2;
    find(&w, 1);
    assert_int_equal(w.findings[0].advice, OCC_ADVICE_FILL_WAVE);
    assert_int_equal(w.findings[0].needed, 660);
    assert_float_equal(w.findings[0].saves.median, 0.01, 1e-12);
    free(w.findings);
}

/* The cheapest of changes with similar savings wins: attribute, launch parameter, compiler, code. */
static void test_cheapest_change_wins_a_tie(void **state)
{
    struct world w = world_of(OWN, OCC_CAUSE_SMEM, 0.5);
    (void)state;
    w.candidates[0] = candidate(OCC_ADVICE_SMEM, 8192, 3072, (struct occ_saving){0.30, 0.2, 0.4, 9});
    w.candidates[1] = candidate(OCC_ADVICE_BLOCK_SIZE, 256, 128, (struct occ_saving){0.29, 0.2, 0.4, 9});
    w.candidates[2] = candidate(OCC_ADVICE_CARVEOUT, 32768, 65536, (struct occ_saving){0.28, 0.2, 0.4, 9});
    w.candidates[3] = candidate(OCC_ADVICE_REGISTERS, 64, 40, (struct occ_saving){0.40, 0.2, 0.5, 9});
    w.kernels[0].candidates = w.candidates;
    w.kernels[0].n_candidates = 3;
    find(&w, 1);
    assert_int_equal(w.findings[0].change, OCC_CHANGE_CARVEOUT);
    free(w.findings);
    w.kernels[0].n_candidates = 4; /* saves a third more */
    find(&w, 1);
    assert_int_equal(w.findings[0].change, OCC_CHANGE_LAUNCH_BOUNDS);
    free(w.findings);
}

/* Among changes without a promise, differences below the smallest promise do not choose: a size that divides
 * the present one does, then the list's order. */
static void test_noise_does_not_choose(void **state)
{
    static const uint64_t sizes[] = {192, 256, 384, 512};
    struct world w = world_of(OWN, OCC_CAUSE_BLOCK_SIZE, 0.33);
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        double median = sizes[i] % 192 == 0 ? 0.009 : 0.001 * (double)i;
        w.candidates[i] =
            candidate(OCC_ADVICE_BLOCK_SIZE, 1024, sizes[i], (struct occ_saving){median, 0, 0.3, 54});
        w.candidates[i].forecast.is_promised = false;
    }
    w.kernels[0].candidates = w.candidates;
    w.kernels[0].n_candidates = 4;
    find(&w, 1);
    assert_int_equal(w.findings[0].needed, 256);
    free(w.findings);
    w.candidates[2].saving.median = 0.05;
    find(&w, 1);
    assert_int_equal(w.findings[0].needed, 384);
    free(w.findings);
}

/* The finding has the prediction of its change, and a joined finding that of its first configuration. */
static void test_finding_has_the_prediction(void **state)
{
    struct world w = world_of(OWN, OCC_CAUSE_REGISTERS, 0.5);
    (void)state;
    find(&w, 1);
    assert_true(isnan(w.findings[0].forecast.ratio));
    free(w.findings);
    w.candidates[0] = candidate(OCC_ADVICE_REGISTERS, 64, 40, (struct occ_saving){0.3, 0.2, 0.4, 9});
    w.kernels[0].candidates = w.candidates;
    w.kernels[0].n_candidates = 1;
    w.kernels[1] = w.kernels[0];
    w.kernels[1].used = 0.4;
    w.kernels[1].n_candidates = 1;
    find(&w, 2);
    assert_int_equal(w.n, 1);
    assert_float_equal(w.findings[0].forecast.ratio, 0.7, 1e-12);
    assert_int_equal(w.findings[0].forecast.faster, 8);
    assert_true(w.findings[0].forecast.is_promised);
    free(w.findings);
    w = world_of("ampere_sgemm_128x64_tn", OCC_CAUSE_REGISTERS, 0.5);
    w.candidates[0] = candidate(OCC_ADVICE_REGISTERS, 64, 40, (struct occ_saving){0, 0, 0.4, 9});
    w.candidates[0].forecast.is_promised = false;
    w.kernels[0].candidates = w.candidates;
    w.kernels[0].n_candidates = 1;
    find(&w, 1);
    assert_int_equal(w.findings[0].change, OCC_CHANGE_ALGORITHM); /* another kernel than the predicted one */
    assert_true(isnan(w.findings[0].forecast.ratio));
    free(w.findings);
}

/* A change that is unlikely to help is no finding's change. */
static void test_unlikely_change_is_left_out(void **state)
{
    struct world w = world_of(OWN, OCC_CAUSE_TAIL, 0.5);
    (void)state;
    w.candidates[0] = candidate(OCC_ADVICE_LARGER_BLOCK, 100, 128, (struct occ_saving){0, 0, 0.7, 0});
    w.candidates[0].forecast.is_unlikely = true;
    w.kernels[0].candidates = w.candidates;
    w.kernels[0].n_candidates = 1;
    find(&w, 1);
    assert_int_equal(w.findings[0].advice, OCC_ADVICE_COUNT);
    assert_true(isnan(w.findings[0].forecast.ratio));
    free(w.findings);
}

/* More warps do not help a kernel that already uses a unit's throughput. */
static void test_busy_kernel_needs_no_change(void **state)
{
    struct world w = world_of(OWN, OCC_CAUSE_REGISTERS, 0.5);
    (void)state;
    w.kernels[0].is_throughput_bound = true;
    find(&w, 1);
    assert_int_equal(w.findings[0].change, OCC_CHANGE_BUSY);
    assert_float_equal(w.findings[0].saves.high, 0, 1e-12);
    free(w.findings);
}

static void test_order_by_predicted_saving(void **state)
{
    struct world w = world_of(OWN, OCC_CAUSE_TAIL, 0.9);
    (void)state;
    w.gpu.busy_s = 4;
    w.kernels[1] = w.kernels[2] = w.kernels[3] = w.kernels[0];
    for (int64_t i = 0; i < 4; i++)
        w.kernels[i].kernel = i + 1;
    w.candidates[0] = candidate(OCC_ADVICE_GRID_UP, 1, 2, (struct occ_saving){0.05, 0, 0.1, 12});
    w.candidates[1] = candidate(OCC_ADVICE_GRID_UP, 1, 2, (struct occ_saving){0.6, 0.5, 0.7, 12});
    w.candidates[2] = candidate(OCC_ADVICE_GRID_UP, 1, 2, (struct occ_saving){NAN, 0, 0.4, 0});
    for (size_t i = 0; i < 3; i++) {
        w.kernels[i].candidates = &w.candidates[i];
        w.kernels[i].n_candidates = 1;
    }
    find(&w, 4); /* the last one has no prediction: half of its loss */
    assert_int_equal(w.n, 4);
    assert_int_equal(w.findings[0].kernel, 1);
    assert_int_equal(w.findings[1].kernel, 3);
    assert_int_equal(w.findings[2].kernel, 2);
    assert_int_equal(w.findings[3].kernel, 0);
    free(w.findings);
}

/* The saving of the same kernel with fewer registers is none of another kernel: the larger loss is first. */
static void test_other_kernel_has_no_saving(void **state)
{
    struct world w = world_of(CUBLAS, OCC_CAUSE_REGISTERS, 0.8);
    (void)state;
    w.kernels[1] = world_of(CUBLAS, OCC_CAUSE_REGISTERS, 0.5).kernels[0];
    w.kernels[1].kernel = 2;
    w.candidates[0] = candidate(OCC_ADVICE_REGISTERS, 64, 40, (struct occ_saving){0, 0, 0.4, 9});
    w.candidates[0].forecast.is_promised = false;
    w.kernels[0].candidates = w.candidates;
    w.kernels[0].n_candidates = 1;
    find(&w, 2);
    assert_int_equal(w.n, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(w.findings[i].kernel, i);
        assert_int_equal(w.findings[i].change, OCC_CHANGE_ALGORITHM);
        assert_true(isnan(w.findings[i].saves.median));
        assert_true(isnan(w.findings[i].saves.high));
    }
    free(w.findings);
}

static void test_configurations_of_a_kernel_are_one_subject(void **state)
{
    struct world w = world_of(OWN, OCC_CAUSE_TAIL, 0.4);
    (void)state;
    w.kernels[1] = w.kernels[0];
    w.kernels[1].part[OCC_CAUSE_TAIL] = 0.8;
    w.kernels[1].used = 0.2;
    w.kernels[1].measured_ratio = 1;
    find(&w, 2);
    assert_int_equal(w.n, 1);
    assert_int_equal(w.findings[0].kernel, 1); /* it loses more */
    assert_float_equal(w.findings[0].share, 0.1, 1e-12);
    assert_float_equal(w.findings[0].lost, 0.06, 1e-12);
    assert_float_equal(w.findings[0].measured_ratio, 0.5, 1e-12);
    assert_string_equal(occ_confidence_word(w.findings[0].confidence), "measured");
    free(w.findings);
}

static void test_idle_time_and_communication(void **state)
{
    struct occ_gpu_totals gpu = {
        .window_s = 10, .busy_s = 2, .launch_wait_s = 7, .copies_s = NAN, .communication_s = NAN};
    struct occ_kernel_owner nccl;
    struct occ_kernel_totals kernels[2] = {{.kernel = 1, .time_s = 1, .used = 0.999, .waves = 2},
                                           {.kernel = 2, .time_s = 1, .used = 0.1, .waves = 0.5}};
    struct occ_totals totals = {&gpu, 1, kernels, 2};
    struct occ_finding *findings = NULL;
    size_t n = 0;
    (void)state;
    occ_kernel_owner("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(int)", &nccl);
    kernels[1].owner = &nccl;
    assert_int_equal(occ_find(&totals, &findings, &n), 0);
    assert_int_equal(n, 3); /* the kernel loses less than the minimum */
    assert_int_equal(findings[0].kind, OCC_FINDING_LAUNCH_WAIT);
    assert_int_equal(findings[0].change, OCC_CHANGE_CUDA_GRAPHS);
    assert_float_equal(findings[0].saves.high, 0.7, 1e-12);
    assert_int_equal(findings[1].kind, OCC_FINDING_PAUSE);
    assert_int_equal(findings[2].kind, OCC_FINDING_COMMUNICATION);
    assert_int_equal(findings[2].kernel, 1);
    assert_int_equal(findings[2].change, OCC_CHANGE_OVERLAP);
    assert_string_equal(occ_low_reason_text(findings[2].low_reasons), "low by design: communication");
    free(findings);
}

static void test_simulated_is_never_measured(void **state)
{
    struct world w = world_of(OWN, OCC_CAUSE_TAIL, 0.4);
    (void)state;
    w.kernels[0].simulated = true;
    w.kernels[0].measured_ratio = 1;
    find(&w, 1);
    assert_string_equal(occ_confidence_word(w.findings[0].confidence), "simulated");
    free(w.findings);
}

/* The prediction of a configuration does not apply to the others. */
static void test_other_configurations_save_nothing_known(void **state)
{
    struct world w = world_of(OWN, OCC_CAUSE_REGISTERS, 0.5);
    (void)state;
    w.candidates[0] = candidate(OCC_ADVICE_REGISTERS, 64, 40, (struct occ_saving){0.3, 0.2, 0.4, 9});
    w.kernels[0].candidates = w.candidates;
    w.kernels[0].n_candidates = 1;
    w.kernels[0].rest_ratio = 0.6;
    find(&w, 1);
    assert_true(fabs(w.findings[0].saves.median - 0.1 * 0.4 * 0.3) < 1e-12);
    assert_true(fabs(w.findings[0].saves.low - 0.1 * 0.4 * 0.2) < 1e-12);
    assert_true(fabs(w.findings[0].saves.high - 0.1 * 0.4) < 1e-12);
    free(w.findings);
}

/* A kernel without empty warp slots has a change only with a promised gain, which is not about a loss. */
static void test_full_kernel_needs_no_change(void **state)
{
    struct occ_totals totals;
    struct world w = world_of(OWN, OCC_CAUSE_REGISTERS, 0);
    struct occ_finding finding;
    (void)state;
    w.candidates[0] = candidate(OCC_ADVICE_LARGER_BLOCK, 64, 128, (struct occ_saving){0.1, 0, 0.2, 9});
    w.kernels[0].owner = &w.owner;
    w.kernels[0].candidates = w.candidates;
    w.kernels[0].n_candidates = 1;
    totals = (struct occ_totals){&w.gpu, 1, w.kernels, 1};
    finding = occ_judge(&totals, 0, 0.1);
    assert_int_equal(finding.change, OCC_CHANGE_BLOCK_SIZE);
    assert_int_equal(finding.aside, OCC_ASIDE_NO_LOSS);
    w.candidates[0].forecast.is_promised = false;
    finding = occ_judge(&totals, 0, 0.1);
    assert_int_equal(finding.change, OCC_CHANGE_NONE);
    assert_int_equal(finding.aside, OCC_ASIDE_NONE);
}

/* The parameter of the change for the cause is known without a prediction. */
static void test_cause_without_prediction_has_its_parameter(void **state)
{
    struct world w = world_of(OWN, OCC_CAUSE_CARVEOUT, 0.5);
    (void)state;
    w.candidates[0] = candidate(OCC_ADVICE_CARVEOUT, 65536, 167936, (struct occ_saving){0.1, 0, 0.2, 9});
    w.candidates[0].forecast.is_unlikely = true;
    w.kernels[0].candidates = w.candidates;
    w.kernels[0].n_candidates = 1;
    find(&w, 1);
    assert_int_equal(w.findings[0].change, OCC_CHANGE_CARVEOUT);
    assert_int_equal(w.findings[0].advice, OCC_ADVICE_CARVEOUT);
    assert_int_equal(w.findings[0].needed, 167936);
    assert_true(isnan(w.findings[0].forecast.ratio));
    free(w.findings);
}

/* ---- causes and changes of many kernels ---- */

/* Checks that the change is about the cause, or says why not. Returns the relation. */
static enum occ_aside check_relation(const struct world *w, unsigned cause)
{
    const struct occ_totals totals = {&w->gpu, 1, w->kernels, 1};
    const struct occ_finding f = occ_judge(&totals, 0, 0.1);
    bool is_of_launch = cause <= OCC_CAUSE_SMALL_GRID, is_small = w->kernels[0].waves < 1;
    bool has_parameter = f.advice < OCC_ADVICE_COUNT;
    assert_int_equal(f.cause, cause);
    assert_true(f.aside < OCC_ASIDE_COUNT);
    assert_false(has_parameter && occ_advice_is_per_sm(f.advice) && is_small);
    if (has_parameter)
        assert_int_equal(f.aside == OCC_ASIDE_NONE, occ_advice_is_about(f.advice, cause));
    if (f.aside == OCC_ASIDE_FEW_BLOCKS)
        assert_true(is_of_launch && is_small);
    assert_int_equal(strlen(occ_aside_text(f.aside)) > 0, f.aside != OCC_ASIDE_NONE);
    return f.aside;
}

/* All pairs of a cause and two changes, for each owner, with a small and a large grid. */
static void test_change_is_about_the_cause_or_says_why_not(void **state)
{
    static const char *const names[] = {OWN, TRITON, TORCH, CUBLAS, ALIGN1};
    unsigned seen = 0;
    (void)state;
    for (size_t name = 0; name < sizeof names / sizeof *names; name++)
        for (unsigned cause = 0; cause < OCC_PART_COUNT; cause++)
            for (unsigned pair = 0; pair < 2 * OCC_ADVICE_COUNT * OCC_ADVICE_COUNT; pair++) {
                if (cause == OCC_CAUSE_PARTIAL_WARP) /* never the largest part */
                    continue;
                struct world w = world_of(names[name], cause, 0.5);
                unsigned a = pair / 2 % OCC_ADVICE_COUNT, b = pair / 2 / OCC_ADVICE_COUNT;
                w.candidates[0] =
                    candidate((enum occ_advice_kind)a, 1, 2, (struct occ_saving){0.3, 0, 0.4, 9});
                w.candidates[1] =
                    candidate((enum occ_advice_kind)b, 1, 2, (struct occ_saving){0.2, 0, 0.4, 9});
                w.kernels[0].owner = &w.owner;
                w.kernels[0].waves = pair % 2 ? 0.8 : 4;
                w.kernels[0].candidates = w.candidates;
                w.kernels[0].n_candidates = 2;
                seen |= 1u << check_relation(&w, cause);
            }
    assert_int_equal(seen | 1u << OCC_ASIDE_NO_LOSS | 1u << OCC_ASIDE_LAUNCH_TIME,
                     (1u << OCC_ASIDE_COUNT) - 1);
}

/* A grid below a wave is named before resources. */
static void test_why_names_few_blocks_first(void **state)
{
    char text[OCC_WHY_BYTES];
    struct occ_why why = {.cause = OCC_CAUSE_REGISTERS,
                          .grid_blocks = 200,
                          .wave_blocks = 264,
                          .sm_count = 132,
                          .registers_per_thread = 128};
    (void)state;
    assert_string_equal(occ_why_text(&why, text, sizeof text), "200 of 264 blocks");
    why.grid_blocks = 264;
    assert_string_equal(occ_why_text(&why, text, sizeof text), "128 registers");
}

/* Every kind has an answer, and a text. */
static void test_tables_are_complete(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < OCC_ADVICE_COUNT; kind++)
        for (unsigned owner = 0; owner < OCC_OWNERS; owner++) {
            enum occ_owner_change change = occ_change_for((enum occ_owner)owner, (enum occ_advice_kind)kind);
            assert_true(change < OCC_CHANGE_COUNT);
            assert_true(strlen(occ_change_text(change)) > 0);
            assert_true(occ_change_effort(change) < OCC_EFFORTS);
            if (owner == OCC_OWNER_USER)
                assert_int_not_equal(change, OCC_CHANGE_NONE);
        }
    for (unsigned kind = 0; kind < OCC_FINDING_KINDS; kind++)
        assert_true(strlen(occ_finding_text((enum occ_finding_kind)kind)) > 0);
    assert_string_equal(occ_low_reason_text(0), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_change_depends_on_the_owner),
        cmocka_unit_test(test_low_by_design_is_labelled),
        cmocka_unit_test(test_tensor_cores_need_a_block_for_each_sm),
        cmocka_unit_test(test_shortest_launches_are_fused),
        cmocka_unit_test(test_tail_of_many_waves_has_no_change),
        cmocka_unit_test(test_no_register_advice_below_a_wave),
        cmocka_unit_test(test_cheapest_change_wins_a_tie),
        cmocka_unit_test(test_order_by_predicted_saving),
        cmocka_unit_test(test_noise_does_not_choose),
        cmocka_unit_test(test_finding_has_the_prediction),
        cmocka_unit_test(test_unlikely_change_is_left_out),
        cmocka_unit_test(test_busy_kernel_needs_no_change),
        cmocka_unit_test(test_other_kernel_has_no_saving),
        cmocka_unit_test(test_configurations_of_a_kernel_are_one_subject),
        cmocka_unit_test(test_idle_time_and_communication),
        cmocka_unit_test(test_simulated_is_never_measured),
        cmocka_unit_test(test_other_configurations_save_nothing_known),
        cmocka_unit_test(test_full_kernel_needs_no_change),
        cmocka_unit_test(test_cause_without_prediction_has_its_parameter),
        cmocka_unit_test(test_change_is_about_the_cause_or_says_why_not),
        cmocka_unit_test(test_why_names_few_blocks_first),
        cmocka_unit_test(test_tables_are_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
