/*
 * PM sampling in the CUPTI double: sampling objects and their hardware buffer. See cupti_pm.h.
 *
 * A sample is computed when it is decoded, at the earliest LAG_NS after its end. The hardware buffer is
 * therefore a count of samples: due and not decoded. A full buffer loses the newest or the oldest samples, as
 * configured, and the next decode reports an overflow. The first sample after a start has the start time 0,
 * as the real library's start time is meaningless. Intervals in system clocks use SYSTEM_CLOCK_HZ.
 *
 * Threads: any, under `lock`.
 */
#include "cupti_pm.h"

#include "env.h"
#include "segments.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LAG_NS           UINT64_C(5000000)
#define SYSTEM_CLOCK_HZ  UINT64_C(1000000000)
#define RAW_SAMPLE_BYTES 2048  /* bytes of the hardware buffer per sample */
#define SAMPLE_BYTES     23301 /* of a counter data image; seen on an H100 with CUPTI 13.0.1 */
#define LEAST_INTERVAL   1000
#define FAULTY_DECODES   9 /* decodes before the fault pm_decode */

enum { MOST_OBJECTS = 16 };

struct CUpti_PmSampling_Object {
    struct CUpti_PmSampling_Object *next; /* next object that ended with a finalize of CUPTI */
    size_t device;
    struct sim_tail *tail;
    int lock_fd; /* -1: none */
    uint64_t enabled_ns;
    const uint8_t *client_config; /* not copied: the client keeps it until it disables sampling */
    size_t client_config_bytes;
    struct sim_config config; /* magic 0: not configured */
    unsigned configurations;
    uint64_t interval_ns, capacity;
    bool keep_oldest, started, first;
    uint64_t next_ns;              /* start of the oldest sample in the hardware buffer */
    uint64_t lost_ns, lost_end_ns; /* lost samples of a full buffer; 0: none */
    uint64_t stopped_ns;
    struct sim_image image;    /* an empty image, for GetCounterDataSize */
    uint64_t decodes, samples; /* for faults */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUpti_PmSampling_Object *objects[MOST_OBJECTS]; /* by device */
static CUpti_PmSampling_Object *ended;                 /* clients may still have pointers to these */

/* ---- initialization and end ---- */

static bool is_initialized; /* guarded by `lock` */
static bool was_finalized;  /* by a Disable, with the fault */

static CUptiResult initialized_locked(void)
{
    CUptiResult finalized = (CUptiResult)sim_fault(SIM_FAULT_PM_FINALIZES);
    if (is_initialized)
        return CUPTI_SUCCESS;
    return was_finalized && finalized ? finalized : CUPTI_ERROR_NOT_INITIALIZED;
}

CUptiResult sim_profiler_initialized(void)
{
    pthread_mutex_lock(&lock);
    CUptiResult result = initialized_locked();
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- devices ---- */

static CUptiResult find_device(size_t index, const struct sim_gpu **ret_gpu, uint8_t *ret_uuid)
{
    const struct sim_driver *driver = sim_cupti_driver();
    if (!driver)
        return CUPTI_ERROR_NOT_INITIALIZED;
    *ret_gpu = index < MOST_OBJECTS ? driver->device(index, ret_uuid) : NULL;
    return *ret_gpu ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_DEVICE;
}

CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params *pParams)
{
    if (!SIM_PARAMS_GOOD(pParams, CUpti_Profiler_Initialize_Params))
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    if (!sim_cupti_driver())
        return sim_cupti_result(CUPTI_ERROR_NOT_INITIALIZED);
    pthread_mutex_lock(&lock);
    is_initialized = true;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params *pParams)
{
    const struct sim_gpu *gpu = NULL;
    uint8_t uuid[SIM_UUID_BYTES];
    if (!SIM_PARAMS_GOOD(pParams, CUpti_Device_GetChipName_Params))
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    CUptiResult result = sim_profiler_initialized();
    if (result == CUPTI_SUCCESS)
        result = find_device(pParams->deviceIndex, &gpu, uuid);
    if (result == CUPTI_SUCCESS)
        pParams->pChipName = gpu->chip;
    return sim_cupti_result(result);
}

/* Returns support; the fault "unsupported" has the number of the unsupported property. */
CUptiResult cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params *pParams)
{
    const struct sim_gpu *gpu = NULL;
    uint8_t uuid[SIM_UUID_BYTES];
    if (!SIM_PARAMS_GOOD(pParams, CUpti_Profiler_DeviceSupported_Params) ||
        pParams->api >= CUPTI_PROFILER_UNKNOWN || pParams->cuDevice < 0)
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    CUptiResult result = sim_profiler_initialized();
    if (result == CUPTI_SUCCESS)
        result = find_device((size_t)pParams->cuDevice, &gpu, uuid);
    if (result != CUPTI_SUCCESS)
        return sim_cupti_result(result);
    CUpti_Profiler_Support_Level *levels[] = {&pParams->architecture,        &pParams->sli, &pParams->vGpu,
                                              &pParams->confidentialCompute, &pParams->cmp, &pParams->wsl};
    uint64_t unsupported = sim_fault(SIM_FAULT_UNSUPPORTED);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        *levels[i] = i + 1 == unsupported ? CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED
                                          : CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
    pParams->isSupported =
        unsupported ? CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED : CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
    return CUPTI_SUCCESS;
}

