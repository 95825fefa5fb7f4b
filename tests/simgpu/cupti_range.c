/*
 * The range profiler of the CUPTI double: one range for each launch (also for a graph's launch with many
 * kernels), with the simulation's counters. During a session in a context its launches are serialized, as
 * with the real profiler, and its kernels' records have no times, as with CUPTI 13.0.1 on an H100.
 *
 * Supports one pass of automatic ranges; everything else is refused. A range is stored like a sample of PM
 * sampling (cupti_pm.h); the image gets the ranges when the session's data is decoded.
 *
 * Locks: `lock` protects the sessions; nothing is called under it. `turn` before `lock`. Threads: any.
 */
#include "cupti_pm.h"

#include "env.h"

#pragma GCC visibility push(default)
#include <cupti_range_profiler.h>
#pragma GCC visibility pop

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SESSIONS       64
#define WAIT_BEFORE_NS 800
#define WAIT_NS        500

struct CUpti_RangeProfiler_Object {
    CUcontext context; /* NULL: free */
    uint32_t context_id;
    bool is_configured, is_running;
    struct sim_image empty; /* for GetCounterDataSize */
    uint8_t *image;         /* the client's image, from SetConfig to DecodeData */
    size_t image_bytes;
    struct sim_counts *counts;
    size_t n, most, lost;
    uint32_t last_correlation;
    uint64_t busy_until_ns;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t turn =
    PTHREAD_MUTEX_INITIALIZER; /* held from before a measured launch until after it */
static _Thread_local bool has_turn;
static struct CUpti_RangeProfiler_Object sessions[SESSIONS];

#define REFUSE_UNLESS(condition)                                                                             \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);                                          \
    } while (0)

/* ---- reports of the driver ---- */

static struct CUpti_RangeProfiler_Object *running_locked(uint32_t context_id)
{
    for (size_t i = 0; i < SESSIONS; i++)
        if (sessions[i].context && sessions[i].is_running && sessions[i].context_id == context_id)
            return &sessions[i];
    return NULL;
}

/* Adds the launch's counters. Returns true if a range begins with this launch. */
static bool add_locked(struct CUpti_RangeProfiler_Object *s, const struct sim_activity *activity)
{
    const struct sim_counts *counts = &activity->kernel.counts;
    static uint64_t ranges;
    uint64_t every = sim_fault(SIM_FAULT_RANGE_LOSS);
    bool same = activity->graph && s->n && activity->correlation == s->last_correlation;
    if (!same && every && ++ranges % every == 0)
        return true;
    if (!same && s->n == s->most) {
        s->lost++;
        return true;
    }
    if (!same)
        s->counts[s->n++] = (struct sim_counts){0};
    s->last_correlation = activity->correlation;
    struct sim_counts *to = &s->counts[s->n - 1];
    to->warps_ns += counts->warps_ns;
    to->sms_ns += counts->sms_ns;
    to->blocks_ns += counts->blocks_ns;
    to->ns += counts->ns;
    return !same;
}

/* With the fault "rangewait": fills in kernel replay's own kernel, "WaitNs" with one thread
 * (libnvperf_target.so has its name; GPUFl's client sees its activity records, CUPTI 13.0.1 on an H100
 * returns none). A measured launch waits for the previous one, so there is room. */
static void fill_wait(const struct sim_activity *launch, struct sim_activity *wait)
{
    *wait = (struct sim_activity){.kind = SIM_ACTIVITY_KERNEL,
                                  .start_ns = launch->start_ns - WAIT_BEFORE_NS,
                                  .end_ns = launch->start_ns - WAIT_BEFORE_NS + WAIT_NS,
                                  .device = launch->device,
                                  .context = launch->context,
                                  .stream = launch->stream,
                                  .kernel = {.name = "WaitNs",
                                             .grid = {1, 1, 1},
                                             .block = {1, 1, 1},
                                             .registers = 16,
                                             .carveout_percent = -1}};
}

bool sim_range_activity(const struct sim_activity *activity, struct sim_activity *wait, bool *ret_is_measured)
{
    bool begins = false;
    pthread_mutex_lock(&lock);
    struct CUpti_RangeProfiler_Object *s = running_locked(activity->context);
    if (s && activity->end_ns > s->busy_until_ns)
        s->busy_until_ns = activity->end_ns;
    *ret_is_measured = s && activity->kind == SIM_ACTIVITY_KERNEL;
    if (*ret_is_measured)
        begins = add_locked(s, activity);
    pthread_mutex_unlock(&lock);
    if (!begins || !sim_fault(SIM_FAULT_RANGE_WAIT))
        return false;
    fill_wait(activity, wait);
    return true;
}

