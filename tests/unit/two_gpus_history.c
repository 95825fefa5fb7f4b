/*
 * two_gpus_history FILE: writes a history of two equal GPUs. `gemm` runs on both in two launch
 * configurations, `copy` on the first alone, `softmax` on the second alone; a second run has only the second
 * GPU. Launches begin in three hours, so that hours, minutes and single launches all answer; the last ones
 * 10 s ago, since `live` counts launches only when they are 3 s old. Counters measured gemm on the first GPU;
 * of softmax only achieved occupancy is known, as from a report of Nsight Compute without elapsed cycles.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "store/store.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)

enum { GEMM, COPY, SOFTMAX, KERNELS };
enum { GPUS = 2, RUNS = 2, SHAPES = 2 };

static struct occ_store *store;
static struct occ_error err;
static int64_t runs[RUNS], devices[GPUS], kernels[KERNELS];
static uint32_t configs[KERNELS][GPUS][SHAPES];

static void check(int rc)
{
    if (rc == 0)
        return;
    (void)fprintf(stderr, "two_gpus_history: %s\n", err.message);
    exit(1);
}

static void put_devices(void)
{
    for (uint8_t i = 0; i < GPUS; i++) {
        const struct occ_store_device device = {.uuid = {0xa0, i},
                                                .name = "NVIDIA H100 80GB HBM3",
                                                .limits = {.cc = 90, .sm_count = 132},
                                                .simulated = true};
        check(occ_store_put_device(store, &device, &devices[i], &err));
    }
}

static void put_kernels(void)
{
    static const char *const names[KERNELS] = {"_Z4gemmPf", "_Z4copyPf", "_Z7softmaxPf"};
    for (int k = 0; k < KERNELS; k++)
        check(occ_store_put_kernel(store, names[k], (uint64_t)k + 1, &kernels[k], &err));
}

static void put_config(int kernel, int gpu, uint32_t shape)
{
    int64_t id = 0;
    const struct occ_launch_config config = {.kernel = kernels[kernel],
                                             .device = devices[gpu],
                                             .launch = {.grid = {200 + 100 * shape, 1, 1},
                                                        .block = {256, 1, 1},
                                                        .cluster = {1, 1, 1},
                                                        .registers_per_thread = 96,
                                                        .carveout_percent = -1}};
    check(occ_store_put_config(store, &config, &id, &err));
    configs[kernel][gpu][shape] = (uint32_t)id;
}

static void put_configs(void)
{
    for (int kernel = 0; kernel < KERNELS; kernel++)
        for (int gpu = 0; gpu < GPUS; gpu++)
            for (uint32_t shape = 0; shape < SHAPES; shape++)
                put_config(kernel, gpu, shape);
}

static void put_runs(int64_t start_ns)
{
    for (uint8_t i = 0; i < RUNS; i++) {
        const struct occ_run run = {.uuid = {i + 1},
                                    .pid = 100 + i,
                                    .start_ns = start_ns,
                                    .hostname = "node1",
                                    .exe = "/opt/train",
                                    .user = "ada",
                                    .rank = i ? "1" : "0",
                                    .label = i ? "second" : "both"};
        check(occ_store_put_run(store, &run, &runs[i], &err));
    }
}

struct launches {
    int run, kernel, gpu, shape, n;
    uint64_t duration_ns;
};

/* Appends the launches with starts 1 ms apart. */
static void append(const struct launches *l, int64_t start_ns)
{
    for (int i = 0; i < l->n; i++) {
        const struct occ_store_launch launch = {.start_ns = start_ns + i * SECOND / 1000,
                                                .duration_ns = l->duration_ns,
                                                .stream = 7,
                                                .context = 1,
                                                .correlation = (uint32_t)i,
                                                .config = configs[l->kernel][l->gpu][l->shape]};
        check(occ_store_append(store, runs[l->run], devices[l->gpu], &launch, 1, &err));
    }
}

/* Measures all launches of a minute: from counters, or without `elapsed` from Nsight Compute. */
static void measure(int64_t start_ns, const struct launches *l, bool elapsed)
{
    double ns = (double)l->n * (double)l->duration_ns;
    struct occ_measured_sums sums = {.direct = elapsed ? (uint64_t)l->n : 0,
                                     .ncu = elapsed ? 0 : (uint64_t)l->n};
    sums.ns[OCC_MEASURED_achieved] = ns;
    sums.sum[OCC_MEASURED_achieved] = 0.9199 * ns;
    sums.ns[OCC_MEASURED_elapsed] = elapsed ? ns : 0;
    sums.sum[OCC_MEASURED_elapsed] = elapsed ? 0.5 * ns : 0;
    check(occ_store_add_measured(store, start_ns / MINUTE, runs[l->run], configs[l->kernel][l->gpu][l->shape],
                                 &sums, &err));
}

static void put_minute(int64_t start_ns)
{
    static const struct launches all[] = {
        {0, GEMM, 0, 0, 20, 100000},   {0, GEMM, 0, 1, 4, 300000},   {0, GEMM, 1, 0, 15, 150000},
        {0, COPY, 0, 0, 7, 20000},     {0, SOFTMAX, 1, 0, 9, 50000}, {1, GEMM, 1, 1, 6, 250000},
        {1, SOFTMAX, 1, 1, 3, 500000},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        append(&all[i], start_ns);
        if ((all[i].kernel == GEMM && all[i].gpu == 0) || all[i].kernel == SOFTMAX)
            measure(start_ns, &all[i], all[i].kernel == GEMM);
    }
    check(occ_store_commit(store, &err));
}

int main(int argc, char **argv)
{
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    int64_t now_ns = (int64_t)time(NULL) * SECOND;
    const int64_t starts_ns[] = {now_ns - 150 * MINUTE, now_ns - 75 * MINUTE, now_ns - 10 * SECOND};
    if (argc != 2)
        return 2;
    check(occ_store_open(argv[1], &options, &store, &err));
    put_devices();
    put_kernels();
    put_configs();
    put_runs(starts_ns[0]);
    for (size_t i = 0; i < sizeof starts_ns / sizeof *starts_ns; i++)
        put_minute(starts_ns[i]);
    check(occ_store_finish(store, &err));
    occ_store_close(store);
    return 0;
}
