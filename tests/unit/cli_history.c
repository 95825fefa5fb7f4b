/*
 * cli_history FILE [measured|paused]: writes a small history through the store, always the same content:
 * three runs on two devices (one simulated), kernels with different limiting resources, one kernel name with
 * terminal escapes, one launch configuration that the model rejects. "measured" adds counter values for some
 * launches, "paused" five seconds of the second run without recording. tests/data/cli has occq's expected
 * output for both.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "occupancy/occupancy.h"
#include "store/store.h"

#define START_NS INT64_C(1700000000000000000) /* 2023-11-14 22:13:20 UTC */
#define MS       INT64_C(1000000)

struct history {
    struct occ_store *store;
    struct occ_error err;
    int64_t runs[3], devices[2], kernels[5], shapes[6];
};

static uint64_t fnv1a(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

static int put_runs(struct history *h)
{
    struct occ_run runs[] = {
        {.uuid = {1},
         .pid = 1001,
         .uid = 1000,
         .start_ns = START_NS,
         .end_ns = START_NS + 90000 * MS,
         .hostname = "node1",
         .exe = "/opt/app/bin/train",
         .cmdline = "train --batch 64",
         .user = "ada",
         .label = "batch 64",
         .session = "000102030405060708090a0b0c0d0e0f",
         .level = "trace",
         .level_reason = "no hardware counters",
         .cupti = {.version = 24,
                   .path = "/usr/local/cuda/lib64/libcupti.so.12",
                   .note = "copies are traced"},
         .simulated = true},
        {.uuid = {2},
         .pid = 1002,
         .uid = 1000,
         .start_ns = START_NS + 3600 * 1000 * MS,
         .hostname = "node1",
         .exe = "/opt/app/bin/serve",
         .cmdline = "serve",
         .user = "ada",
         .job = {.slurm_job = "4713",
                 .slurm_account = "phys",
                 .slurm_partition = "gpu",
                 .slurm_qos = "normal",
                 .slurm_array_job = "4711",
                 .slurm_array_task = "2",
                 .trust = "kernel"},
         .level = "trace"},
        {.uuid = {3},
         .pid = 1003,
         .uid = 0,
         .start_ns = START_NS + 7200 * 1000 * MS,
         .end_ns = START_NS + 7201 * 1000 * MS,
         .hostname = "node1",
         .exe = "/bin/\033[2Jls",
         .cmdline = "ls, \"really\"",
         .user = "root",
         .level = "nothing",
         .level_reason = "no CUDA driver: libcuda.so.1 cannot be loaded"},
    };
    int status = 0;
    for (size_t i = 0; i < 3 && status == 0; i++)
        status = occ_store_put_run(h->store, &runs[i], &h->runs[i], &h->err);
    return status;
}

static int put_weakness(struct history *h)
{
    const struct occ_loss losses[] = {{"ring_full", 12}, {"bad_times", 3}};
    const struct occ_cost_total costs[] = {{"helper_cpu_ns", 5 * (uint64_t)MS},
                                           {"process_cpu_ns", 1000 * (uint64_t)MS}};
    int status = occ_store_put_losses(h->store, h->runs[0], losses, 2, &h->err);
    return status == 0 ? occ_store_put_costs(h->store, h->runs[0], costs, 2, &h->err) : status;
}

static int put_devices(struct history *h)
{
    struct occ_store_device devices[] = {
        {.uuid = {0xa1}, .name = "NVIDIA A100-SXM4-40GB (simulated)", .simulated = true},
        {.uuid = {0x14}, .name = "Tesla T4"},
    };
    int status = 0;
    devices[0].limits = (struct occ_device){.cc = 80, .sm_count = 108};
    devices[1].limits = (struct occ_device){.cc = 75, .sm_count = 40};
    for (size_t i = 0; i < 2 && status == 0; i++)
        status = occ_store_put_device(h->store, &devices[i], &h->devices[i], &h->err);
    return status;
}

static int put_kernels(struct history *h)
{
    static const char *const names[] = {
        "_Z4gemmIfLi128EEvPKT_S2_PS0_iii", "_Z7softmaxPfi", "_ZN4attn4tinyEPf",
        "evil\033[31m\n,\"name\"\xff",     "_Z8too_manyv",
    };
    int status = 0;
    for (size_t i = 0; i < 5 && status == 0; i++)
        status = occ_store_put_kernel(h->store, names[i], fnv1a(names[i]), &h->kernels[i], &h->err);
    return status;
}

static struct occ_launch launch(uint32_t grid, uint32_t block, uint32_t registers, uint32_t smem)
{
    return (struct occ_launch){.grid = {grid, 1, 1},
                               .block = {block, 1, 1},
                               .cluster = {1, 1, 1},
                               .registers_per_thread = registers,
                               .dynamic_smem_bytes = smem,
                               .carveout_percent = -1};
}

static int put_shapes(struct history *h)
{
    const struct {
        int kernel, device;
        struct occ_launch launch;
    } shapes[] = {
        {0, 0, launch(520, 256, 96, 16384)},  /* registers, partial last wave */
        {0, 0, launch(108, 128, 255, 81920)}, /* one block per SM with most of the shared memory */
        {1, 0, launch(8640, 1024, 32, 0)},    /* full */
        {2, 1, launch(12, 64, 24, 0)},        /* far too few blocks */
        {3, 1, launch(400, 100, 40, 0)},      /* missing threads in the last warp */
        {4, 1, launch(10, 1024, 255, 0)},     /* cannot run: too many registers */
    };
    int status = 0;
    for (size_t i = 0; i < 6 && status == 0; i++) {
        struct occ_launch_config shape = {.kernel = h->kernels[shapes[i].kernel],
                                          .device = h->devices[shapes[i].device],
                                          .launch = shapes[i].launch};
        status = occ_store_put_config(h->store, &shape, &h->shapes[i], &h->err);
    }
    return status;
}

/* Stores `n` launches of a configuration, one every 10 ms; each lasts 1 % of `duration_ns` longer than the
 * previous one. */
static int put_launches(struct history *h, int run, int device, int shape, int64_t first_ns,
                        uint64_t duration_ns, uint32_t n)
{
    int status = 0;
    for (uint32_t i = 0; i < n && status == 0; i++) {
        const struct occ_store_launch one = {.start_ns = first_ns + i * 10 * MS,
                                             .duration_ns = duration_ns + i * duration_ns / 100,
                                             .config = (uint32_t)h->shapes[shape],
                                             .stream = 7,
                                             .correlation = (uint32_t)shape * 1000 + i,
                                             .context = 1};
        status = occ_store_append(h->store, h->runs[run], h->devices[device], &one, 1, &h->err);
    }
    return status;
}

static int put_all_launches(struct history *h)
{
    const int64_t later = START_NS + 3600 * 1000 * MS;
    int status = put_launches(h, 0, 0, 0, START_NS + MS, 2000000, 100);
    status = status ? status : put_launches(h, 0, 0, 1, START_NS + 2 * MS, 500000, 50);
    status = status ? status : put_launches(h, 0, 0, 2, START_NS + 3 * MS, 100000, 200);
    status = status ? status : put_launches(h, 1, 1, 3, later + MS, 3000, 1000);
    status = status ? status : put_launches(h, 1, 1, 4, later + 2 * MS, 40000, 30);
    return status ? status : put_launches(h, 1, 1, 5, later + 3 * MS, 10000, 3);
}

/* ---- counter values ---- */

/* Number of values of launches with an estimate of their own (not only of their group). */
enum { OWN_VALUES = OCC_MEASURED_group_achieved };
enum { UTILIZATION_VALUES = OCC_MEASURED_VALUE_COUNT - OCC_MEASURED_issue_active };

/* Counts of launches with values, and the values in the order of OCC_MEASURED_VALUES; NAN: not measured. */
struct seen {
    int run, shape, minute; /* minutes after the run's start */
    uint64_t direct, regression, grouped, overlapped;
    double ns, value[OWN_VALUES];
    double utilization[UTILIZATION_VALUES]; /* the first is 0: not measured */
};

static void put_value(struct occ_measured_sums *sums, enum occ_measured_value which, double value, double ns)
{
    if (isnan(value))
        return;
    sums->sum[which] = value * ns;
    sums->ns[which] = ns;
}

static int put_seen(struct history *h, const struct seen *seen)
{
    struct occ_measured_sums sums = {.direct = seen->direct,
                                     .regression = seen->regression,
                                     .grouped = seen->grouped,
                                     .overlapped = seen->overlapped};
    int64_t start_ns = START_NS + seen->run * 3600 * 1000 * MS;
    for (int i = 0; i < OWN_VALUES && !seen->grouped; i++)
        put_value(&sums, (enum occ_measured_value)i, seen->value[i], seen->ns);
    for (int i = 0; i < UTILIZATION_VALUES && seen->utilization[0] > 0; i++)
        put_value(&sums, (enum occ_measured_value)(OCC_MEASURED_issue_active + i), seen->utilization[i],
                  seen->ns);
    if (seen->grouped) {
        put_value(&sums, OCC_MEASURED_group_achieved, seen->value[OCC_MEASURED_achieved], seen->ns);
        put_value(&sums, OCC_MEASURED_group_elapsed, seen->value[OCC_MEASURED_elapsed], seen->ns);
        put_value(&sums, OCC_MEASURED_group_elapsed_error, seen->value[OCC_MEASURED_elapsed_error], seen->ns);
    }
    return occ_store_add_measured(h->store, start_ns / (60000 * MS) + seen->minute, h->runs[seen->run],
                                  (uint32_t)h->shapes[seen->shape], &sums, &h->err);
}

/* Stores achieved +-, elapsed +-, variance inflation, SM active, blocks, imbalance, stalls: registers, shared
 * memory, blocks, warps, barriers; issue active +-, DRAM, L2, L1, tensor cores, +-. softmax has no values. */
static int put_all_seen(struct history *h)
{
    const struct seen all[] = {
        /* read directly, all values known; the hardware stalls on another resource than the model expects */
        {0,
         0,
         0,
         60,
         0,
         0,
         6,
         180e6,
         {0.15, 0.004, 0.125, 0.005, 1, 0.8333333333333334, 1.4, 0.12, 0.05, 0.31, 0, 0.02, 0},
         {0.22, 0.01, 0.31, 0.12, 0.45, 0, 0.02}}, /* latency-bound */
        {0,
         0,
         1,
         30,
         10,
         0,
         0,
         120e6,
         {0.15, 0.008, 0.125, 0.01, 1.5, 0.8333333333333334, 1.4, 0.12, 0.05, 0.31, 0, 0.02, 0},
         {0}},
        /* estimated by regression, without blocks */
        {0,
         1,
         0,
         0,
         50,
         0,
         0,
         31e6,
         {0.05, 0.01, 0.04, 0.01, 4.25, 0.8, NAN, 0.3, NAN, NAN, NAN, NAN, NAN},
         {0.35, 0.01, 0.91, 0.5, 0.2, NAN, 0.02}}, /* throughput-bound, without a tensor core counter */
        /* only a group has a value; above the model, within the error */
        {1, 3, 0, 0, 0, 900, 900, 16e6, {0.07, 0.02, 0.021, 0.006, 40, 0.3, 1.12, 0.9, 0, 0, 0, 0, 0}, {0}},
        /* only elapsed occupancy */
        {1, 4, 0, 0, 30, 0, 0, 1.3e6, {NAN, NAN, 0.4, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN}, {0}},
        /* the model rejects the configuration, but counters have values */
        {1, 5, 0, 3, 0, 0, 0, 3e4, {0.5, 0.01, 0.25, 0.01, 1, 0.5, 1, 0.5, NAN, NAN, NAN, NAN, NAN}, {0}},
    };
    int status = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all && status == 0; i++)
        status = put_seen(h, &all[i]);
    return status;
}