/* "This API may fail, if any profiling or sampling session is active on the specified device."
 * (cupti_pmsampling.h): here it does. */
static bool is_sampled(size_t device, const uint8_t *uuid)
{
    pthread_mutex_lock(&lock);
    bool here = objects[device] != NULL;
    pthread_mutex_unlock(&lock);
    const char *directory = sim_env()->counters;
    int fd = !here && *directory ? sim_segments_open(directory, uuid, SIM_SAMPLER_SUFFIX, 1) : -1;
    bool elsewhere = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0;
    if (fd >= 0)
        close(fd);
    return here || elsewhere;
}

CUptiResult cuptiPmSamplingGetCounterAvailability(CUpti_PmSampling_GetCounterAvailability_Params *pParams)
{
    const struct sim_gpu *gpu = NULL;
    uint8_t uuid[SIM_UUID_BYTES];
    if (!SIM_PARAMS_GOOD(pParams, CUpti_PmSampling_GetCounterAvailability_Params))
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    CUptiResult result = sim_profiler_initialized();
    if (result == CUPTI_SUCCESS)
        result = find_device(pParams->deviceIndex, &gpu, uuid);
    if (result == CUPTI_SUCCESS && is_sampled(pParams->deviceIndex, uuid))
        result = CUPTI_ERROR_UNKNOWN;
    if (result != CUPTI_SUCCESS)
        return sim_cupti_result(result);
    if (!pParams->pCounterAvailabilityImage) {
        pParams->counterAvailabilityImageSize = SIM_AVAILABILITY_BYTES;
        return CUPTI_SUCCESS;
    }
    if (pParams->counterAvailabilityImageSize < SIM_AVAILABILITY_BYTES)
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    sim_availability_write(pParams->pCounterAvailabilityImage);
    return CUPTI_SUCCESS;
}

/* ---- objects ---- */

/* Returns SUCCESS if the object may be used. */
static CUptiResult check_locked(const CUpti_PmSampling_Object *object)
{
    CUptiResult result = initialized_locked();
    if (result != CUPTI_SUCCESS)
        return result;
    for (size_t i = 0; i < MOST_OBJECTS; i++) {
        if (object && objects[i] == object)
            return CUPTI_SUCCESS;
    }
    return CUPTI_ERROR_INVALID_PARAMETER;
}

static void close_object(CUpti_PmSampling_Object *object)
{
    sim_tail_close(object->tail);
    if (object->lock_fd >= 0)
        close(object->lock_fd);
    object->tail = NULL;
    object->lock_fd = -1;
}

static void free_object(CUpti_PmSampling_Object *object)
{
    close_object(object);
    free(object);
}

/* The fault "pm_finalizes": ends all sampling of the process. */
static void finalize_locked(void)
{
    for (size_t i = 0; i < MOST_OBJECTS; i++) {
        if (!objects[i])
            continue;
        close_object(objects[i]);
        objects[i]->next = ended;
        ended = objects[i];
        objects[i] = NULL;
    }
    is_initialized = false;
    was_finalized = true;
}

