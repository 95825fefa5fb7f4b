/*
 * PM sampling of a fake libcupti. The test sets its time. Rules, by cupti_pmsampling.h:
 *   - the first sample after a start begins at 0, a meaningless time
 *   - an object is configured once: after a second time its samples cannot be decoded, as on hardware
 *   - KEEP_LATEST: a full hardware buffer loses its oldest samples, and the decode says so
 *   - KEEP_OLDEST, by the letter: a full buffer takes no more until sampling starts again
 */
#include "sampler_fake_cupti.h"

#include "cupti/functions.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#define DEFINE(name, ...)                                                                                    \
    EXPORT uint32_t name(__VA_ARGS__);                                                                       \
    EXPORT uint32_t name(__VA_ARGS__)

EXPORT struct fake_pm fake_pm = {.chip = "GH100", .capacity = 1000};

struct image {
    uint64_t n, max;
    struct {
        uint64_t start_ns, end_ns;
    } samples[];
};

DEFINE(cuptiGetVersion, uint32_t *ret)
{
    *ret = 130001;
    return 0;
}

/* ---- host ---- */

static char object;

DEFINE(cuptiProfilerInitialize, struct occ_params_none *p)
{
    (void)p;
    return 0;
}

DEFINE(cuptiDeviceGetChipName, struct occ_params_chip_name *p)
{
    p->name = fake_pm.chip;
    return 0;
}

DEFINE(cuptiProfilerHostInitialize, struct occ_params_host *p)
{
    p->object = &object;
    return 0;
}

DEFINE(cuptiProfilerHostDeinitialize, struct occ_params_object *p)
{
    (void)p;
    return 0;
}

DEFINE(cuptiProfilerDeviceSupported, struct occ_params_supported *p)
{
    p->vgpu = fake_pm.vgpu;
    p->supported = fake_pm.vgpu ? OCC_PROFILER_UNSUPPORTED : 0;
    return p->size == OCC_SUPPORTED_SIZE && p->api == OCC_PROFILER_API_PM_SAMPLING
               ? 0
               : OCC_CUPTI_ERROR_INVALID_OPERATION;
}

DEFINE(cuptiProfilerHostConfigAddMetrics, struct occ_params_metrics *p)
{
    for (size_t i = 0; i < p->metrics.count; i++)
        for (size_t k = 0; k < sizeof fake_pm.lacks / sizeof *fake_pm.lacks; k++)
            if (fake_pm.lacks[k] && strcmp(p->metrics.names[i], fake_pm.lacks[k]) == 0)
                return OCC_CUPTI_ERROR_INVALID_OPERATION;
    fake_pm.n_metrics = (uint32_t)p->metrics.count;
    return 0;
}

DEFINE(cuptiProfilerHostGetConfigImageSize, struct occ_params_config *p)
{
    p->config.size = 64;
    return 0;
}

DEFINE(cuptiProfilerHostGetConfigImage, struct occ_params_config *p)
{
    p->config.bytes[0] = 'c';
    return 0;
}

DEFINE(cuptiProfilerHostGetNumOfPasses, struct occ_params_passes *p)
{
    p->passes = 1;
    return 0;
}

DEFINE(cuptiProfilerHostEvaluateToGpuValues, struct occ_params_evaluate *p)
{
    for (size_t i = 0; i < p->metrics.count; i++)
        p->values[i] = 1;
    return 0;
}

/* ---- PM sampling ---- */

DEFINE(cuptiPmSamplingGetCounterAvailability, struct occ_params_availability *p)
{
    p->image.size = 64;
    return 0;
}

DEFINE(cuptiPmSamplingEnable, struct occ_params_enable *p)
{
    unsigned call = fake_pm.enables++;
    p->object = NULL;
    if (call >= fake_pm.enable_from && call < fake_pm.enable_from + fake_pm.enable_results)
        return fake_pm.enable_result;
    if (fake_pm.is_enabled)
        return OCC_CUPTI_ERROR_INVALID_OPERATION;
    p->object = &object;
    fake_pm.is_enabled = true;
    fake_pm.configurations = 0;
    return 0;
}

DEFINE(cuptiPmSamplingDisable, struct occ_params_object *p)
{
    (void)p;
    fake_pm.disables++;
    fake_pm.is_enabled = fake_pm.is_started = false;
    fake_pm.config = NULL;
    return 0;
}