/* Stores values of the first configuration's first two launches, read directly, the second one beside others;
 * and samples and an unexplained part of the GPU. */
static int put_series(struct history *h)
{
    const struct occ_launch_value values[] = {
        {START_NS + MS, 0, (uint32_t)h->shapes[0], 0.2, 0.01, 0.125, 0.02},
        {START_NS + 11 * MS, 1, (uint32_t)h->shapes[0], NAN, NAN, 0.0625, 0.02},
    };
    const struct occ_device_sample samples[] = {
        {START_NS, START_NS + 500 * MS, 0.25, 0.5, 1.5, 0, 0.125, 0, NAN, 0},
        {START_NS + 500 * MS, START_NS + 1000 * MS, 0.75, 1, 2, 0, 0.25, 0, NAN, 0},
        {START_NS + 1000 * MS, START_NS + 1500 * MS, NAN, 0, NAN, 0, 0, 0, NAN, 0},
    };
    int status = occ_store_add_launch_values(h->store, h->runs[0], h->devices[0], values, 2, &h->err);
    status = status ? status : occ_store_add_samples(h->store, h->devices[0], samples, 3, &h->err);
    return status
               ? status
               : occ_store_add_unexplained(h->store, h->devices[0], START_NS / (1000 * MS), 0.03125, &h->err);
}

