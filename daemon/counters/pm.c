/*
 * PM sampling through CUPTI: the counters of a whole GPU at a fixed interval, one pass, nothing serialised, no context.
 * The chip's counter sets take turns: the first one most of the time. What is read comes straight from one decode of
 * the hardware buffer; its image is made anew each time, since an image that is full stays full.
 *
 * One thread a source. Nothing here has run on a GPU yet.
 */
#include "pm_cupti.h"
#include "support/clock.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

#define BUFFER_BYTES    (UINT64_C(64) << 20)
#define BUFFER_MOST     (UINT64_C(512) << 20)
#define IMAGE_SAMPLES   4096u
#define MAIN_SET_NS     INT64_C(5000000000) /* then the other set has its turn */
#define OTHER_SET_NS    INT64_C(500000000)
#define SYSTEM_CLOCK_HZ 1000000000 /* about; only where intervals are counted in system clocks */

struct occ_source {
    struct occ_pm_cupti cupti;
    const struct occ_chip_sets *chip;
    struct occ_pm_config configs[OCC_SETS_MOST];
    uint32_t at;                       /* set in use */
    CUpti_PmSampling_Object *sampling; /* NULL: not enabled */
    bool started;
    size_t device;
    int64_t interval_ns, turn_ends_ns; /* monotonic */
    uint64_t buffer_bytes;
    uint8_t *image;
    size_t image_bytes;
    size_t next, completed; /* samples of the image that are not handed out yet */
    bool first;             /* the next decode's first sample has a start that means nothing */
    int64_t last_end_ns;
    struct occ_source_stats stats;
};

/* ---- begin and end ---- */

static void stop(struct occ_source *s)
{
    if (!s->started)
        return;
    CUpti_PmSampling_Stop_Params stop = {.structSize = CUpti_PmSampling_Stop_Params_STRUCT_SIZE,
                                         .pPmSamplingObject = s->sampling};
    (void)s->cupti.stop(&stop);
    s->started = false;
}

static void pm_close(struct occ_source *s)
{
    if (!s)
        return;
    stop(s);
    if (s->sampling) {
        CUpti_PmSampling_Disable_Params disable = {.structSize = CUpti_PmSampling_Disable_Params_STRUCT_SIZE,
                                                   .pPmSamplingObject = s->sampling};
        (void)s->cupti.disable(&disable);
    }
    for (uint32_t i = 0; s->chip && i < s->chip->n; i++)
        occ_pm_config_free(&s->cupti, &s->configs[i]);
    free(s->image);
    free(s);
}

static CUptiResult make_image(struct occ_source *s)
{
    const char *names[OCC_SET_METRICS_MOST];
    const struct occ_counter_set *set = s->configs[s->at].set;
    for (uint32_t i = 0; i < set->n; i++)
        names[i] = set->metric[i];
    CUpti_PmSampling_GetCounterDataSize_Params size = {
        .structSize = CUpti_PmSampling_GetCounterDataSize_Params_STRUCT_SIZE,
        .pPmSamplingObject = s->sampling,
        .pMetricNames = names,
        .numMetrics = set->n,
        .maxSamples = IMAGE_SAMPLES};
    CUptiResult result = s->cupti.data_size(&size);
    if (result != CUPTI_SUCCESS)
        return result;
    free(s->image);
    s->image_bytes = size.counterDataSize;
    s->stats.bytes_per_sample = s->image_bytes / IMAGE_SAMPLES;
    s->image = malloc(s->image_bytes);
    return s->image ? CUPTI_SUCCESS : CUPTI_ERROR_OUT_OF_MEMORY;
}

static CUptiResult empty_image(struct occ_source *s)
{
    CUpti_PmSampling_CounterDataImage_Initialize_Params begin = {
        .structSize = CUpti_PmSampling_CounterDataImage_Initialize_Params_STRUCT_SIZE,
        .pPmSamplingObject = s->sampling,
        .counterDataSize = s->image_bytes,
        .pCounterData = s->image};
    s->next = s->completed = 0;
    return s->cupti.data_initialize(&begin);
}