DEFINE(cuptiPmSamplingSetConfig, struct occ_params_pm_config *p)
{
    fake_pm.interval_ns = p->interval;
    fake_pm.config = p->config.bytes;
    fake_pm.configurations++;
    if (!fake_pm.first_config) {
        fake_pm.first_config = fake_pm.config;
        fake_pm.first_interval_ns = p->interval;
    }
    fake_pm.append_mode = p->append_mode;
    return fake_pm.is_started ? OCC_CUPTI_ERROR_INVALID_OPERATION : 0;
}

DEFINE(cuptiPmSamplingStart, struct occ_params_object *p)
{
    (void)p;
    fake_pm.starts++;
    fake_pm.is_started = true;
    fake_pm.is_full = false;
    fake_pm.n = 0;
    fake_pm.started_ns = fake_pm.sampled_ns = fake_pm.now_ns;
    return 0;
}

DEFINE(cuptiPmSamplingStop, struct occ_params_object *p)
{
    (void)p;
    fake_pm.stops++;
    fake_pm.is_started = false;
    return 0;
}

DEFINE(cuptiPmSamplingGetCounterDataSize, struct occ_params_pm_data_size *p)
{
    p->data_size = sizeof(struct image) + p->max_samples * sizeof(((struct image *)0)->samples[0]);
    return 0;
}

DEFINE(cuptiPmSamplingCounterDataImageInitialize, struct occ_params_data *p)
{
    struct image *image = (struct image *)(void *)p->data.bytes;
    fake_pm.initialised_images++;
    image->n = 0;
    image->max = (p->data.size - sizeof *image) / sizeof image->samples[0];
    return 0;
}

/* Takes the samples up to now. Returns false if some did not fit. */
static bool fill_buffer(void)
{
    bool fits = true;
    while (!fake_pm.is_full && fake_pm.sampled_ns + fake_pm.interval_ns <= fake_pm.now_ns) {
        bool has_room = fake_pm.n < fake_pm.capacity;
        fits = fits && has_room;
        fake_pm.is_full = !has_room && fake_pm.append_mode == OCC_PM_KEEP_OLDEST;
        fake_pm.sampled_ns += fake_pm.is_full ? 0 : fake_pm.interval_ns;
        fake_pm.n += has_room;
    }
    return fits && !fake_pm.is_full;
}

DEFINE(cuptiPmSamplingDecodeData, struct occ_params_pm_decode *p)
{
    struct image *image = (struct image *)(void *)p->data;
    bool is_other =
        fake_pm.config != fake_pm.first_config || fake_pm.interval_ns != fake_pm.first_interval_ns;
    if (fake_pm.config[0] != 'c' || fake_pm.configurations != 1 || (fake_pm.keeps_one_config && is_other))
        return OCC_CUPTI_ERROR_UNKNOWN;
    p->overflow = !fill_buffer();
    if (p->overflow && fake_pm.fails_full)
        return OCC_CUPTI_ERROR_OUT_OF_MEMORY;
    for (; fake_pm.n > 0 && image->n < image->max; fake_pm.n--) {
        uint64_t start_ns = fake_pm.sampled_ns - fake_pm.n * fake_pm.interval_ns;
        image->samples[image->n].start_ns = start_ns == fake_pm.started_ns ? 0 : start_ns;
        image->samples[image->n++].end_ns = start_ns + fake_pm.interval_ns;
    }
    p->stop_reason = fake_pm.n > 0 ? OCC_PM_STOP_IMAGE_FULL : OCC_PM_STOP_IMAGE_FULL + 1;
    return 0;
}

DEFINE(cuptiPmSamplingGetCounterDataInfo, struct occ_params_pm_info *p)
{
    const struct image *image = (const struct image *)(const void *)p->data;
    p->total = image->max;
    p->populated = p->completed = image->n;
    return 0;
}

DEFINE(cuptiPmSamplingCounterDataGetSampleInfo, struct occ_params_pm_sample *p)
{
    const struct image *image = (const struct image *)(const void *)p->data;
    p->start_ns = image->samples[p->index].start_ns;
    p->end_ns = image->samples[p->index].end_ns;
    return 0;
}