static int put_pause(struct history *h)
{
    const int64_t from_ns = START_NS + 3602 * 1000 * MS;
    const struct occ_period pause = {.from_ns = from_ns,
                                     .until_ns = from_ns + 5000 * MS,
                                     .level = "nothing",
                                     .reason = "paused by its owner"};
    return occ_store_put_period(h->store, h->runs[1], &pause, &h->err);
}

static int fill(struct history *h, const char *what)
{
    bool measured = strcmp(what, "measured") == 0;
    int status = put_runs(h);
    status = status ? status : put_weakness(h);
    status = status ? status : put_devices(h);
    status = status ? status : put_kernels(h);
    status = status ? status : put_shapes(h);
    status = status ? status : put_all_launches(h);
    if (measured)
        status = status ? status : put_all_seen(h);
    if (measured)
        status = status ? status : put_series(h);
    if (strcmp(what, "paused") == 0)
        status = status ? status : put_pause(h);
    return status ? status : occ_store_finish(h->store, &h->err);
}

int main(int argc, char **argv)
{
    struct history history = {0};
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    const char *what = argc == 3 ? argv[2] : "";
    if (argc != 2 && (argc != 3 || (strcmp(what, "measured") != 0 && strcmp(what, "paused") != 0))) {
        (void)fputs("Usage: cli_history FILE [measured|paused]\n", stderr);
        return 2;
    }
    int status = occ_store_open(argv[1], &options, &history.store, &history.err);
    if (status == 0)
        status = fill(&history, what);
    if (status != 0)
        (void)fprintf(stderr, "cli_history: %s\n", history.err.message);
    occ_store_close(history.store);
    return status ? 1 : 0;
}
