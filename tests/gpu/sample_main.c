/*
 * gpu_sample: a process that reads a counter source for a while, so that an experiment can run several at
 * once, with other privileges or another environment, and survives their crashes.
 *
 * stdout, a line each, `key=value` words; unknown values are nan:
 *   opened   state=WORD, and the library's message at the end if the source does not open
 *   sampled  last: number of samples, means of the counters, cost
 * With --reopen-after-ms both lines come twice.
 *
 * Exit code: 0 sampled, 77 the source cannot be opened here, 1 it was lost during sampling, or does not open
 * again. One thread.
 */
#include "sampling.h"
#include "samples/common.h"
#include "stop.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/sampling/counters/gpus.h"
#include "support/clock.h"
#include "support/text.h"

struct options {
    const char *source, *dump;
    uint64_t interval_us, buffer_mb, ms, reopen_after_ms;
};

static double processor_s(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_opened(const struct sampling *sampling)
{
    bool ok = sampling->state == OCC_SOURCE_OK;
    printf("opened state=%s %s\n", occ_source_state_word(sampling->state), ok ? "" : sampling->error.message);
    fflush(stdout);
}

/* Returns seconds since the end of the last sample; NaN without samples. The samples' clock may be some us
 * off. */
static double silent_s(const struct sampling *sampling)
{
    return sampling->n ? (double)(occ_now_ns() - sampling->samples[sampling->n - 1].end_ns) / 1e9
                       : (double)NAN;
}

static void print_sampled(const struct sampling *sampling, double wall_s, double cpu_s)
{
    struct occ_source_stats stats;
    struct sampling_means means;
    struct occ_gpu_found gpu = {0};
    size_t gpus = 0;
    (void)occ_gpus_find(&gpu, 1, &gpus, NULL);
    gpu_sampling_stats(sampling, &stats);
    gpu_sampling_means(sampling, gpu.max_warps_per_sm, gpu.sm_count, &means);
    printf("sampled state=%s samples=%zu wall_s=%.6f covered_s=%.6f bad=%" PRIu64 " overflows=%" PRIu64
           " gaps=%" PRIu64 " rotations=%" PRIu64 " failed_changes=%" PRIu64 " bytes_per_sample=%" PRIu64
           " achieved=%.6f elapsed=%.6f sm_active=%.6f blocks=%.4f block_us=%.4f ghz=%.4f silent_s=%.6f "
           "cpu_s=%.6f read_cpu_s=%.6f reads=%" PRIu64 " full_reads=%" PRIu64 "\n",
           occ_source_state_word(sampling->state), sampling->n, wall_s, means.seconds, stats.bad_samples,
           stats.overflows, stats.gaps, stats.rotations, stats.failed_changes, stats.bytes_per_sample,
           means.achieved, means.elapsed, means.sm_active, means.blocks, means.block_us, means.cycles_per_ns,
           silent_s(sampling), cpu_s, sampling->cpu_s, sampling->reads, sampling->full_reads);
}

static void parse(char **argv, struct options *o)
{
    const struct sample_option known[] = {
        {"--source", "NAME", "pm or gpm (pm)", .text = &o->source},
        {"--interval-us", "US", "sampling interval (1000)", .number = &o->interval_us, .min = 1,
         .max = 10000000},
        {"--buffer-mb", "MB", "hardware buffer (0: by the interval)", .number = &o->buffer_mb, .max = 2048},
        {"--ms", "MS", "sample for so long (1000)", .number = &o->ms, .max = 600000},
        {"--reopen-after-ms", "MS", "close then, wait so long, and do all of it once more (0: no)",
         .number = &o->reopen_after_ms, .max = 60000},
        {"--dump", "FILE", "write the samples", .text = &o->dump},
        {.name = NULL}};
    sample_parse(argv, "gpu_sample: reads device-wide counters and says what they were.", known);
}

/* Opens, samples and closes once; returns the exit code. */
static int sample_once(const struct options *o)
{
    struct sampling sampling;
    const struct occ_source_kind *kind = strcmp(o->source, "gpm") == 0 ? &occ_source_gpm : &occ_source_pm;
    enum occ_source_state state =
        gpu_sampling_open(&sampling, kind, (int64_t)o->interval_us * 1000, o->buffer_mb << 20);
    print_opened(&sampling);
    if (state != OCC_SOURCE_OK)
        return SAMPLE_NO_DEVICE;
    double cpu_s = processor_s();
    int64_t start_ns = occ_now_ns();
    state = gpu_sampling_run(&sampling, (double)o->ms / 1e3);
    print_sampled(&sampling, (double)(occ_now_ns() - start_ns) / 1e9, processor_s() - cpu_s);
    int dumped = o->dump ? gpu_sampling_dump(&sampling, o->dump) : 0;
    gpu_sampling_close(&sampling);
    return state != OCC_SOURCE_OK || dumped != 0 || fflush(stdout) != 0 ? SAMPLE_FAILED : 0;
}

int main(int argc, char **argv)
{
    struct options o = {.source = "pm", .interval_us = 1000, .ms = 1000};
    (void)argc;
    parse(argv, &o);
    gpu_stop_catch();
    gpu_stop_with_parent();
    int code = sample_once(&o);
    if (code != 0 || !o.reopen_after_ms || !gpu_sleep((double)o.reopen_after_ms / 1e3))
        return code;
    return sample_once(&o) == 0 ? 0 : SAMPLE_FAILED;
}
