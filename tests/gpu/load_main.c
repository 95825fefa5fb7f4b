/*
 * gpu_load: a process with a load of known occupancy (load.h), for experiments that observe it from outside.
 *
 * stdout, a line each, `key=value` words:
 *   ready    once, after the end of the first launch: properties of the load and expected measurements
 *   rate     with --report-ms: time and number of completed launches
 *   sampled  with --sample-us: results of PM sampling in this process
 *   done     last
 *
 * Ends after --seconds or --launches, at SIGTERM or SIGINT (both are a normal end), and with its parent.
 * One thread. On a simulated device OCCSIM_BLOCK_NS determines kernels' durations; it is set to --ns,
 * exactly.
 */
#include "load.h"
#include "sampling.h"
#include "stop.h"
#include "support/clock.h"
#include "support/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_NS = 20 * 1000 * 1000, BATCH_MOST = 512, SETTLE_NS = 100 * 1000 * 1000 };

struct options {
    const char *kernel, *dump;
    uint64_t threads, percent, blocks_per_sm, blocks, ns, short_ns, pause_ns, launches, batch, seconds,
        report_ms, sample_us;
};

static void print_ready(const struct gpu_load *load)
{
    printf("ready sms=%d max_warps=%u warps_per_block=%u blocks_per_sm=%u grid=%u smem=%u theoretical=%.6f "
           "achieved=%.6f elapsed=%.6f simulated=%d\n",
           load->device.sm_count, load->max_warps_per_sm, load->warps_per_block, load->blocks_per_sm,
           load->shape.grid[0], load->shape.smem_bytes, load->theoretical, load->achieved, load->elapsed,
           load->device.simulated);
    fflush(stdout);
}

struct progress {
    uint64_t launches;
    int64_t start_ns, next_report_ns, end_ns;
};

static void report(struct progress *progress, const struct options *o, int64_t now_ns)
{
    if (!o->report_ms || now_ns < progress->next_report_ns)
        return;
    printf("rate t_ns=%" PRId64 " launches=%" PRIu64 "\n", now_ns, progress->launches);
    fflush(stdout);
    progress->next_report_ns = now_ns + (int64_t)o->report_ms * 1000000;
}

static uint64_t batch_of(const struct options *o)
{
    uint64_t batch = o->batch;
    if (!batch)
        batch = o->pause_ns ? 1 : BATCH_NS / (o->ns ? o->ns : 1);
    return batch < 1 ? 1 : batch > BATCH_MOST ? BATCH_MOST : batch;
}

static void run_batch(struct gpu_load *load, const struct options *o, struct progress *progress)
{
    uint64_t batch = batch_of(o);
    if (o->launches && o->launches - progress->launches < batch)
        batch = o->launches - progress->launches;
    for (uint64_t i = 0; i < batch; i++)
        gpu_load_launch(load);
    gpu_load_wait(load);
    progress->launches += batch;
    if (o->pause_ns)
        (void)gpu_sleep((double)o->pause_ns / 1e9);
}

/* Samples in the launching process. The first samples are from before the load: they are read and dropped. */
static bool sample(struct sampling *sampling, int64_t now_ns, int64_t start_ns)
{
    if (!sampling->source || !gpu_sampling_due(sampling, now_ns))
        return true;
    bool going = gpu_sampling_read(sampling) == OCC_SOURCE_OK;
    if (now_ns - start_ns < SETTLE_NS)
        gpu_sampling_forget(sampling);
    return going;
}

static void run(struct gpu_load *load, const struct options *o, struct sampling *sampling)
{
    struct progress progress = {.start_ns = occ_now_ns()};
    progress.end_ns = progress.start_ns + (int64_t)o->seconds * 1000000000;
    int64_t now_ns = progress.start_ns;
    while (!gpu_stopped() && now_ns < progress.end_ns && (!o->launches || progress.launches < o->launches)) {
        run_batch(load, o, &progress);
        now_ns = occ_now_ns();
        report(&progress, o, now_ns);
        if (!sample(sampling, now_ns, progress.start_ns))
            break;
    }
    if (o->sample_us) {
        struct sampling_means means;
        gpu_sampling_means(sampling, load->max_warps_per_sm, (uint32_t)load->device.sm_count, &means);
        if (o->dump && gpu_sampling_dump(sampling, o->dump) != 0)
            sample_die(SAMPLE_FAILED, "cannot write %s", o->dump);
        printf("sampled state=%s samples=%zu achieved=%.6f elapsed=%.6f\n",
               occ_source_state_word(sampling->state), sampling->n, means.achieved, means.elapsed);
    }
    printf("done launches=%" PRIu64 " seconds=%.6f\n", progress.launches,
           (double)(now_ns - progress.start_ns) / 1e9);
}

