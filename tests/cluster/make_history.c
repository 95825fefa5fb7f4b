/*
 * Makes or extends a history for the tests of occtrace-ship and of occq --cluster.
 *
 *   make_history PATH SEED FROM_S MINUTES RUNS CONFIGS [measured] [withheld] [end] [nodeN] [firstN] ...
 *
 * RUNS ranks of a Slurm job, two to a GPU, launch CONFIGS configurations of 5 kernels in each of MINUTES
 * minutes from FROM_S on. measured: some of it has measured values. withheld: and evidence that some of them
 * stand for no other launches. end: the runs end, and so all minutes are
 * written. nodeN: the runs of that node, which are others than those of node0. firstN: the
 * first run's number, which runs of two histories of a node must not share. rangesN: each run has N ranges,
 * and six of seven launches are in one. long: a launch of each run and minute lasts 90 s.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"

#define SECOND  INT64_C(1000000000)
#define MINUTE  (60 * SECOND)
#define RUNS    64
#define CONFIGS 4096
#define RANGES  4096
#define DEVICES 4
#define KERNELS 5
#define EACH    3 /* launches of a configuration in a minute */

static struct occ_store *store;
static struct occ_error err;
static uint64_t state;
static bool has_long;
static int node, first, n_ranges;
static uint32_t ranges[RUNS][RANGES];
static int64_t runs[RUNS], devices[DEVICES], kernels[KERNELS], configs[DEVICES][CONFIGS];

static uint64_t random_below(uint64_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 16) % n;
}

static void check(int rc)
{
    if (rc == 0)
        return;
    (void)fprintf(stderr, "make_history: %s\n", err.message);
    exit(1);
}

/* Paths of a model; the second half of them are of the backward pass of the first half. */
static void put_ranges(int run)
{
    for (int i = 0; i < n_ranges; i++) {
        char path[96];
        bool is_backward = i >= (n_ranges + 1) / 2;
        int layer = is_backward ? i - (n_ranges + 1) / 2 : i;
        (void)snprintf(path, sizeof path, "Model/block%d/layer%d \"%c\\<\xc3\xa4>", layer / 4, layer,
                       'a' + layer % 26);
        check(occ_store_put_range(store, runs[run], path, is_backward ? "backward" : "forward",
                                  &ranges[run][i], &err));
    }
}

static void put_names(int64_t from_ns, int n_runs, int n_configs, bool end)
{
    for (int i = 0; i < DEVICES; i++) {
        struct occ_store_device device = {
            .uuid = {(uint8_t)(i + 1)}, .name = "NVIDIA H100 (simulated)", .simulated = true};
        device.limits.cc = 90;
        device.limits.sm_count = 132;
        check(occ_store_put_device(store, &device, &devices[i], &err));
    }
    for (uint64_t i = 0; i < KERNELS; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "_Z%dkernel\t\\%llu\nPfi", 10, (unsigned long long)i);
        check(occ_store_put_kernel(store, name, i + 1, &kernels[i], &err));
    }
    for (int d = 0; d < DEVICES; d++)
        for (int i = 0; i < n_configs; i++) {
            struct occ_launch_config config = {.kernel = kernels[i % KERNELS], .device = devices[d]};
            config.launch.grid[0] = (uint32_t)(i + 1);
            config.launch.grid[1] = config.launch.grid[2] = 1;
            config.launch.block[0] = 32u * (uint32_t)(1 + i % 33); /* 33: refused */
            config.launch.block[1] = config.launch.block[2] = 1;
            config.launch.registers_per_thread = 32u + (uint32_t)(i % 7) * 16u;
            check(occ_store_put_config(store, &config, &configs[d][i], &err));
        }
    char hostname[32];
    (void)snprintf(hostname, sizeof hostname, "node%d", node);
    for (int i = 0; i < n_runs; i++) {
        const int number = first + i + RUNS * node;
        const struct occ_run run = {.uuid = {1, 2, 3, (uint8_t)number, (uint8_t)(number >> 8)},
                                    .pid = 1000 + i,
                                    .uid = 1000,
                                    .start_ns = from_ns + number,
                                    .end_ns = end ? from_ns + 1000 * MINUTE : 0,
                                    .hostname = hostname,
                                    .exe = "/opt/o'brien\t\\train",
                                    .user = "alice",
                                    .job = {.slurm_job = i % 8 == 7 ? "43" : "42",
                                            .slurm_account = i % 8 == 7 ? "chem" : "o'phys\\",
                                            .slurm_partition = "gpu",
                                            .slurm_qos = "normal",
                                            .slurm_array_job = "40",
                                            .slurm_array_task = "2",
                                            .trust = "kernel"},
                                    .rank = "0"};
        check(occ_store_put_run(store, &run, &runs[i], &err));
        put_ranges(i);
    }
}

/* Evidence about values for half of the time: blocks of launches differ, a known total contradicts, or
 * neither. */
