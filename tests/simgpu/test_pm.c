/*
 * Tests PM sampling in the CUPTI double: launches of another process are counted exactly, to the warp-cycle,
 * for every shape of blocks; times of samples; one sampler per device; a full buffer; every fault. Also tests
 * NVML's GPM, which has the same counts.
 *
 * No case depends on speed: samples are decoded after all launches have ended, and the hardware buffer holds
 * more samples than that takes.
 */
#include "test_child.h"

#include "daemon/sampling/counters/counter_sets.h"

#include <cuda.h>
#include <cupti.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <string.h>
#include <time.h>

#define OK(call) CHECK_EQUAL(call, 0)
#define NEAR(got, expected)                                                                                  \
    do {                                                                                                     \
        double got_ = (got), expected_ = (expected);                                                         \
        if (!(fabs(got_ - expected_) <= 1e-6 * fabs(expected_))) {                                           \
            fprintf(stderr, "%s:%d: %s is %.9g, not %.9g\n", __FILE__, __LINE__, #got, got_, expected_);     \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)

enum { SIM_UNITS_TOLD = OCC_UTILIZATION_COUNT };
enum { INTERVAL_NS = 100000, IMAGE_SAMPLES = 500, MOST_SAMPLES = 200000, MOST_LAUNCHES = 100 };

static char directory[] = "/tmp/simgpu-pm-XXXXXX", setting[64], truth_path[64], truth_setting[80];

/* ---- the launching process ---- */

/* A line of the truth file. */
static struct truth {
    uint64_t start_ns, end_ns;
    double warps, blocks, waves, block_ns, block_ns_total, achieved, elapsed;
    double busy[SIM_UNITS_TOLD];
} launches[MOST_LAUNCHES];
static size_t launch_count;

static CUmodule module;

static void launch(const char *name, unsigned grid, unsigned block, CUstream stream)
{
    CUfunction function;
    OK(cuModuleGetFunction(&function, module, name));
    OK(cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, NULL, NULL));
}

static void open_device(void)
{
    CUcontext context;
    OK(cuInit(0));
    OK(cuCtxCreate(&context, NULL, 0, 0));
    OK(cuModuleLoad(&module, SIM_TEST_IMAGES "/plain.fatbin"));
}

static void launch_one_after_the_other(void)
{
    launch("plain", 528, 256, NULL); /* 4 of 8 blocks on each SM */
    launch("plain", 66, 256, NULL);  /* one on half of the SMs */
    launch("plain", 3000, 250, NULL);
    launch("heavy", 1000, 128, NULL);
    launch("plain", 40000, 32, NULL);
}

static void launch_side_by_side(void)
{
    CUstream streams[3];
    for (size_t i = 0; i < 3; i++)
        OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < 30; i++)
        launch(i % 2 ? "plain" : "heavy", 100 + 77 * i, 96 + i, streams[i % 3]);
}

static int go[2];
static pid_t launcher;

/* Forks the launcher before the sampler uses the driver, which does not survive fork(). The launcher starts
 * its work on a byte from the pipe. */
static void start_launcher(void (*work)(void))
{
    char byte;
    OK(pipe(go));
    launcher = fork();
    CHECK(launcher >= 0);
    if (launcher)
        return;
    close(go[1]); /* ends the launcher if the sampler fails */
    if (read(go[0], &byte, 1) != 1)
        _exit(1);
    open_device();
    work();
    OK(cuCtxSynchronize());
    _exit(0);
}

static void finish_launcher(void)
{
    int status = -1;
    CHECK_EQUAL(write(go[1], "", 1), 1);
    CHECK_EQUAL(waitpid(launcher, &status, 0), launcher);
    CHECK_EQUAL(status, 0);
}

/* Returns the start of a column, named as ",name": kernels' names have no commas here. */
static const char *column(const char *line, const char *header, const char *name)
{
    const char *at = strstr(header, name);
    CHECK(at != NULL);
    for (; header <= at; header++) {
        if (*header == ',')
            line = strchr(line, ',') + 1;
    }
    return line;
}

static void read_truth(void)
{
    char header[1024], line[4096];
    FILE *file = fopen(truth_path, "re");
    CHECK(file && fgets(header, sizeof header, file));
    for (; fgets(line, sizeof line, file); launch_count++) {
        CHECK(launch_count < MOST_LAUNCHES);
        launches[launch_count] = (struct truth){
            .start_ns = strtoull(column(line, header, ",start_ns"), NULL, 10),
            .end_ns = strtoull(column(line, header, ",end_ns"), NULL, 10),
            .warps = ceil(strtod(column(line, header, ",block_x"), NULL) / 32),
            .blocks = strtod(column(line, header, ",grid_x"), NULL),
            .waves = strtod(column(line, header, ",waves"), NULL),
            .block_ns = strtod(column(line, header, ",block_ns,"), NULL),
            .block_ns_total = strtod(column(line, header, ",block_ns_total"), NULL),
            .achieved = strtod(column(line, header, ",achieved"), NULL),
            .elapsed = strtod(column(line, header, ",elapsed"), NULL),
        };
        const char *const units[SIM_UNITS_TOLD] = {",issue", ",dram", ",l2", ",l1", ",tensor"};
        for (int i = 0; i < SIM_UNITS_TOLD; i++)
            launches[launch_count].busy[i] = strtod(column(line, header, units[i]), NULL);
    }
    fclose(file);
}

/* ---- the sampling process ---- */

struct sample {
    uint64_t start_ns, end_ns;
    double value[OCC_SET_METRICS_MAX];
};

static const struct occ_counter_set *set;
static CUpti_Profiler_Host_Object *host;
static CUpti_PmSampling_Object *sampling;
static uint8_t *image;
static size_t image_bytes, image_samples, sample_count;
static CUpti_PmSampling_DecodeStopReason stop_reason;
static struct sample *samples;
static unsigned overflows;

static void start_cupti(void)
{
    CUpti_Profiler_Initialize_Params p = {.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
    OK(cuInit(0));
    OK(cuptiProfilerInitialize(&p));
}

static CUptiResult enable_on(size_t device, CUpti_PmSampling_Object **ret)
{
    CUpti_PmSampling_Enable_Params p = {.structSize = CUpti_PmSampling_Enable_Params_STRUCT_SIZE,
                                        .deviceIndex = device};
    CUptiResult result = cuptiPmSamplingEnable(&p);
    *ret = p.pPmSamplingObject;
    return result;
}

static CUptiResult enable(CUpti_PmSampling_Object **ret)
{
    return enable_on(0, ret);
}

static void disable(void)
{
    CUpti_PmSampling_Disable_Params p = {.structSize = CUpti_PmSampling_Disable_Params_STRUCT_SIZE,
                                         .pPmSamplingObject = sampling};
    OK(cuptiPmSamplingDisable(&p));
}

static CUptiResult add_metrics(const char *const *names, size_t n)
{
    CUpti_Profiler_Host_ConfigAddMetrics_Params p = {
        .structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE,
        .pHostObject = host,
        .ppMetricNames = (const char **)(uintptr_t)names,
        .numMetrics = n};
    return cuptiProfilerHostConfigAddMetrics(&p);
}

static uint8_t availability[256]; /* all 0: all metrics of the chip */

static void make_host(void)
{
    CUpti_Profiler_Host_Initialize_Params p = {
        .structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE,
        .profilerType = CUPTI_PROFILER_TYPE_PM_SAMPLING,
        .pChipName = "GH100",
        .pCounterAvailabilityImage = availability[0] ? availability : NULL};
    OK(cuptiProfilerHostInitialize(&p));
    host = p.pHostObject;
}

static uint8_t config[4096];
static size_t config_bytes;

static size_t make_config(void)
{
    CUpti_Profiler_Host_GetConfigImageSize_Params size = {
        .structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE, .pHostObject = host};
    OK(cuptiProfilerHostGetConfigImageSize(&size));
    config_bytes = size.configImageSize;
    CHECK(config_bytes <= sizeof config);
    CUpti_Profiler_Host_GetConfigImage_Params get = {
        .structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE,
        .pHostObject = host,
        .configImageSize = config_bytes,
        .pConfigImage = config};
    OK(cuptiProfilerHostGetConfigImage(&get));
    CUpti_Profiler_Host_GetNumOfPasses_Params passes = {
        .structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE,
        .configImageSize = config_bytes,
        .pConfigImage = config};
    OK(cuptiProfilerHostGetNumOfPasses(&passes));
    return passes.numOfPasses;
}

static CUptiResult configure(uint64_t interval, size_t buffer_bytes, CUpti_PmSampling_TriggerMode trigger,
                             CUpti_PmSampling_HardwareBuffer_AppendMode mode)
{
    CUpti_PmSampling_SetConfig_Params p = {.structSize = CUpti_PmSampling_SetConfig_Params_STRUCT_SIZE,
                                           .pPmSamplingObject = sampling,
                                           .configSize = config_bytes,
                                           .pConfig = config,
                                           .hardwareBufferSize = buffer_bytes,
                                           .samplingInterval = interval,
                                           .triggerMode = trigger,
                                           .hwBufferAppendMode = mode};
    return cuptiPmSamplingSetConfig(&p);
}

#define TIME   CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL
#define CLOCKS CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL
#define OLDEST CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST
#define LATEST CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST
#define AMPLE  ((size_t)1 << 40)

static void empty_image(void)
{
    CUpti_PmSampling_CounterDataImage_Initialize_Params p = {
        .structSize = CUpti_PmSampling_CounterDataImage_Initialize_Params_STRUCT_SIZE,
        .pPmSamplingObject = sampling,
        .counterDataSize = image_bytes,
        .pCounterData = image};
    OK(cuptiPmSamplingCounterDataImageInitialize(&p));
}

static void make_image_of(uint32_t most)
{
    CUpti_PmSampling_GetCounterDataSize_Params p = {
        .structSize = CUpti_PmSampling_GetCounterDataSize_Params_STRUCT_SIZE,
        .pPmSamplingObject = sampling,
        .pMetricNames = (const char **)(uintptr_t)set->metric,
        .numMetrics = set->n,
        .maxSamples = most};
    OK(cuptiPmSamplingGetCounterDataSize(&p));
    image_bytes = p.counterDataSize;
    image_samples = most;
    image = malloc(image_bytes);
    samples = calloc(MOST_SAMPLES, sizeof *samples);
    CHECK(image && samples);
    empty_image();
}

static void make_image(void)
{
    make_image_of(IMAGE_SAMPLES);
}

static void begin_sampling(void)
{
    CUpti_PmSampling_Start_Params p = {.structSize = CUpti_PmSampling_Start_Params_STRUCT_SIZE,
                                       .pPmSamplingObject = sampling};
    OK(cuptiPmSamplingStart(&p));
    CHECK_EQUAL(cuptiPmSamplingStart(&p), CUPTI_ERROR_INVALID_OPERATION);
}

static void open_sampling(const struct occ_counter_set *wanted)
{
    set = wanted;
    start_cupti();
    make_host();
    OK(add_metrics(set->metric, set->n));
    CHECK_EQUAL(make_config(), 1);
    OK(enable(&sampling));
}

static void start_sampling(const struct occ_counter_set *wanted)
{
    open_sampling(wanted);
    OK(configure(INTERVAL_NS, AMPLE, TIME, LATEST));
    make_image();
    begin_sampling();
}

static const struct occ_counter_set *set_of_chip(const char *chip, unsigned which)
{
    return occ_chip_sets_find(chip)->sets[which];
}

static void take_sample(size_t index)
{
    struct sample *sample = &samples[sample_count++];
    CHECK(sample_count <= MOST_SAMPLES);
    CUpti_PmSampling_CounterData_GetSampleInfo_Params info = {
        .structSize = CUpti_PmSampling_CounterData_GetSampleInfo_Params_STRUCT_SIZE,
        .pPmSamplingObject = sampling,
        .pCounterDataImage = image,
        .counterDataImageSize = image_bytes,
        .sampleIndex = index};
    OK(cuptiPmSamplingCounterDataGetSampleInfo(&info));
    sample->start_ns = info.startTimestamp;
    sample->end_ns = info.endTimestamp;
    CUpti_Profiler_Host_EvaluateToGpuValues_Params p = {
        .structSize = CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE,
        .pHostObject = host,
        .pCounterDataImage = image,
        .counterDataImageSize = image_bytes,
        .rangeIndex = index,
        .ppMetricNames = (const char **)(uintptr_t)set->metric,
        .numMetrics = set->n,
        .pMetricValues = sample->value};
    OK(cuptiProfilerHostEvaluateToGpuValues(&p));
}

/* Decodes once; *ret_n: number of samples. */
static CUptiResult decode(size_t *ret_n)
{
    empty_image();
    CUpti_PmSampling_DecodeData_Params p = {.structSize = CUpti_PmSampling_DecodeData_Params_STRUCT_SIZE,
                                            .pPmSamplingObject = sampling,
                                            .pCounterDataImage = image,
                                            .counterDataImageSize = image_bytes};
    CUpti_PmSampling_GetCounterDataInfo_Params info = {
        .structSize = CUpti_PmSampling_GetCounterDataInfo_Params_STRUCT_SIZE,
        .pCounterDataImage = image,
        .counterDataImageSize = image_bytes};
    *ret_n = 0;
    CUptiResult result = cuptiPmSamplingDecodeData(&p);
    overflows += p.overflow;
    if (result != CUPTI_SUCCESS)
        return result;
    OK(cuptiPmSamplingGetCounterDataInfo(&info));
    for (size_t i = 0; i < info.numCompletedSamples; i++)
        take_sample(i);
    *ret_n = info.numCompletedSamples;
    stop_reason = p.decodeStopReason;
    CHECK((*ret_n == image_samples) >=
          (stop_reason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL));
    return CUPTI_SUCCESS;
}

static uint64_t now_ns(void)
{
    uint64_t now;
    OK(cuptiGetTimestamp(&now));
    return now;
}

static void pass_time(uint64_t ns)
{
    for (uint64_t begin_ns = now_ns(); now_ns() < begin_ns + ns;)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Decodes all samples until now. */
static void finish_sampling(void)
{
    CUpti_PmSampling_Stop_Params p = {.structSize = CUpti_PmSampling_Stop_Params_STRUCT_SIZE,
                                      .pPmSamplingObject = sampling};
    pass_time(2 * INTERVAL_NS); /* the last interval with work in it is over */
    OK(cuptiPmSamplingStop(&p));
    CHECK_EQUAL(cuptiPmSamplingStop(&p), CUPTI_ERROR_INVALID_OPERATION);
    for (size_t n = 1; n > 0;)
        OK(decode(&n));
    CHECK_EQUAL(overflows, 0);
}

static double sum_of(enum occ_counter counter)
{
    double sum = 0;
    uint32_t at = 0;
    while (at < set->n && set->counter[at] != counter)
        at++;
    CHECK(at < set->n);
    for (size_t i = 0; i < sample_count; i++)
        sum += samples[i].value[at];
    return sum;
}

/* ---- counting ---- */

enum { SMS = 132, MOST_WARPS = 64 };
static const double ghz = 1.98;

static double warp_imbalance; /* as a ratio; half of a block's warps end earlier by this part, in whole ns */

static double warp_ns_of(const struct truth *t)
{
    double early = floor(t->warps / 2) * floor(t->block_ns * warp_imbalance) / t->block_ns;
    return t->block_ns_total * (t->warps - early);
}

static void check_sums(bool alone)
{
    double warp_ns = 0, block_ns = 0, blocks = 0, active_ns = 0, span_ns = 0;
    for (size_t i = 0; i < launch_count; i++) {
        const struct truth *t = &launches[i];
        double warps = warp_ns_of(t), ns = (double)(t->end_ns - t->start_ns);
        CHECK(t->achieved > 0 && t->achieved <= 1 && t->elapsed <= t->achieved * (1 + 1e-9));
        NEAR(t->elapsed, warps / (ns * SMS * MOST_WARPS));
        warp_ns += warps;
        block_ns += t->block_ns_total;
        blocks += t->blocks;
        active_ns += warps / (t->achieved * MOST_WARPS);
        span_ns += ns;
    }
    NEAR(sum_of(OCC_COUNTER_WARPS), warp_ns * ghz);
    NEAR(sum_of(OCC_COUNTER_BLOCKS), block_ns * ghz);
    NEAR(sum_of(OCC_COUNTER_LAUNCHED), blocks);
    NEAR(sum_of(OCC_COUNTER_ELAPSED), (double)sample_count * INTERVAL_NS * ghz);
    if (alone) {
        NEAR(sum_of(OCC_COUNTER_ACTIVE), active_ns * ghz);
        NEAR(sum_of(OCC_COUNTER_ACTIVE_MAX), span_ns * ghz);
    } else {
        CHECK(sum_of(OCC_COUNTER_ACTIVE) <= active_ns * ghz * (1 + 1e-9));
    }
    CHECK(sum_of(OCC_COUNTER_ACTIVE_MIN) * SMS <= sum_of(OCC_COUNTER_ACTIVE));
    CHECK(sum_of(OCC_COUNTER_ACTIVE_MIN) > 0);
}

static void count_main(void (*work)(void), bool alone)
{
    start_launcher(work);
    start_sampling(set_of_chip("GH100", 0));
    finish_launcher();
    finish_sampling();
    read_truth();
    check_sums(alone);
}

static void in_turn(void)
{
    count_main(launch_one_after_the_other, true);
    CHECK_EQUAL(launch_count, 5);
    NEAR(launches[0].achieved, 0.5);
    NEAR(launches[0].elapsed, 0.5);
    NEAR(launches[1].achieved, 0.125);
    NEAR(launches[1].elapsed, 0.0625);
}

static void unequal(void)
{
    count_main(launch_one_after_the_other, true);
    CHECK(launches[0].achieved < 0.5 && launches[0].elapsed < 0.45);
}

static void together(void)
{
    count_main(launch_side_by_side, false);
    CHECK_EQUAL(launch_count, 30);
}

static void unequal_warps(void)
{
    warp_imbalance = 0.4;
    count_main(launch_one_after_the_other, true);
    CHECK(launches[0].achieved > 0.39 && launches[0].achieved < 0.41);
}

static void launch_heavy(void)
{
    launch("heavy", 10000, 128, NULL);
}

/* All blocks but the last wave wait for registers. */
static void reasons(void)
{
    start_launcher(launch_heavy);
    start_sampling(set_of_chip("GH100", 1));
    finish_launcher();
    finish_sampling();
    read_truth();
    const struct truth *t = &launches[0];
    CHECK(t->waves > 2);
    NEAR(sum_of(OCC_COUNTER_STALL_REGISTERS),
         ((double)(t->end_ns - t->start_ns) - t->block_ns) * SMS / 2 * ghz);
    CHECK(sum_of(OCC_COUNTER_STALL_SMEM) == 0 && sum_of(OCC_COUNTER_STALL_BLOCKS) == 0 &&
          sum_of(OCC_COUNTER_STALL_WARPS) == 0 && sum_of(OCC_COUNTER_STALL_BARRIERS) == 0);
}

static void launch_two_heavy(void)
{
    CUstream stream;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    launch("heavy", 10000, 128, NULL);
    launch("heavy", 10000, 128, stream);
}

/* A TPC's stall time is at most the elapsed time, even if several launches wait. */
static void both_wait(void)
{
    start_launcher(launch_two_heavy);
    start_sampling(set_of_chip("GH100", 1));
    finish_launcher();
    finish_sampling();
    double most = 0, whole = INTERVAL_NS * SMS / 2 * ghz;
    CHECK_EQUAL(set->counter[0], OCC_COUNTER_STALL_REGISTERS);
    for (size_t i = 0; i < sample_count; i++)
        most = fmax(most, samples[i].value[0]);
    NEAR(most, whole);
}

/* Compares the percent of all units over launches of two kernels with the truth file. */
static void utilization(void)
{
    start_launcher(launch_one_after_the_other);
    start_sampling(set_of_chip("GH100", 2));
    finish_launcher();
    finish_sampling();
    read_truth();
    double active_ns = sum_of(OCC_COUNTER_ACTIVE) / SMS / ghz, issued_ns = 0, told_active_ns = 0;
    for (int i = 1; i < SIM_UNITS_TOLD; i++) {
        double told_ns = 0;
        for (size_t k = 0; k < launch_count; k++)
            told_ns += launches[k].busy[i] * (double)(launches[k].end_ns - launches[k].start_ns);
        CHECK(told_ns > 0);
        NEAR(sum_of((enum occ_counter)(OCC_COUNTER_UTILIZATION + i)) / 100 * INTERVAL_NS, told_ns);
    }
    for (size_t k = 0; k < launch_count; k++) {
        const struct truth *t = &launches[k];
        double own_ns = (double)(t->end_ns - t->start_ns) * t->elapsed / t->achieved;
        told_active_ns += own_ns;
        issued_ns += t->busy[OCC_UTILIZATION_ISSUE] * own_ns;
    }
    NEAR(active_ns, told_active_ns);
    NEAR(sum_of(OCC_COUNTER_UTILIZATION) / 100 * INTERVAL_NS, issued_ns);
    /* half of the blocks issue half of the instructions, unless a unit is at its maximum */
    CHECK(launches[0].busy[OCC_UTILIZATION_ISSUE] > launches[1].busy[OCC_UTILIZATION_ISSUE]);
}

static void nobody_tells(void)
{
    unsetenv("OCCSIM_COUNTERS");
    start_cupti();
    make_host();
    CHECK_EQUAL(enable(&sampling), CUPTI_ERROR_NOT_SUPPORTED);
}

static void garbage(void)
{
    char path[128];
    open_sampling(set_of_chip("GH100", 0));
    disable();
    DIR *dir = opendir(directory);
    struct dirent *entry;
    unsigned files = 0;
    CHECK(dir != NULL);
    while ((entry = readdir(dir))) {
        if (!strstr(entry->d_name, ".segments"))
            continue;
        snprintf(path, sizeof path, "%s/%.64s", directory, entry->d_name);
        FILE *file = fopen(path, "we");
        CHECK(file &&
              fputs("this is no record of anything, but it is long enough to be taken for one", file) >= 0);
        fclose(file);
        files++;
    }
    closedir(dir);
    CHECK_EQUAL(files, 1);
    OK(enable(&sampling));
    OK(configure(INTERVAL_NS, AMPLE, TIME, LATEST));
    make_image();
    begin_sampling();
    finish_sampling();
    CHECK(sample_count > 0 && sum_of(OCC_COUNTER_WARPS) == 0);
}

/* Gives every case an empty directory. */
static void clean_directory(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s/*", directory);
    assert_int_equal(system(command), 0);
}

#define COUNT(function, ...)                                                                                 \
    do {                                                                                                     \
        clean_directory();                                                                                   \
        RUN(function, setting, truth_setting __VA_OPT__(, ) __VA_ARGS__);                                    \
    } while (0)

static void test_counting(void **state)
{
    (void)state;
    COUNT(in_turn);
    COUNT(in_turn, "OCCSIM_CLOCK=ahead");
    COUNT(together);
    COUNT(together, "OCCSIM_BLOCK_NS=200000"); /* launches longer than samples */
    COUNT(unequal, "OCCSIM_IMBALANCE=70");
    COUNT(together, "OCCSIM_IMBALANCE=30");
    COUNT(together, "OCCSIM_RAMP_NS=30000");
    COUNT(unequal, "OCCSIM_RAMP_NS=30000", "OCCSIM_IMBALANCE=70");
    COUNT(unequal_warps, "OCCSIM_WARP_IMBALANCE=40");
    COUNT(reasons);
    COUNT(both_wait, "OCCSIM_BLOCK_NS=200000");
    COUNT(utilization);
    COUNT(nobody_tells);
    COUNT(garbage, "OCCSIM_LOG=/dev/null");
}

/* ---- times ---- */

static int64_t expected_offset_ns;

/* The first sample with a count contains the start of the launch. */
static void offset(void)
{
    start_launcher(launch_heavy);
    start_sampling(set_of_chip("GH100", 0));
    finish_launcher();
    finish_sampling();
    read_truth();
    size_t first = 0;
    while (first < sample_count && samples[first].value[0] <= 0)
        first++;
    CHECK(first > 0 && first < sample_count);
    CHECK(samples[first].start_ns - (uint64_t)expected_offset_ns <= launches[0].start_ns);
    CHECK(samples[first].end_ns - (uint64_t)expected_offset_ns > launches[0].start_ns);
    CHECK_EQUAL(samples[0].start_ns, 0); /* the first start is meaningless */
    for (size_t i = 1; i < sample_count; i++)
        CHECK_EQUAL(samples[i].start_ns, samples[i - 1].end_ns);
}

static void drift(void)
{
    start_sampling(set_of_chip("GH100", 0));
    pass_time(10 * INTERVAL_NS);
    finish_sampling();
    CHECK(sample_count > 5);
    for (size_t i = 1; i < sample_count; i++)
        CHECK(llabs((long long)(samples[i].end_ns - samples[i].start_ns) - INTERVAL_NS * 11 / 10) <= 1);
}

static void test_times(void **state)
{
    (void)state;
    COUNT(offset);
    expected_offset_ns = 250000;
    COUNT(offset, "OCCSIM_COUNTER_OFFSET_NS=250000");
    expected_offset_ns = -3000000;
    COUNT(offset, "OCCSIM_COUNTER_OFFSET_NS=-3000000");
    COUNT(drift, "OCCSIM_COUNTER_DRIFT_PPM=100000");
}

/* ---- chips, sets and passes ---- */

static const char *expected_chip;

static void chip(void)
{
    const struct occ_chip_sets *sets = occ_chip_sets_find(expected_chip);
    start_cupti();
    CUpti_Device_GetChipName_Params name = {.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE};
    OK(cuptiDeviceGetChipName(&name));
    CHECK(strcmp(name.pChipName, expected_chip) == 0);
    name.deviceIndex = 1;
    CHECK_EQUAL(cuptiDeviceGetChipName(&name), CUPTI_ERROR_INVALID_DEVICE);
    OK(enable(&sampling));
    for (uint32_t i = 0; i < sets->n; i++) {
        make_host();
        OK(add_metrics(sets->sets[i]->metric, sets->sets[i]->n));
        CHECK_EQUAL(make_config(), 1);
        CHECK_EQUAL(configure(INTERVAL_NS, AMPLE, TIME, OLDEST),
                    sets->system_clock_only ? CUPTI_ERROR_NOT_SUPPORTED : CUPTI_SUCCESS);
        CHECK_EQUAL(configure(INTERVAL_NS, AMPLE, CLOCKS, LATEST),
                    sets->keep_oldest ? CUPTI_ERROR_NOT_SUPPORTED : CUPTI_SUCCESS);
        OK(configure(INTERVAL_NS, AMPLE, CLOCKS, OLDEST));
    }
    OK(add_metrics(sets->sets[0]->metric, sets->sets[0]->n)); /* two sets in one configuration */
    CHECK_EQUAL(make_config(), 2);
    CHECK_EQUAL(configure(INTERVAL_NS, AMPLE, CLOCKS, OLDEST), CUPTI_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(add_metrics((const char *const[]){"sm__nonsense.sum"}, 1), CUPTI_ERROR_INVALID_METRIC_NAME);
    memset(config, 0x5a, sizeof config);
    CHECK_EQUAL(configure(INTERVAL_NS, AMPLE, CLOCKS, OLDEST), CUPTI_ERROR_INVALID_PARAMETER);
}

static void test_chips(void **state)
{
    (void)state;
    expected_chip = "GH100";
    COUNT(chip);
    expected_chip = "GA100";
    COUNT(chip, "OCCSIM_GPU=a100");
    expected_chip = "TU104";
    COUNT(chip, "OCCSIM_GPU=t4");
}

/* ---- one sampler, a full buffer, virtual time ---- */

static void enable_elsewhere(CUptiResult expected)
{
    char byte = 1;
    CHECK_EQUAL(write(go[1], &byte, 1), 1);
    CHECK_EQUAL(read(go[0], &byte, 1), 1);
    CHECK_EQUAL((signed char)byte, (signed char)expected);
}

static void busy(void)
{
    int there[2], back[2];
    char byte;
    OK(pipe(there));
    OK(pipe(back));
    pid_t other = fork();
    CHECK(other >= 0);
    if (other == 0) {
        close(there[1]);
        start_cupti();
        while (read(there[0], &byte, 1) == 1) {
            byte = (char)enable(&sampling);
            if (byte == 0)
                disable();
            CHECK_EQUAL(write(back[1], &byte, 1), 1);
        }
        _exit(0);
    }
    go[0] = back[0];
    go[1] = there[1];
    enable_elsewhere(CUPTI_SUCCESS);
    open_sampling(set_of_chip("GH100", 0));
    CUpti_PmSampling_Object *second;
    CHECK_EQUAL(enable(&second), CUPTI_ERROR_INVALID_OPERATION);
    enable_elsewhere(CUPTI_ERROR_HARDWARE_BUSY);
    disable();
    enable_elsewhere(CUPTI_SUCCESS);
    close(there[1]);
    CHECK_EQUAL(waitpid(other, NULL, 0), other);
}

enum { FEW = 4, RAW_SAMPLE_BYTES = 2048 };

/* KEEP_OLDEST: samples from the start; KEEP_LATEST: samples up to the decode, less the programs' time to
 * report. */
static void overflow_in(CUpti_PmSampling_HardwareBuffer_AppendMode mode)
{
    const uint64_t interval_ns = 1000000, telling_ns = 5000000;
    size_t n;
    open_sampling(set_of_chip("GH100", 0));
    OK(configure(interval_ns, (size_t)FEW * RAW_SAMPLE_BYTES, TIME, mode));
    make_image();
    begin_sampling();
    uint64_t started_ns = now_ns();
    pass_time(30 * interval_ns);
    uint64_t decoded_ns = now_ns();
    OK(decode(&n));
    CHECK(n == FEW && overflows == 1);
    CHECK_EQUAL(samples[0].end_ns <= started_ns + interval_ns, mode == OLDEST);
    CHECK_EQUAL(samples[FEW - 1].end_ns + interval_ns + telling_ns >= decoded_ns, mode == LATEST);
    pass_time(30 * interval_ns);
    OK(decode(&n));
    CHECK(n == FEW && overflows == 2);
    CHECK(samples[FEW].start_ns > samples[FEW - 1].end_ns); /* lost samples are a gap */
}

static void overflow_latest(void)
{
    overflow_in(LATEST);
}

static void overflow_oldest(void)
{
    overflow_in(OLDEST);
}

static void virtual_time(void)
{
    start_cupti();
    CHECK_EQUAL(enable(&sampling), CUPTI_ERROR_NOT_SUPPORTED);
    open_device();
    launch_heavy();
    DIR *dir = opendir(directory);
    struct dirent *entry;
    CHECK(dir != NULL);
    while ((entry = readdir(dir)))
        CHECK(!strstr(entry->d_name, "segments"));
    closedir(dir);
}

static void test_limits(void **state)
{
    (void)state;
    COUNT(busy);
    COUNT(overflow_latest);
    COUNT(overflow_oldest);
    COUNT(virtual_time, "OCCSIM_CLOCK=virtual", "OCCSIM_LOG=/dev/null");
}

/* ---- faults ---- */

static void refused(void)
{
    start_cupti();
    CHECK_EQUAL(enable(&sampling), CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
}

static void decode_fails(void)
{
    size_t n;
    start_sampling(set_of_chip("GH100", 0));
    for (int i = 1; i < 10; i++)
        OK(decode(&n));
    for (int i = 10; i < 13; i++)
        CHECK_EQUAL(decode(&n), CUPTI_ERROR_UNKNOWN);
}

static void says_overflow(void)
{
    size_t n;
    start_sampling(set_of_chip("GH100", 0));
    for (unsigned i = 1; i <= 9; i++) {
        OK(decode(&n));
        CHECK_EQUAL(overflows, i / 3);
    }
}

static void backwards(void)
{
    start_sampling(set_of_chip("GH100", 0));
    pass_time(10 * INTERVAL_NS);
    finish_sampling();
    CHECK(sample_count >= 10);
    for (size_t i = 0; i < sample_count; i++)
        CHECK_EQUAL(samples[i].end_ns < samples[i].start_ns, i % 4 == 3);
}

static void test_faults(void **state)
{
    (void)state;
    COUNT(refused, "OCCSIM_FAULT=pm_enable:35");
    COUNT(decode_fails, "OCCSIM_FAULT=pm_decode:999");
    COUNT(says_overflow, "OCCSIM_FAULT=pm_overflow:3");
    COUNT(backwards, "OCCSIM_FAULT=pm_backwards:4");
}

/* ---- requirements of NVIDIA's documentation and of reports about hardware ---- */

static CUptiResult ask_availability(void)
{
    CUpti_PmSampling_GetCounterAvailability_Params p = {
        .structSize = CUpti_PmSampling_GetCounterAvailability_Params_STRUCT_SIZE};
    CUptiResult result = cuptiPmSamplingGetCounterAvailability(&p);
    if (result != CUPTI_SUCCESS)
        return result;
    CHECK(p.counterAvailabilityImageSize <= sizeof availability);
    p.pCounterAvailabilityImage = availability;
    return cuptiPmSamplingGetCounterAvailability(&p);
}

static CUptiResult ask_support(CUpti_Profiler_DeviceSupported_Params *ret)
{
    *ret = (CUpti_Profiler_DeviceSupported_Params){
        .structSize = CUpti_Profiler_DeviceSupported_Params_STRUCT_SIZE, .api = CUPTI_PROFILER_PM_SAMPLING};
    return cuptiProfilerDeviceSupported(ret);
}

static void nothing_before_initialize(void)
{
    CUpti_Profiler_DeviceSupported_Params support;
    OK(cuInit(0));
    CHECK_EQUAL(enable(&sampling), CUPTI_ERROR_NOT_INITIALIZED);
    CHECK_EQUAL(ask_availability(), CUPTI_ERROR_NOT_INITIALIZED);
    CHECK_EQUAL(ask_support(&support), CUPTI_ERROR_NOT_INITIALIZED);
    start_cupti();
    OK(ask_availability());
    OK(ask_support(&support));
    CHECK_EQUAL(support.isSupported, CUPTI_PROFILER_CONFIGURATION_SUPPORTED);
    OK(enable(&sampling));
    CHECK_EQUAL(ask_availability(), CUPTI_ERROR_UNKNOWN); /* while a session is active */
    disable();
    OK(ask_availability());
}

static void unsupported(void)
{
    CUpti_Profiler_DeviceSupported_Params support;
    start_cupti();
    OK(ask_support(&support));
    CHECK_EQUAL(support.isSupported, CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED);
    CHECK_EQUAL(support.vGpu, CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED);
    CHECK_EQUAL(support.wsl, CUPTI_PROFILER_CONFIGURATION_SUPPORTED);
}

/* Bits 7 to 11 and 18: the reasons and the launched blocks. */
static void unavailable(void)
{
    start_cupti();
    OK(ask_availability());
    make_host();
    CHECK_EQUAL(add_metrics((const char *const[]){"sm__ctas_launched.sum"}, 1),
                CUPTI_ERROR_INVALID_METRIC_NAME);
    CHECK_EQUAL(add_metrics(set_of_chip("GH100", 1)->metric, 1), CUPTI_ERROR_INVALID_METRIC_NAME);
    OK(add_metrics(set_of_chip("GH100", 0)->metric, 6));
}

static void second_configuration(void)
{
    size_t n;
    start_sampling(set_of_chip("GH100", 0));
    OK(decode(&n));
    finish_sampling();
    OK(configure(INTERVAL_NS, AMPLE, TIME, LATEST));
    begin_sampling();
    CHECK_EQUAL(decode(&n), CUPTI_ERROR_UNKNOWN);
    disable();
    OK(enable(&sampling));
    OK(configure(INTERVAL_NS, AMPLE, TIME, LATEST));
    make_image();
    begin_sampling();
    OK(decode(&n));
}

/* The interval is long, so that the image cannot fill up meanwhile. */
static void stop_reasons(void)
{
    size_t n;
    open_sampling(set_of_chip("GH100", 0));
    OK(configure(1000000000, AMPLE, TIME, LATEST));
    make_image();
    begin_sampling();
    for (unsigned i = 1; i <= 6; i++) {
        OK(decode(&n));
        CHECK_EQUAL(stop_reason, i % 2 ? CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS
                                       : CUPTI_PM_SAMPLING_DECODE_STOP_REASON_OTHER);
    }
}

/* Checks the samples after a full image; with resumes false they are lost. */
static void full_image(bool resumes)
{
    size_t n;
    open_sampling(set_of_chip("GH100", 0));
    OK(configure(INTERVAL_NS, AMPLE, TIME, LATEST));
    make_image_of(4);
    CHECK(image_bytes >= 4 * 23301u); /* an H100's size, with CUPTI 13.0.1 */
    begin_sampling();
    pass_time(100 * (uint64_t)INTERVAL_NS);
    OK(decode(&n));
    CHECK_EQUAL(n, 4);
    CHECK_EQUAL(stop_reason, CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL);
    uint64_t end_ns = samples[3].end_ns;
    pass_time(10 * (uint64_t)INTERVAL_NS);
    OK(decode(&n));
    CHECK_EQUAL(n, 4);
    CHECK_EQUAL(samples[4].start_ns == end_ns, resumes);
}

static void full_image_resumes(void)
{
    full_image(true);
}

static void full_image_loses(void)
{
    full_image(false);
}

/* The library reads the client's configuration at every use. */
static void kept_pointer(void)
{
    size_t n;
    start_sampling(set_of_chip("GH100", 0));
    OK(decode(&n));
    memset(config, 0, sizeof config);
    CHECK_EQUAL(decode(&n), CUPTI_ERROR_UNKNOWN);
}

/* A copy of an empty image is an empty image. */
static void copied_image(void)
{
    start_sampling(set_of_chip("GH100", 0));
    uint8_t *empty = malloc(image_bytes);
    CHECK(empty != NULL);
    memcpy(empty, image, image_bytes);
    for (int i = 0; i < 3; i++) {
        CUpti_PmSampling_DecodeData_Params p = {.structSize = CUpti_PmSampling_DecodeData_Params_STRUCT_SIZE,
                                                .pPmSamplingObject = sampling,
                                                .pCounterDataImage = image,
                                                .counterDataImageSize = image_bytes};
        CUpti_PmSampling_GetCounterDataInfo_Params info = {
            .structSize = CUpti_PmSampling_GetCounterDataInfo_Params_STRUCT_SIZE,
            .pCounterDataImage = image,
            .counterDataImageSize = image_bytes};
        pass_time(100 * (uint64_t)INTERVAL_NS);
        memcpy(image, empty, image_bytes);
        OK(cuptiPmSamplingDecodeData(&p));
        OK(cuptiPmSamplingGetCounterDataInfo(&info));
        CHECK(info.numCompletedSamples > 0);
    }
}

static CUptiResult decode_again(void)
{
    CUpti_PmSampling_DecodeData_Params p = {.structSize = CUpti_PmSampling_DecodeData_Params_STRUCT_SIZE,
                                            .pPmSamplingObject = sampling,
                                            .pCounterDataImage = image,
                                            .counterDataImageSize = image_bytes};
    return cuptiPmSamplingDecodeData(&p);
}

static void one_disable_ends_all(void)
{
    CUpti_PmSampling_Object *other;
    size_t n;
    start_sampling(set_of_chip("GH100", 0));
    OK(decode(&n));
    OK(enable_on(1, &other));
    CUpti_PmSampling_Object *first = sampling;
    sampling = other;
    disable();
    sampling = first;
    CHECK_EQUAL(decode_again(), CUPTI_ERROR_NOT_INITIALIZED);
    CHECK_EQUAL(enable(&other), CUPTI_ERROR_NOT_INITIALIZED);
    start_cupti();
    CHECK_EQUAL(decode_again(), CUPTI_ERROR_INVALID_PARAMETER); /* the object is gone */
    OK(enable(&sampling));
    OK(configure(INTERVAL_NS, AMPLE, TIME, LATEST));
    make_image();
    begin_sampling();
    OK(decode(&n));
}

static void test_strictness(void **state)
{
    (void)state;
    COUNT(nothing_before_initialize);
    COUNT(unsupported, "OCCSIM_FAULT=unsupported:3");
    COUNT(unavailable, "OCCSIM_FAULT=unavailable:266112");
    COUNT(second_configuration, "OCCSIM_FAULT=pm_reuse:999");
    COUNT(stop_reasons);
    COUNT(full_image_resumes);
    COUNT(full_image_loses, "OCCSIM_FAULT=pm_noresume:1");
    COUNT(kept_pointer);
    COUNT(copied_image);
    COUNT(one_disable_ends_all, "OCCSIM_GPU=h200,h200", "OCCSIM_FAULT=pm_finalizes:15");
}

/* ---- NVML's GPM ---- */

/* Layout of NVML's public reference. */
struct gpm_get {
    unsigned version, n;
    void *sample1, *sample2;
    struct {
        unsigned id;
        int result;
        double value;
        char *words[3];
    } metrics[3];
};

static struct {
    int (*init)(void);
    int (*handle)(const char *uuid, void **device);
    int (*support)(void *device, unsigned *support);
    int (*sample_alloc)(void **sample);
    int (*sample_free)(void *sample);
    int (*sample_get)(void *device, void *sample);
    int (*metrics_get)(struct gpm_get *get);
} nvml;

static void bind(const char *symbol, void *function)
{
    static void *library;
    if (!library)
        library = dlopen(SIM_TEST_LIBRARIES "/libnvidia-ml.so.1", RTLD_NOW);
    CHECK(library != NULL);
    void *address = dlsym(library, symbol);
    CHECK(address != NULL);
    memcpy(function, &address, sizeof address);
}

static const char *expected_uuid; /* "occsim-h200  -00" as bytes */

/* Returns false if the device has no GPM. */
static bool open_gpm(void **device)
{
    unsigned support[2] = {1, 7}; /* version, answer */
    bind("nvmlInit_v2", &nvml.init);
    bind("nvmlDeviceGetHandleByUUID", &nvml.handle);
    bind("nvmlGpmQueryDeviceSupport", &nvml.support);
    bind("nvmlGpmSampleAlloc", &nvml.sample_alloc);
    bind("nvmlGpmSampleFree", &nvml.sample_free);
    bind("nvmlGpmSampleGet", &nvml.sample_get);
    bind("nvmlGpmMetricsGet", &nvml.metrics_get);
    CHECK(nvml.handle(expected_uuid, device) != 0); /* before nvmlInit */
    OK(nvml.init());
    CHECK(nvml.handle("GPU-00000000-0000-0000-0000-000000000000", device) != 0);
    OK(nvml.handle(expected_uuid, device));
    OK(nvml.support(*device, support));
    support[0] = 2;
    CHECK(nvml.support(*device, support) != 0);
    return support[1] == 1;
}

/* GPM counts all launches between two samples; the elapsed time is known within bounds. */
static void gpm(void)
{
    void *device, *looks[2];
    start_launcher(launch_one_after_the_other);
    CHECK(open_gpm(&device));
    OK(nvml.sample_alloc(&looks[0]));
    OK(nvml.sample_alloc(&looks[1]));
    uint64_t before_ns = now_ns();
    OK(nvml.sample_get(device, looks[0]));
    uint64_t from_ns = now_ns();
    finish_launcher();
    pass_time(10000000); /* programs report within 5 ms */
    uint64_t to_ns = now_ns();
    OK(nvml.sample_get(device, looks[1])); /* a sample in between has no effect */
    OK(nvml.sample_get(device, looks[1]));
    uint64_t after_ns = now_ns();
    struct gpm_get get = {.version = 1, .n = 3, .sample1 = looks[0], .sample2 = looks[1]};
    get.metrics[0].id = 2;
    get.metrics[1].id = 3;
    get.metrics[2].id = 5;
    OK(nvml.metrics_get(&get));
    CHECK(get.metrics[0].result == 0 && get.metrics[1].result == 0 && get.metrics[2].result != 0);
    double warp_ns = 0, active_ns = 0, active = get.metrics[0].value / 100,
           warps = get.metrics[1].value / 100;
    read_truth();
    for (size_t i = 0; i < launch_count; i++) {
        warp_ns += warp_ns_of(&launches[i]);
        active_ns += warp_ns_of(&launches[i]) / (launches[i].achieved * MOST_WARPS);
    }
    NEAR(warps / active, warp_ns / (active_ns * MOST_WARPS));
    CHECK(active * (double)(to_ns - from_ns) * SMS <= active_ns * (1 + 1e-6));
    CHECK(active * (double)(after_ns - before_ns) * SMS >= active_ns * (1 - 1e-6));
    OK(nvml.sample_free(looks[0]));
    OK(nvml.sample_free(looks[1]));
}

static void no_gpm(void)
{
    void *device, *look;
    CHECK(!open_gpm(&device));
    OK(nvml.sample_alloc(&look));
    CHECK_EQUAL(nvml.sample_get(device, look), 3);
    OK(nvml.sample_free(look));
}

static void test_gpm(void **state)
{
    (void)state;
    expected_uuid = "GPU-6f636373-696d-2d68-3230-3020202d3030";
    COUNT(gpm);
    expected_uuid = "GPU-6f636373-696d-2d61-3130-3020202d3031";
    COUNT(no_gpm, "OCCSIM_GPU=h200,a100");
    expected_uuid = "GPU-6f636373-696d-2d74-3420-2020202d3030";
    COUNT(no_gpm, "OCCSIM_GPU=t4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counting), cmocka_unit_test(test_times),  cmocka_unit_test(test_chips),
        cmocka_unit_test(test_limits),   cmocka_unit_test(test_faults), cmocka_unit_test(test_strictness),
        cmocka_unit_test(test_gpm),
    };
    if (!mkdtemp(directory))
        return 1;
    snprintf(setting, sizeof setting, "OCCSIM_COUNTERS=%s", directory);
    snprintf(truth_path, sizeof truth_path, "%s/truth.csv", directory);
    snprintf(truth_setting, sizeof truth_setting, "OCCSIM_TRUTH=%s", truth_path);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clean_directory();
    rmdir(directory);
    return failed;
}