/* Sets the set in use and starts. */
static enum occ_source_state start(struct occ_source *s, struct occ_error *err)
{
    const struct occ_pm_config *config = &s->configs[s->at];
    uint64_t clocks = (uint64_t)(s->interval_ns * (SYSTEM_CLOCK_HZ / 1000000) / 1000);
    CUpti_PmSampling_SetConfig_Params set = {
        .structSize = CUpti_PmSampling_SetConfig_Params_STRUCT_SIZE,
        .pPmSamplingObject = s->sampling,
        .configSize = config->image_bytes,
        .pConfig = config->image,
        .hardwareBufferSize = s->buffer_bytes,
        .samplingInterval = s->chip->system_clock_only ? clocks : (uint64_t)s->interval_ns,
        .triggerMode = s->chip->system_clock_only ? CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL
                                                  : CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL,
        .hwBufferAppendMode = s->chip->keep_oldest
                                  ? CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST
                                  : CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST};
    CUptiResult result = s->cupti.set_config(&set);
    if (result != CUPTI_SUCCESS)
        return occ_pm_fail(&s->cupti, result, "configuring PM sampling", err);
    result = make_image(s);
    if (result == CUPTI_SUCCESS)
        result = empty_image(s);
    if (result == CUPTI_SUCCESS) {
        CUpti_PmSampling_Start_Params begin = {.structSize = CUpti_PmSampling_Start_Params_STRUCT_SIZE,
                                               .pPmSamplingObject = s->sampling};
        result = s->cupti.start(&begin);
    }
    if (result != CUPTI_SUCCESS)
        return occ_pm_fail(&s->cupti, result, "starting PM sampling", err);
    s->started = s->first = true;
    s->turn_ends_ns = occ_monotonic_ns() + (s->at == 0 ? MAIN_SET_NS : OTHER_SET_NS);
    return OCC_SOURCE_OK;
}

/* The driver must be up before the profiler; a context is not needed. */
static enum occ_source_state start_driver(struct occ_error *err)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    int (*init)(unsigned flags) = NULL;
    void *address = driver ? dlsym(driver, "cuInit") : NULL;
    *(void **)(&init) = address;
    if (init && init(0) == 0)
        return OCC_SOURCE_OK;
    (void)occ_fail(err, OCC_E_NOT_FOUND, "the CUDA driver does not start");
    return OCC_SOURCE_NO_DRIVER;
}