void sim_range_before_launch(CUcontext context)
{
    uint32_t id, device;
    uint64_t until_ns = 0;
    if (!sim_cupti_driver()->context_id(context, &id, &device))
        return;
    pthread_mutex_lock(&turn);
    pthread_mutex_lock(&lock);
    struct CUpti_RangeProfiler_Object *s = running_locked(id);
    if (s)
        until_ns = s->busy_until_ns;
    pthread_mutex_unlock(&lock);
    has_turn = s != NULL;
    if (!has_turn)
        pthread_mutex_unlock(&turn);
    else if (until_ns)
        sim_cupti_driver()->wait_until(until_ns);
}

void sim_range_after_launch(void)
{
    if (has_turn)
        pthread_mutex_unlock(&turn);
    has_turn = false;
}

/* ---- the interface ---- */

CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params *p)
{
    sim_cupti_enter_uncaptured(__func__);
    CUptiResult fault = (CUptiResult)sim_fault(SIM_FAULT_RANGE);
    REFUSE_UNLESS(p && p->structSize == CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE);
    if (!fault)
        fault = sim_profiler_initialized();
    if (fault)
        return sim_cupti_result(fault);
    uint32_t id, device;
    if (!sim_cupti_driver() || !sim_cupti_driver()->context_id(p->ctx, &id, &device))
        return sim_cupti_result(CUPTI_ERROR_INVALID_CONTEXT);
    struct CUpti_RangeProfiler_Object *found = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < SESSIONS && !found; i++)
        if (!sessions[i].context)
            found = &sessions[i];
    if (found)
        *found = (struct CUpti_RangeProfiler_Object){.context = p->ctx, .context_id = id};
    pthread_mutex_unlock(&lock);
    p->pRangeProfilerObject = found;
    return found ? CUPTI_SUCCESS : sim_cupti_result(CUPTI_ERROR_OUT_OF_MEMORY);
}

CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params *p)
{
    sim_cupti_enter_uncaptured(__func__);
    REFUSE_UNLESS(p && p->pRangeProfilerObject && p->pRangeProfilerObject->context);
    pthread_mutex_lock(&lock);
    free(p->pRangeProfilerObject->counts);
    *p->pRangeProfilerObject = (struct CUpti_RangeProfiler_Object){0};
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params *p)
{
    sim_cupti_enter(__func__);
    struct sim_config config = {.magic = SIM_IMAGE_MAGIC};
    REFUSE_UNLESS(p && p->pRangeProfilerObject && p->numMetrics && p->maxNumOfRanges &&
                  p->maxNumOfRanges <= UINT32_MAX && p->maxNumRangeTreeNodes >= p->maxNumOfRanges);
    if (!sim_config_add(&config, p->pMetricNames, p->numMetrics))
        return sim_cupti_result(CUPTI_ERROR_INVALID_METRIC_NAME);
    struct sim_image *empty = &p->pRangeProfilerObject->empty;
    *empty = (struct sim_image){.config = config, .most = (uint32_t)p->maxNumOfRanges};
    p->counterDataSize = sim_image_bytes(empty, empty->most);
    return CUPTI_SUCCESS;
}

