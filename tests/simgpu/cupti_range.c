/*
 * The range profiler of the CUPTI double: one range for each launch (a graph's launch is one, whatever it holds), with what the simulation
 * knows of it. While a session runs in a context its launches wait for each other, as the real one has it.
 *
 * Only what one pass of automatic ranges needs; anything else is refused. An image of counters is a header and one struct
 * sim_counts for each range; it gets them when the session's data is decoded.
 *
 * Locks: `lock` protects the sessions; nothing is called under it. `turn` before `lock`. Threads: any.
 */
#include "cupti_double.h"

#include "env.h"

#pragma GCC visibility push(default)
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#pragma GCC visibility pop

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SESSIONS 64

struct range_image {
    uint64_t most, n;
    struct sim_counts counts[];
};

struct CUpti_RangeProfiler_Object {
    CUcontext context; /* NULL: free */
    uint32_t context_id;
    bool is_configured, is_running;
    struct range_image *image; /* the client's, from SetConfig to DecodeData */
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

/* ---- what the driver tells ---- */

static struct CUpti_RangeProfiler_Object *running_locked(uint32_t context_id)
{
    for (size_t i = 0; i < SESSIONS; i++)
        if (sessions[i].context && sessions[i].is_running && sessions[i].context_id == context_id)
            return &sessions[i];
    return NULL;
}

static void add_locked(struct CUpti_RangeProfiler_Object *s, const struct sim_activity *activity)
{
    const struct sim_counts *counts = &activity->kernel.counts;
    static uint64_t ranges;
    uint64_t every = sim_fault(SIM_FAULT_RANGE_LOSS);
    bool same = activity->graph && s->n && activity->correlation == s->last_correlation;
    if (!same && every && ++ranges % every == 0)
        return;
    if (!same && s->n == s->most) {
        s->lost++;
        return;
    }
    if (!same)
        s->counts[s->n++] = (struct sim_counts){0};
    s->last_correlation = activity->correlation;
    struct sim_counts *to = &s->counts[s->n - 1];
    to->warps_ns += counts->warps_ns;
    to->sms_ns += counts->sms_ns;
    to->blocks_ns += counts->blocks_ns;
    to->ns += counts->ns;
}

void sim_range_activity(const struct sim_activity *activity)
{
    pthread_mutex_lock(&lock);
    struct CUpti_RangeProfiler_Object *s = running_locked(activity->context);
    if (s && activity->end_ns > s->busy_until_ns)
        s->busy_until_ns = activity->end_ns;
    if (s && activity->kind == SIM_ACTIVITY_KERNEL)
        add_locked(s, activity);
    pthread_mutex_unlock(&lock);
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
    CUptiResult fault = (CUptiResult)sim_fault(SIM_FAULT_RANGE);
    REFUSE_UNLESS(p && p->structSize == CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE);
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
    REFUSE_UNLESS(p && p->pRangeProfilerObject && p->pRangeProfilerObject->context);
    pthread_mutex_lock(&lock);
    free(p->pRangeProfilerObject->counts);
    *p->pRangeProfilerObject = (struct CUpti_RangeProfiler_Object){0};
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params *p)
{
    REFUSE_UNLESS(p && p->pRangeProfilerObject && p->numMetrics && p->maxNumOfRanges &&
                  p->maxNumRangeTreeNodes >= p->maxNumOfRanges);
    p->counterDataSize = sizeof(struct range_image) + p->maxNumOfRanges * sizeof(struct sim_counts);
    return CUPTI_SUCCESS;
}

CUptiResult
cuptiRangeProfilerCounterDataImageInitialize(CUpti_RangeProfiler_CounterDataImage_Initialize_Params *p)
{
    REFUSE_UNLESS(p && p->pRangeProfilerObject && p->pCounterData &&
                  p->counterDataSize >= sizeof(struct range_image) + sizeof(struct sim_counts));
    memset(p->pCounterData, 0, p->counterDataSize);
    ((struct range_image *)(void *)p->pCounterData)->most =
        (p->counterDataSize - sizeof(struct range_image)) / sizeof(struct sim_counts);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params *p)
{
    REFUSE_UNLESS(p && p->structSize == CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE &&
                  p->pRangeProfilerObject && sim_host_config_passes(p->pConfig, p->configSize) == 1 &&
                  p->pCounterDataImage && p->range == CUPTI_AutoRange &&
                  p->replayMode == CUPTI_KernelReplay && p->numNestingLevels == 1 && p->passIndex == 0);
    struct CUpti_RangeProfiler_Object *s = p->pRangeProfilerObject;
    struct range_image *image = (void *)p->pCounterDataImage;
    REFUSE_UNLESS(!s->is_running && image->most >= p->maxRangesPerPass);
    struct sim_counts *counts = calloc(p->maxRangesPerPass, sizeof *counts);
    if (!counts)
        return sim_cupti_result(CUPTI_ERROR_OUT_OF_MEMORY);
    pthread_mutex_lock(&lock);
    free(s->counts);
    s->counts = counts;
    s->most = p->maxRangesPerPass;
    s->image = image;
    s->is_configured = true;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params *p)
{
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

CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params *p)
{
    REFUSE_UNLESS(p && p->pRangeProfilerObject && p->pRangeProfilerObject->is_configured &&
                  !p->pRangeProfilerObject->is_running);
    struct CUpti_RangeProfiler_Object *s = p->pRangeProfilerObject;
    pthread_mutex_lock(&lock);
    memcpy(s->image->counts, s->counts, s->n * sizeof *s->counts);
    s->image->n = s->n;
    p->numOfRangeDropped = s->lost;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params *p)
{
    REFUSE_UNLESS(p && p->pCounterDataImage && p->counterDataImageSize >= sizeof(struct range_image));
    p->numTotalRanges = ((const struct range_image *)(const void *)p->pCounterDataImage)->n;
    return CUPTI_SUCCESS;
}

const struct sim_counts *sim_range_counts(const uint8_t *bytes, size_t size, size_t range)
{
    const struct range_image *image = (const void *)bytes;
    bool good = bytes && size >= sizeof *image && image->n <= image->most && range < image->n;
    return good ? &image->counts[range] : NULL;
}