static const struct evidence {
    double spread, shift;
} evidence_kinds[] = {{0.15, 0}, {0, 0.1}, {0.01, 0.005}};

static void put_block(int64_t minute, int run, int config, double elapsed, double ns,
                      const struct evidence *evidence)
{
    struct occ_measured_sums sums = {.direct = EACH};
    sums.sum[OCC_MEASURED_achieved] = 0.5 * ns;
    sums.sum[OCC_MEASURED_elapsed] = elapsed * ns;
    sums.sum[OCC_MEASURED_achieved_error] = sums.sum[OCC_MEASURED_elapsed_error] = 1e-6 * ns;
    sums.ns[OCC_MEASURED_achieved] = sums.ns[OCC_MEASURED_elapsed] = ns;
    sums.ns[OCC_MEASURED_achieved_error] = sums.ns[OCC_MEASURED_elapsed_error] = ns;
    sums.rest_ns = evidence ? ns : 0;
    sums.rest_shift_sum = evidence ? evidence->shift * ns : 0;
    sums.rest_error_sum = evidence ? 0.001 * ns : 0;
    check(occ_store_add_measured(store, minute, runs[run], (uint32_t)configs[run / 2 % DEVICES][config],
                                 &sums, &err));
}

/* Errors are so small that the warehouse keeps what answers are compared by, digit by digit. */
static void measure(int64_t minute, int run, int config, double ns, bool has_evidence)
{
    const struct evidence *evidence =
        has_evidence && config % 2 ? &evidence_kinds[config / 6 % 3] : NULL; /* half of the time */
    double spread = evidence ? evidence->spread : 0;
    put_block(minute, run, config, 0.25 + spread, ns / 2, evidence);
    put_block(minute, run, config, 0.25 - spread, ns / 2, evidence);
}

static void launch(int64_t minute, int run, int n_configs, bool measured, bool has_evidence)
{
    for (int c = 0; c < n_configs; c++) {
        struct occ_store_launch launches[EACH];
        double ns = 0;
        for (int i = 0; i < EACH; i++) {
            launches[i] = (struct occ_store_launch){.start_ns = minute * MINUTE +
                                                                (int64_t)random_below((uint64_t)MINUTE),
                                                    .duration_ns = 500 + random_below(1000000),
                                                    .config = (uint32_t)configs[run / 2 % DEVICES][c],
                                                    .stream = (uint32_t)(7 + c % 3),
                                                    .correlation = (uint32_t)(c * EACH + i),
                                                    .graph_node = c % 4 == 3 ? UINT64_MAX - (uint64_t)c : 0};
            if (has_long && c == 0 && i == 0)
                launches[i].duration_ns = (uint64_t)(90 * SECOND);
            if (n_ranges > 0 && (c + i) % 7 < 6)
                launches[i].range = ranges[run][(c * EACH + i) % n_ranges];
            if (c % 5 == 4)
                launches[i] = launches[0]; /* that nothing tells apart */
            ns += (double)launches[i].duration_ns;
        }
        check(occ_store_append(store, runs[run], devices[run / 2 % DEVICES], launches, EACH, &err));
        if (measured && c % 3 == 0 && (c % 4 || minute % 2)) /* some in part, some in every other minute */
            measure(minute, run, c, c % 2 ? ns / 2 : ns, has_evidence);
    }
}

int main(int argc, char **argv)
{
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    bool measured = false, withheld = false, end = false;
    for (int i = 7; i < argc; i++) {
        measured |= strcmp(argv[i], "measured") == 0;
        withheld |= strcmp(argv[i], "withheld") == 0;
        end |= strcmp(argv[i], "end") == 0;
        node = strncmp(argv[i], "node", 4) == 0 ? atoi(argv[i] + 4) : node;
        has_long |= strcmp(argv[i], "long") == 0;
        n_ranges = strncmp(argv[i], "ranges", 6) == 0 ? atoi(argv[i] + 6) : n_ranges;
        first = strncmp(argv[i], "first", 5) == 0 ? atoi(argv[i] + 5) : first;
    }
    if (argc < 7)
        return 2;
    state = strtoull(argv[2], NULL, 10);
    int64_t minute = strtoll(argv[3], NULL, 10) / 60, minutes = strtoll(argv[4], NULL, 10);
    int n_runs = atoi(argv[5]), n_configs = atoi(argv[6]);
    if (n_runs > RUNS || n_configs > CONFIGS || n_ranges > RANGES)
        return 2;
    check(occ_store_open(argv[1], &options, &store, &err));
    put_names(minute * MINUTE, n_runs, n_configs, end);
    for (int64_t m = minute; m < minute + minutes; m++) {
        for (int run = 0; run < n_runs; run++)
            launch(m, run, n_configs, measured, withheld);
        check(occ_store_commit(store, &err));
    }
    if (end)
        check(occ_store_finish(store, &err));
    occ_store_close(store);
    return 0;
}
