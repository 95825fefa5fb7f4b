/*
 * Measures how many times a second one core runs the model (target: 10 million), gives advice, and draws a
 * point of a curve, over different possible launches on devices from Kepler to Blackwell. Prints medians of
 * several rounds as a JSON object.
 */
#include "bench_report.h"

#include "occupancy/advice.h"
#include "occupancy/sweep.h"

#define SUBJECTS           4096
#define ROUNDS             9
#define EVALUATIONS        2000000
#define ADVISED            20000
#define CURVES             200
#define TARGET_EVALUATIONS 10e6

struct subject {
    struct occ_device device;
    struct occ_launch launch;
    struct occ_result result;
};

static struct subject subjects[SUBJECTS];
static volatile double sink;

/* xorshift64*: seeded, the same launches every time */
static uint32_t below(uint32_t bound)
{
    static uint64_t state = 0x6f63636265;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 0x2545F4914F6CDD1Dull >> 32) * bound >> 32);
}

static struct occ_launch random_launch(const struct occ_device *device)
{
    bool cluster = device->max_cluster_size > 1 && below(4) == 0;
    return (struct occ_launch){
        .grid = {(1 + below(100000)) * 2, 1 + below(4), 1},
        .block = {32 * (1 + below(32)), 1, 1},
        .cluster = {cluster ? 2 : 0, 0, 0},
        .registers_per_thread = 16 + below(112),
        .static_smem_bytes = below(2) * below(16384),
        .dynamic_smem_bytes = below(2) * below(32768),
        .carveout_percent = (int32_t)below(102) - 1,
        .barriers = below(4),
    };
}

static void make_subjects(void)
{
    static const char *const names[] = {"k40", "v100", "t4", "a100", "rtx3090", "h200", "b200", "rtx5090"};
    for (size_t i = 0; i < SUBJECTS;) {
        struct subject *subject = &subjects[i];
        if (occ_device_from_name(names[i % (sizeof names / sizeof *names)], &subject->device) != OCC_OK)
            exit(EXIT_FAILURE);
        subject->launch = random_launch(&subject->device);
        i += occ_analyse(&subject->device, &subject->launch, &subject->result) == OCC_OK;
    }
}

static double evaluate(void)
{
    double sum = 0, started = bench_now_ns();
    for (size_t i = 0; i < EVALUATIONS; i++) {
        const struct subject *subject = &subjects[i % SUBJECTS];
        struct occ_result result;
        (void)occ_analyse(&subject->device, &subject->launch, &result);
        sum += result.expected_elapsed_low;
    }
    sink = sum;
    return EVALUATIONS * 1e9 / (bench_now_ns() - started);
}

static double advise(void)
{
    struct occ_advice advice[OCC_ADVICE_MAX];
    double sum = 0, started = bench_now_ns();
    for (size_t i = 0; i < ADVISED; i++) {
        const struct subject *subject = &subjects[i % SUBJECTS];
        sum +=
            (double)occ_advise(&subject->device, &subject->launch, &subject->result, advice, OCC_ADVICE_MAX);
    }
    sink = sum;
    return ADVISED * 1e9 / (bench_now_ns() - started);
}

static double sweep(void)
{
    static struct occ_point points[4096];
    double made = 0, started = bench_now_ns();
    for (size_t i = 0; i < CURVES; i++) {
        const struct subject *subject = &subjects[i];
        for (int axis = 0; axis < OCC_AXIS_COUNT; axis++) {
            struct occ_range range;
            if (occ_sweep_range(&subject->device, (enum occ_axis)axis, &range))
                made += (double)occ_sweep(&subject->device, &subject->launch, (enum occ_axis)axis, &range,
                                          points, sizeof points / sizeof *points);
        }
    }
    return made * 1e9 / (bench_now_ns() - started);
}

static double median_of(double (*measure)(void))
{
    double values[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        values[i] = measure();
    return bench_median(values, ROUNDS);
}

int main(void)
{
    make_subjects();
    double evaluations = median_of(evaluate);
    (void)printf("{\n  \"benchmark\": \"occupancy\",\n");
    (void)printf(
        "  \"evaluations_per_second\": %.0f, \"target_evaluations_per_second\": %.0f, \"met\": %s,\n",
        evaluations, TARGET_EVALUATIONS, evaluations >= TARGET_EVALUATIONS ? "true" : "false");
    (void)printf("  \"advised_launches_per_second\": %.0f, \"curve_points_per_second\": %.0f,\n",
                 median_of(advise), median_of(sweep));
    bench_print_machine();
    (void)printf("\n}\n");
    return EXIT_SUCCESS;
}