static void parse(char **argv, struct options *o)
{
    const struct sample_option known[] = {
        {"--kernel", "NAME", "spin, uneven-blocks, uneven-warps or fma (spin)", .text = &o->kernel},
        {"--threads", "N", "threads of a block (256)", .number = &o->threads, .min = 1, .max = 1024},
        {"--percent", "P", "occupancy, if --blocks-per-sm is not given", .number = &o->percent, .max = 100},
        {"--blocks-per-sm", "N", "as many blocks on an SM (as many as fit)", .number = &o->blocks_per_sm,
         .max = 32},
        {"--blocks", "N", "blocks of the grid (one wave)", .number = &o->blocks, .max = 1000000},
        {"--ns", "NS", "how long a block lasts; fma: rounds (1000000)", .number = &o->ns, .min = 1,
         .max = 1000000000},
        {"--short-ns", "NS", "and every second one of uneven-* (0)", .number = &o->short_ns,
         .max = 1000000000},
        {"--pause-ns", "NS", "sleep after each batch (0)", .number = &o->pause_ns, .max = 10000000000},
        {"--batch", "N", "launches between two waits (for 20 ms; 1 with a pause)", .number = &o->batch,
         .max = BATCH_MOST},
        {"--launches", "N", "end after so many (0: no limit)", .number = &o->launches, .max = UINT32_MAX},
        {"--seconds", "S", "end after so long (60)", .number = &o->seconds, .min = 1, .max = 600},
        {"--report-ms", "MS", "say now and then how many launches there were", .number = &o->report_ms,
         .max = 60000},
        {"--sample-us", "US", "PM sampling in this process at that interval", .number = &o->sample_us,
         .max = 1000000},
        {"--dump", "FILE", "and write the samples", .text = &o->dump},
        {.name = NULL}};
    sample_parse(argv, "gpu_load: keeps the first CUDA device busy at a known occupancy.", known);
}

int main(int argc, char **argv)
{
    struct options o = {.kernel = "spin", .threads = 256, .ns = 1000000, .seconds = 60};
    struct gpu_load load;
    struct sampling sampling = {0};
    (void)argc;
    parse(argv, &o);
    enum gpu_load_kernel kernel = gpu_load_kernel_named(o.kernel);
    if (kernel == GPU_LOAD_KERNEL_COUNT)
        sample_die(SAMPLE_USAGE, "unknown kernel '%s'", o.kernel);
    gpu_stop_catch();
    gpu_stop_with_parent();
    char simulated_ns[24];
    (void)snprintf(simulated_ns, sizeof simulated_ns, "%" PRIu64, o.ns);
    setenv("OCCSIM_BLOCK_NS", simulated_ns, 0);
    setenv("OCCSIM_EXACT_BLOCKS", "1", 0);
    const struct gpu_load_options options = {.kernel = kernel,
                                             .threads = (uint32_t)o.threads,
                                             .percent = (uint32_t)o.percent,
                                             .blocks_per_sm = (uint32_t)o.blocks_per_sm,
                                             .blocks = o.blocks,
                                             .ns = o.ns,
                                             .short_ns = o.short_ns};
    gpu_load_open(&load, &options);
    gpu_load_launch(&load);
    gpu_load_wait(&load);
    if (o.sample_us)
        (void)gpu_sampling_open(&sampling, &occ_source_pm, (int64_t)o.sample_us * 1000, 0);
    print_ready(&load);
    run(&load, &o, &sampling);
    gpu_sampling_close(&sampling);
    gpu_load_close(&load);
    if (fflush(stdout) != 0)
        return SAMPLE_FAILED;
    return 0;
}