static enum occ_source_state find_chip(struct occ_source *s, const char **ret_chip, struct occ_error *err)
{
    CUpti_Profiler_Initialize_Params initialize = {.structSize =
                                                       CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
    CUpti_Device_GetChipName_Params name = {.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE,
                                            .deviceIndex = s->device};
    CUptiResult result = s->cupti.profiler_initialize(&initialize);
    if (result == CUPTI_SUCCESS)
        result = s->cupti.chip_name(&name);
    if (result != CUPTI_SUCCESS)
        return occ_pm_fail(&s->cupti, result, "asking for the chip", err);
    *ret_chip = name.pChipName;
    s->chip = occ_chip_sets_find(name.pChipName);
    return OCC_SOURCE_OK;
}

static enum occ_source_state make_configs(struct occ_source *s, const char *chip, struct occ_error *err)
{
    CUpti_PmSampling_GetCounterAvailability_Params ask = {
        .structSize = CUpti_PmSampling_GetCounterAvailability_Params_STRUCT_SIZE, .deviceIndex = s->device};
    CUptiResult result = s->cupti.availability(&ask);
    uint8_t *image = result == CUPTI_SUCCESS ? malloc(ask.counterAvailabilityImageSize) : NULL;
    if (image) {
        ask.pCounterAvailabilityImage = image;
        result = s->cupti.availability(&ask);
    }
    enum occ_source_state state = result != CUPTI_SUCCESS
                                      ? occ_pm_fail(&s->cupti, result, "asking for the chip's counters", err)
                                      : OCC_SOURCE_OK;
    for (uint32_t i = 0; i < s->chip->n && state == OCC_SOURCE_OK; i++)
        state = occ_pm_config_make(&s->cupti, chip, image, s->chip->sets[i], &s->configs[i], err);
    free(image);
    return state;
}

static enum occ_source_state enable(struct occ_source *s, struct occ_error *err)
{
    CUpti_PmSampling_Enable_Params begin = {.structSize = CUpti_PmSampling_Enable_Params_STRUCT_SIZE,
                                            .deviceIndex = s->device};
    CUptiResult result = s->cupti.enable(&begin);
    if (result != CUPTI_SUCCESS)
        return occ_pm_fail(&s->cupti, result, "enabling PM sampling", err);
    s->sampling = begin.pPmSamplingObject;
    return OCC_SOURCE_OK;
}

static enum occ_source_state begin(struct occ_source *s, const char *cupti_path, struct occ_error *err)
{
    const char *chip = NULL;
    enum occ_source_state state = start_driver(err);
    if (state == OCC_SOURCE_OK)
        state = occ_pm_bind(cupti_path, &s->cupti, err);
    if (state == OCC_SOURCE_OK)
        state = find_chip(s, &chip, err);
    if (state == OCC_SOURCE_OK)
        state = make_configs(s, chip, err);
    if (state == OCC_SOURCE_OK)
        state = enable(s, err);
    return state == OCC_SOURCE_OK ? start(s, err) : state;
}

static enum occ_source_state pm_open(const struct occ_source_options *options, struct occ_source **ret_source,
                                     struct occ_error *err)
{
    struct occ_source *s = calloc(1, sizeof *s);
    *ret_source = NULL;
    if (!s) {
        (void)occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
        return OCC_SOURCE_FAILED;
    }
    s->device = options->device;
    s->interval_ns = options->interval_ns;
    s->buffer_bytes = options->buffer_bytes ? options->buffer_bytes : BUFFER_BYTES;
    s->buffer_bytes = s->buffer_bytes < BUFFER_MOST ? s->buffer_bytes : BUFFER_MOST;
    enum occ_source_state state = begin(s, options->cupti_path, err);
    if (state == OCC_SOURCE_OK)
        *ret_source = s;
    else
        pm_close(s);
    return state;
}

/* ---- reading ---- */

static enum occ_source_state decode(struct occ_source *s, struct occ_error *err)
{
    CUptiResult result = empty_image(s);
    CUpti_PmSampling_DecodeData_Params decode = {.structSize = CUpti_PmSampling_DecodeData_Params_STRUCT_SIZE,
                                                 .pPmSamplingObject = s->sampling,
                                                 .pCounterDataImage = s->image,
                                                 .counterDataImageSize = s->image_bytes};
    CUpti_PmSampling_GetCounterDataInfo_Params info = {
        .structSize = CUpti_PmSampling_GetCounterDataInfo_Params_STRUCT_SIZE,
        .pCounterDataImage = s->image,
        .counterDataImageSize = s->image_bytes};
    if (result == CUPTI_SUCCESS)
        result = s->cupti.decode(&decode);
    s->stats.overflows += decode.overflow != 0 || result == CUPTI_ERROR_OUT_OF_MEMORY;
    if (result == CUPTI_ERROR_OUT_OF_MEMORY) { /* the hardware's buffer has overflowed: from the beginning */
        stop(s);
        return start(s, err);
    }
    if (result == CUPTI_SUCCESS)
        result = s->cupti.data_info(&info);
    if (result != CUPTI_SUCCESS)
        return occ_pm_fail(&s->cupti, result, "decoding samples", err);
    s->completed = info.numCompletedSamples;
    s->next = s->first && s->completed > 0 ? 1 : 0;
    s->first = s->first && s->completed == 0;
    return OCC_SOURCE_OK;
}

static CUptiResult take_values(struct occ_source *s, size_t index, struct occ_sample *sample)
{
    const struct occ_pm_config *config = &s->configs[s->at];
    const char *names[OCC_SET_METRICS_MOST];
    double values[OCC_SET_METRICS_MOST] = {0};
    for (uint32_t i = 0; i < config->set->n; i++)
        names[i] = config->set->metric[i];
    CUpti_Profiler_Host_EvaluateToGpuValues_Params evaluate = {
        .structSize = CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE,
        .pHostObject = config->host,
        .pCounterDataImage = s->image,
        .counterDataImageSize = s->image_bytes,
        .rangeIndex = index,
        .ppMetricNames = names,
        .numMetrics = config->set->n,
        .pMetricValues = values};
    CUptiResult result = s->cupti.evaluate(&evaluate);
    for (int i = 0; i < OCC_COUNTER_COUNT; i++)
        sample->value[i] = NAN;
    for (uint32_t i = 0; i < config->set->n && result == CUPTI_SUCCESS; i++)
        sample->value[config->set->counter[i]] = values[i];
    return result;
}

/* False: a sample that cannot be. */
static bool take_sample(struct occ_source *s, size_t index, struct occ_sample *sample)
{
    CUpti_PmSampling_CounterData_GetSampleInfo_Params info = {
        .structSize = CUpti_PmSampling_CounterData_GetSampleInfo_Params_STRUCT_SIZE,
        .pPmSamplingObject = s->sampling,
        .pCounterDataImage = s->image,
        .counterDataImageSize = s->image_bytes,
        .sampleIndex = index};
    if (s->cupti.sample_info(&info) != CUPTI_SUCCESS || info.startTimestamp >= info.endTimestamp ||
        info.endTimestamp > INT64_MAX || take_values(s, index, sample) != CUPTI_SUCCESS)
        return false;
    sample->start_ns = (int64_t)info.startTimestamp;
    sample->end_ns = (int64_t)info.endTimestamp;
    s->stats.gaps += s->last_end_ns != 0 && sample->start_ns - s->last_end_ns > s->interval_ns / 2;
    s->last_end_ns = sample->end_ns;
    return true;
}

/* The other set's turn. */
static enum occ_source_state rotate(struct occ_source *s, struct occ_error *err)
{
    if (s->chip->n < 2 || occ_monotonic_ns() < s->turn_ends_ns)
        return OCC_SOURCE_OK;
    stop(s);
    s->at = (s->at + 1) % s->chip->n;
    s->stats.rotations++;
    s->last_end_ns = 0;
    return start(s, err);
}

static enum occ_source_state pm_read(struct occ_source *s, struct occ_sample *samples, size_t max,
                                     size_t *ret_n, struct occ_error *err)
{
    enum occ_source_state state = OCC_SOURCE_OK;
    *ret_n = 0;
    if (s->next == s->completed)
        state = decode(s, err);
    while (state == OCC_SOURCE_OK && *ret_n < max && s->next < s->completed) {
        bool good = take_sample(s, s->next++, &samples[*ret_n]);
        *ret_n += good;
        s->stats.bad_samples += !good;
    }
    s->stats.samples += *ret_n;
    if (state == OCC_SOURCE_OK && s->next == s->completed)
        state = rotate(s, err);
    return state;
}

static enum occ_source_state pm_set_interval(struct occ_source *s, int64_t interval_ns, struct occ_error *err)
{
    stop(s);
    s->interval_ns = interval_ns;
    s->last_end_ns = 0;
    return start(s, err);
}

static void pm_get_stats(const struct occ_source *s, struct occ_source_stats *ret_stats)
{
    *ret_stats = s->stats;
}

const struct occ_source_kind occ_source_pm = {.word = "pm",
                                              .open = pm_open,
                                              .read = pm_read,
                                              .set_interval = pm_set_interval,
                                              .get_stats = pm_get_stats,
                                              .close = pm_close};