CUptiResult
cuptiRangeProfilerCounterDataImageInitialize(CUpti_RangeProfiler_CounterDataImage_Initialize_Params *p)
{
    sim_cupti_enter(__func__);
    REFUSE_UNLESS(p && p->pRangeProfilerObject && p->pCounterData && p->pRangeProfilerObject->empty.most);
    const struct sim_image *empty = &p->pRangeProfilerObject->empty;
    REFUSE_UNLESS(p->counterDataSize >= sim_image_bytes(empty, empty->most));
    memcpy(p->pCounterData, empty, sizeof *empty);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params *p)
{
    sim_cupti_enter_uncaptured(__func__);
    struct sim_config config;
    struct sim_image image;
    REFUSE_UNLESS(p && p->structSize == CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE &&
                  p->pRangeProfilerObject && p->range == CUPTI_AutoRange &&
                  p->replayMode == CUPTI_KernelReplay && p->numNestingLevels == 1 && p->passIndex == 0);
    REFUSE_UNLESS(sim_config_read(p->pConfig, p->configSize, SIM_CONFIG_MAGIC, &config) &&
                  sim_config_passes(&config) == 1 &&
                  sim_image_read(p->pCounterDataImage, p->counterDataImageSize, &image));
    struct CUpti_RangeProfiler_Object *s = p->pRangeProfilerObject;
    REFUSE_UNLESS(!s->is_running && image.most >= p->maxRangesPerPass);
    struct sim_counts *counts = calloc(p->maxRangesPerPass, sizeof *counts);
    if (!counts)
        return sim_cupti_result(CUPTI_ERROR_OUT_OF_MEMORY);
    pthread_mutex_lock(&lock);
    free(s->counts);
    s->counts = counts;
    s->most = p->maxRangesPerPass;
    s->image = p->pCounterDataImage;
    s->image_bytes = p->counterDataImageSize;
    s->is_configured = true;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params *p)
{
    sim_cupti_enter_uncaptured(__func__);
    REFUSE_UNLESS(p && p->pRangeProfilerObject && p->pRangeProfilerObject->is_configured &&
                  !p->pRangeProfilerObject->is_running);
    pthread_mutex_lock(&lock);
    p->pRangeProfilerObject->n = p->pRangeProfilerObject->lost = 0;
    p->pRangeProfilerObject->last_correlation = 0;
    p->pRangeProfilerObject->is_running = true;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params *p)
{
    sim_cupti_enter_uncaptured(__func__);
    REFUSE_UNLESS(p && p->structSize == CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE &&
                  p->pRangeProfilerObject && p->pRangeProfilerObject->is_running);
    pthread_mutex_lock(&lock);
    p->pRangeProfilerObject->is_running = false;
    uint64_t until_ns = p->pRangeProfilerObject->busy_until_ns;
    pthread_mutex_unlock(&lock);
    sim_cupti_driver()->wait_until(until_ns);
    p->passIndex = 0;
    p->targetNestingLevel = 1;
    p->isAllPassSubmitted = 1;
    return CUPTI_SUCCESS;
}

static bool decode_locked(struct CUpti_RangeProfiler_Object *s)
{
    struct sim_image head;
    if (!sim_image_read(s->image, s->image_bytes, &head) || head.count + s->n > head.most)
        return false;
    for (size_t i = 0; i < s->n; i++) {
        struct sim_pm_sample sample = {0};
        sample.value[SIM_METRIC_WARPS] = s->counts[i].warps_ns;
        sample.value[SIM_METRIC_BLOCKS] = s->counts[i].blocks_ns;
        sample.value[SIM_METRIC_ACTIVE] = s->counts[i].sms_ns;
        sample.value[SIM_METRIC_ELAPSED] = s->counts[i].ns;
        sample.value[SIM_METRIC_DURATION] = s->counts[i].ns;
        sim_image_append(s->image, &head, &sample);
    }
    return true;
}

CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params *p)
{
    sim_cupti_enter(__func__);
    REFUSE_UNLESS(p && p->pRangeProfilerObject && p->pRangeProfilerObject->is_configured &&
                  !p->pRangeProfilerObject->is_running);
    pthread_mutex_lock(&lock);
    bool good = decode_locked(p->pRangeProfilerObject);
    p->numOfRangeDropped = p->pRangeProfilerObject->lost;
    pthread_mutex_unlock(&lock);
    return good ? CUPTI_SUCCESS : sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
}

CUptiResult cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params *p)
{
    sim_cupti_enter(__func__);
    struct sim_image head;
    REFUSE_UNLESS(p && sim_image_read(p->pCounterDataImage, p->counterDataImageSize, &head));
    p->numTotalRanges = head.count;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params *p)
{
    sim_cupti_enter(__func__);
    CUptiResult result = sim_profiler_initialized();
    if (result)
        return sim_cupti_result(result);
    REFUSE_UNLESS(
        p && (!p->pCounterAvailabilityImage || p->counterAvailabilityImageSize >= SIM_AVAILABILITY_BYTES));
    if (p->pCounterAvailabilityImage)
        sim_availability_write(p->pCounterAvailabilityImage);
    p->counterAvailabilityImageSize = SIM_AVAILABILITY_BYTES;
    return CUPTI_SUCCESS;
}