/* Claims the device: one process at a time samples a device. */
static CUptiResult claim(CUpti_PmSampling_Object *object, const uint8_t *uuid)
{
    const char *directory = sim_env()->counters;
    object->lock_fd = -1;
    if (!*directory) {
        sim_log("OCCSIM_COUNTERS is not set: this device has no counters");
        return CUPTI_ERROR_NOT_SUPPORTED;
    }
    object->lock_fd = sim_segments_open(directory, uuid, SIM_SAMPLER_SUFFIX, SIM_APPEND);
    if (object->lock_fd < 0) {
        sim_complain("OCCSIM_COUNTERS: %s: %s", directory, strerror(errno));
        return CUPTI_ERROR_UNKNOWN;
    }
    return flock(object->lock_fd, LOCK_EX | LOCK_NB) == 0 ? CUPTI_SUCCESS : CUPTI_ERROR_HARDWARE_BUSY;
}

static CUptiResult enable_locked(size_t index, CUpti_PmSampling_Object **ret)
{
    const struct sim_gpu *gpu = NULL;
    uint8_t uuid[SIM_UUID_BYTES];
    CUptiResult result = initialized_locked();
    if (result == CUPTI_SUCCESS)
        result = find_device(index, &gpu, uuid);
    if (result != CUPTI_SUCCESS)
        return result;
    if (objects[index])
        return CUPTI_ERROR_INVALID_OPERATION;
    CUpti_PmSampling_Object *object = calloc(1, sizeof *object);
    if (!object)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    object->device = index;
    object->enabled_ns = sim_cupti_now();
    result = claim(object, uuid);
    if (result == CUPTI_SUCCESS && !(object->tail = sim_tail_open(gpu, uuid)))
        result = CUPTI_ERROR_OUT_OF_MEMORY;
    if (result != CUPTI_SUCCESS) {
        free_object(object);
        return result;
    }
    *ret = objects[index] = object;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingEnable(CUpti_PmSampling_Enable_Params *pParams)
{
    CUptiResult fault = (CUptiResult)sim_fault(SIM_FAULT_PM_ENABLE);
    if (fault || !SIM_PARAMS_GOOD(pParams, CUpti_PmSampling_Enable_Params))
        return sim_cupti_result(fault ? fault : CUPTI_ERROR_INVALID_PARAMETER);
    if (sim_env()->clock_mode == SIM_CLOCK_VIRTUAL) {
        sim_complain("PM sampling needs a clock that goes on: not with OCCSIM_CLOCK=virtual");
        return sim_cupti_result(CUPTI_ERROR_NOT_SUPPORTED);
    }
    pthread_mutex_lock(&lock);
    CUptiResult result = enable_locked(pParams->deviceIndex, &pParams->pPmSamplingObject);
    pthread_mutex_unlock(&lock);
    return sim_cupti_result(result);
}

CUptiResult cuptiPmSamplingDisable(CUpti_PmSampling_Disable_Params *pParams)
{
    if (!SIM_PARAMS_GOOD(pParams, CUpti_PmSampling_Disable_Params))
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    pthread_mutex_lock(&lock);
    CUpti_PmSampling_Object *object = pParams->pPmSamplingObject;
    CUptiResult result = check_locked(object);
    if (result == CUPTI_SUCCESS) {
        objects[object->device] = NULL;
        free_object(object);
    }
    if (result == CUPTI_SUCCESS && sim_fault(SIM_FAULT_PM_FINALIZES))
        finalize_locked();
    pthread_mutex_unlock(&lock);
    return sim_cupti_result(result);
}

/* ---- configuring ---- */

/* True unless cupti_pmsampling.h excludes the parameters on Turing or GA100. */
static bool chip_can(const char *chip, const CUpti_PmSampling_SetConfig_Params *params)
{
    bool turing = strncmp(chip, "TU", 2) == 0, ga100 = strcmp(chip, "GA100") == 0;
    if (params->triggerMode == CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL && (turing || ga100))
        return false;
    return !turing || params->hwBufferAppendMode == CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
}

static CUptiResult configure_locked(CUpti_PmSampling_Object *object,
                                    const CUpti_PmSampling_SetConfig_Params *params)
{
    struct sim_config config;
    const struct sim_gpu *gpu = NULL;
    uint8_t uuid[SIM_UUID_BYTES];
    CUptiResult result = check_locked(object);
    if (result != CUPTI_SUCCESS)
        return result;
    if (!sim_config_read(params->pConfig, params->configSize, SIM_CONFIG_MAGIC, &config) || !config.count ||
        params->samplingInterval > UINT32_MAX || params->hardwareBufferSize < RAW_SAMPLE_BYTES ||
        params->triggerMode >= CUPTI_PM_SAMPLING_TRIGGER_MODE_COUNT)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (object->started)
        return CUPTI_ERROR_INVALID_OPERATION;
    result = find_device(object->device, &gpu, uuid);
    if (result != CUPTI_SUCCESS)
        return result;
    if (sim_config_passes(&config) > 1 || !chip_can(gpu->chip, params))
        return CUPTI_ERROR_NOT_SUPPORTED;
    bool clocks = params->triggerMode == CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL;
    object->interval_ns =
        clocks ? params->samplingInterval * UINT64_C(1000000000) / SYSTEM_CLOCK_HZ : params->samplingInterval;
    if (object->interval_ns < LEAST_INTERVAL)
        return CUPTI_ERROR_INVALID_PARAMETER;
    object->config = config;
    object->client_config = params->pConfig;
    object->client_config_bytes = params->configSize;
    object->configurations++;
    object->capacity = params->hardwareBufferSize / RAW_SAMPLE_BYTES;
    object->keep_oldest =
        params->hwBufferAppendMode == CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingSetConfig(CUpti_PmSampling_SetConfig_Params *pParams)
{
    if (!SIM_PARAMS_GOOD(pParams, CUpti_PmSampling_SetConfig_Params))
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    pthread_mutex_lock(&lock);
    CUptiResult result = configure_locked(pParams->pPmSamplingObject, pParams);
    pthread_mutex_unlock(&lock);
    return sim_cupti_result(result);
}

/* Checks that the client has kept its configuration: like the real library, the double reads it at every use.
 */
static bool config_is_kept(const CUpti_PmSampling_Object *object)
{
    struct sim_config config;
    return sim_config_read(object->client_config, object->client_config_bytes, SIM_CONFIG_MAGIC, &config) &&
           memcmp(&config, &object->config, sizeof config) == 0;
}

CUptiResult cuptiPmSamplingStart(CUpti_PmSampling_Start_Params *pParams)
{
    CUptiResult result = CUPTI_ERROR_INVALID_PARAMETER;
    if (!SIM_PARAMS_GOOD(pParams, CUpti_PmSampling_Start_Params))
        return sim_cupti_result(result);
    pthread_mutex_lock(&lock);
    CUpti_PmSampling_Object *object = pParams->pPmSamplingObject;
    result = check_locked(object);
    if (result == CUPTI_SUCCESS && (object->started || !object->config.magic))
        result = CUPTI_ERROR_INVALID_OPERATION;
    if (result == CUPTI_SUCCESS && !config_is_kept(object))
        result = CUPTI_ERROR_UNKNOWN;
    if (result == CUPTI_SUCCESS) {
        object->started = object->first = true;
        object->next_ns = sim_cupti_now();
        object->lost_ns = object->lost_end_ns = 0;
    }
    pthread_mutex_unlock(&lock);
    return sim_cupti_result(result);
}

CUptiResult cuptiPmSamplingStop(CUpti_PmSampling_Stop_Params *pParams)
{
    CUptiResult result = CUPTI_ERROR_INVALID_PARAMETER;
    if (!SIM_PARAMS_GOOD(pParams, CUpti_PmSampling_Stop_Params))
        return sim_cupti_result(result);
    pthread_mutex_lock(&lock);
    CUpti_PmSampling_Object *object = pParams->pPmSamplingObject;
    result = check_locked(object);
    if (result == CUPTI_SUCCESS && !object->started)
        result = CUPTI_ERROR_INVALID_OPERATION;
    if (result == CUPTI_SUCCESS) {
        object->started = false;
        object->stopped_ns = sim_cupti_now();
    }
    pthread_mutex_unlock(&lock);
    return sim_cupti_result(result);
}

/* ---- counter data ---- */

CUptiResult cuptiPmSamplingGetCounterDataSize(CUpti_PmSampling_GetCounterDataSize_Params *pParams)
{
    struct sim_config config = {.magic = SIM_IMAGE_MAGIC};
    if (!SIM_PARAMS_GOOD(pParams, CUpti_PmSampling_GetCounterDataSize_Params) || !pParams->pMetricNames ||
        !pParams->maxSamples)
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    if (!sim_config_add(&config, pParams->pMetricNames, pParams->numMetrics))
        return sim_cupti_result(CUPTI_ERROR_INVALID_METRIC_NAME);
    pthread_mutex_lock(&lock);
    CUpti_PmSampling_Object *object = pParams->pPmSamplingObject;
    CUptiResult result = check_locked(object);
    if (result == CUPTI_SUCCESS) {
        object->image =
            (struct sim_image){.config = config, .most = pParams->maxSamples, .sample_bytes = SAMPLE_BYTES};
        pParams->counterDataSize = sim_image_bytes(&object->image, pParams->maxSamples);
    }
    pthread_mutex_unlock(&lock);
    return sim_cupti_result(result);
}

CUptiResult
cuptiPmSamplingCounterDataImageInitialize(CUpti_PmSampling_CounterDataImage_Initialize_Params *pParams)
{
    if (!SIM_PARAMS_GOOD(pParams, CUpti_PmSampling_CounterDataImage_Initialize_Params) ||
        !pParams->pCounterData)
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    pthread_mutex_lock(&lock);
    CUpti_PmSampling_Object *object = pParams->pPmSamplingObject;
    CUptiResult result = check_locked(object);
    if (result == CUPTI_SUCCESS &&
        (!object->image.most ||
         pParams->counterDataSize < sim_image_bytes(&object->image, object->image.most)))
        result = CUPTI_ERROR_INVALID_PARAMETER;
    if (result == CUPTI_SUCCESS) {
        memset(pParams->pCounterData, 0, pParams->counterDataSize); /* the real library's cost */
        memcpy(pParams->pCounterData, &object->image, sizeof object->image);
    }
    pthread_mutex_unlock(&lock);
    return sim_cupti_result(result);
}

/* ---- decoding ---- */

static bool every(uint64_t n, uint64_t count)
{
    return n && count % n == 0;
}

/* Returns the number of due samples in the hardware buffer. */
static uint64_t buffered(const CUpti_PmSampling_Object *object, uint64_t until_ns)
{
    uint64_t before = object->lost_ns ? (object->lost_ns - object->next_ns) / object->interval_ns : 0;
    uint64_t from = object->lost_ns ? object->lost_end_ns : object->next_ns;
    return before + (until_ns > from ? (until_ns - from) / object->interval_ns : 0);
}

/* Drops samples beyond the buffer's capacity. Returns true if there were any. */
static bool overflow(CUpti_PmSampling_Object *object, uint64_t until_ns)
{
    uint64_t due = buffered(object, until_ns);
    if (due <= object->capacity)
        return false;
    uint64_t excess_ns = (due - object->capacity) * object->interval_ns;
    if (!object->keep_oldest) {
        object->next_ns += excess_ns;
        return true;
    }
    if (object->lost_ns) {
        object->lost_end_ns += excess_ns;
        return true;
    }
    object->lost_ns = object->next_ns + object->capacity * object->interval_ns;
    object->lost_end_ns = object->lost_ns + excess_ns;
    return true;
}

/* Converts device time to the samples' clock, with offset and drift. */
static uint64_t told_ns(const CUpti_PmSampling_Object *object, uint64_t ns)
{
    double since =
        ns > object->enabled_ns ? (double)(ns - object->enabled_ns) : -(double)(object->enabled_ns - ns);
    int64_t drift = (int64_t)(since * (double)sim_env()->counter_drift_ppm / 1e6);
    return ns + (uint64_t)(sim_env()->counter_offset_ns + drift);
}

static void make_sample(CUpti_PmSampling_Object *object, struct sim_pm_sample *sample)
{
    uint64_t end_ns = object->next_ns + object->interval_ns;
    sim_tail_sum(object->tail, object->next_ns, end_ns, sample->value);
    sample->start_ns = object->first ? 0 : told_ns(object, object->next_ns);
    sample->end_ns = told_ns(object, end_ns);
    if (every(sim_fault(SIM_FAULT_PM_BACKWARDS), ++object->samples)) {
        uint64_t start_ns = sample->start_ns;
        sample->start_ns = sample->end_ns;
        sample->end_ns = start_ns;
    }
    object->first = false;
    object->next_ns = end_ns;
    if (object->lost_ns && end_ns >= object->lost_ns) {
        object->next_ns = object->lost_end_ns;
        object->lost_ns = object->lost_end_ns = 0;
    }
}

/* Appends due samples to the image; returns how many do not fit. */
static uint64_t fill_image(CUpti_PmSampling_Object *object, uint8_t *image, struct sim_image *head,
                           uint64_t until_ns)
{
    uint64_t due = buffered(object, until_ns);
    for (; due && head->count < head->most; due--) {
        struct sim_pm_sample sample;
        make_sample(object, &sample);
        sim_image_append(image, head, &sample);
    }
    if (due && sim_fault(SIM_FAULT_PM_NORESUME)) {
        object->next_ns += (until_ns - object->next_ns) / object->interval_ns * object->interval_ns;
        object->lost_ns = object->lost_end_ns = 0;
    }
    return due;
}

static CUptiResult decode_fault(CUpti_PmSampling_Object *object)
{
    CUptiResult reuse = (CUptiResult)sim_fault(SIM_FAULT_PM_REUSE);
    object->decodes++;
    if (reuse && object->configurations > 1)
        return reuse;
    return object->decodes > FAULTY_DECODES ? (CUptiResult)sim_fault(SIM_FAULT_PM_DECODE) : CUPTI_SUCCESS;
}

/* Decodes samples. A decode that takes all samples returns END_OF_RECORDS or OTHER alternately: hardware
 * returns both. */
static CUptiResult decode_locked(CUpti_PmSampling_Object *object, CUpti_PmSampling_DecodeData_Params *params)
{
    struct sim_image head;
    CUptiResult result = check_locked(object);
    if (result == CUPTI_SUCCESS &&
        !sim_image_read(params->pCounterDataImage, params->counterDataImageSize, &head))
        result = CUPTI_ERROR_INVALID_PARAMETER;
    if (result == CUPTI_SUCCESS)
        result = decode_fault(object);
    if (result == CUPTI_SUCCESS && !object->next_ns)
        result = CUPTI_ERROR_INVALID_OPERATION;
    if (result == CUPTI_SUCCESS && !config_is_kept(object))
        result = CUPTI_ERROR_UNKNOWN;
    if (result != CUPTI_SUCCESS)
        return result;
    uint64_t until_ns = object->started ? sim_cupti_now() - LAG_NS : object->stopped_ns;
    sim_tail_read(object->tail);
    bool lost = overflow(object, until_ns);
    uint64_t due = fill_image(object, params->pCounterDataImage, &head, until_ns);
    params->overflow = lost || every(sim_fault(SIM_FAULT_PM_OVERFLOW), object->decodes);
    params->decodeStopReason = due                   ? CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL
                               : object->decodes % 2 ? CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS
                                                     : CUPTI_PM_SAMPLING_DECODE_STOP_REASON_OTHER;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingDecodeData(CUpti_PmSampling_DecodeData_Params *pParams)
{
    if (!SIM_PARAMS_GOOD(pParams, CUpti_PmSampling_DecodeData_Params))
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    pthread_mutex_lock(&lock);
    CUptiResult result = decode_locked(pParams->pPmSamplingObject, pParams);
    pthread_mutex_unlock(&lock);
    return sim_cupti_result(result);
}

CUptiResult cuptiPmSamplingGetCounterDataInfo(CUpti_PmSampling_GetCounterDataInfo_Params *pParams)
{
    struct sim_image head;
    if (!SIM_PARAMS_GOOD(pParams, CUpti_PmSampling_GetCounterDataInfo_Params) ||
        !sim_image_read(pParams->pCounterDataImage, pParams->counterDataImageSize, &head))
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    pParams->numTotalSamples = head.most;
    pParams->numPopulatedSamples = pParams->numCompletedSamples = head.count;
    return CUPTI_SUCCESS;
}

CUptiResult
cuptiPmSamplingCounterDataGetSampleInfo(CUpti_PmSampling_CounterData_GetSampleInfo_Params *pParams)
{
    struct sim_pm_sample sample;
    if (!SIM_PARAMS_GOOD(pParams, CUpti_PmSampling_CounterData_GetSampleInfo_Params) ||
        !sim_image_sample(pParams->pCounterDataImage, pParams->counterDataImageSize, pParams->sampleIndex,
                          &sample))
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    pParams->startTimestamp = sample.start_ns;
    pParams->endTimestamp = sample.end_ns;
    return CUPTI_SUCCESS;
}
