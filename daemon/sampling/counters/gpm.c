/*
 * NVML's GPM (Hopper and newer): occupancy and activity of a whole GPU between two readings, at least 100 ms
 * apart, without any privilege. It reports ratios, not cycles: a sample is converted as if every SM ran at 1
 * GHz, so that the ratios of its counters are GPM's SM occupancy (over elapsed cycles) and SM activity.
 *
 * Threads: one per source. Not run on a GPU yet.
 */
#include "source.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "cupti/nvml.h"
#include "support/clock.h"
#include "support/text.h"

#define MIN_INTERVAL_NS INT64_C(100000000)

struct occ_source {
    struct occ_nvml nvml;
    struct occ_nvml_gpm gpm;
    void *device;
    struct occ_gpu_found gpu;
    void *samples[2]; /* [0] is the older */
    int64_t taken_ns[2];
    int64_t interval_ns, due_ns; /* due_ns: CLOCK_MONOTONIC */
    struct occ_nvml_gpm_get get;
    struct occ_source_stats stats;
};

static enum occ_source_state fail(const struct occ_source *s, int result, const char *what,
                                  struct occ_error *err)
{
    (void)occ_fail(err, OCC_E_IO, "%s: %s", what, occ_nvml_result_text(&s->nvml, result));
    static const struct {
        int result;
        enum occ_source_state state;
    } states[] = {
        {OCC_NVML_NO_PERMISSION, OCC_SOURCE_NO_PERMISSION},
        {OCC_NVML_LOST, OCC_SOURCE_LOST},
        {OCC_NVML_RESET_REQUIRED, OCC_SOURCE_LOST},
        {OCC_NVML_NOT_SUPPORTED, OCC_SOURCE_NOT_SUPPORTED},
        {OCC_NVML_NOT_FOUND, OCC_SOURCE_NOT_SUPPORTED},
        {OCC_NVML_NO_DRIVER, OCC_SOURCE_NO_DRIVER},
    };
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (states[i].result == result)
            return states[i].state;
    return OCC_SOURCE_FAILED;
}

static enum occ_source_state bind_library(struct occ_source *s, const char *path, struct occ_error *err)
{
    const char *reason;
    void *library = occ_nvml_open(path, &reason);
    if (!library) {
        (void)occ_fail(err, OCC_E_NOT_FOUND, "no NVML: %s", reason);
        return OCC_SOURCE_NO_LIBRARY;
    }
    const char *missing = occ_nvml_bind(library, &s->nvml);
    if (!missing)
        missing = occ_nvml_bind_gpm(library, &s->gpm);
    if (missing) {
        (void)occ_fail(err, OCC_E_VERSION, "NVML lacks %s", missing);
        return OCC_SOURCE_NOT_SUPPORTED;
    }
    return OCC_SOURCE_OK;
}

static void gpm_close(struct occ_source *s)
{
    if (!s)
        return;
    for (int i = 0; i < 2; i++)
        if (s->samples[i])
            (void)s->gpm.sample_free(s->samples[i]);
    free(s);
}

static enum occ_source_state gpm_begin(struct occ_source *s, const struct occ_source_options *options,
                                       struct occ_error *err)
{
    char uuid[OCC_GPU_UUID_BYTES];
    struct occ_nvml_gpm_support support = {.version = OCC_NVML_GPM_VERSION};
    enum occ_source_state state = bind_library(s, options->nvml_path, err);
    if (state != OCC_SOURCE_OK)
        return state;
    s->gpu = options->gpu;
    s->interval_ns = options->interval_ns > MIN_INTERVAL_NS ? options->interval_ns : MIN_INTERVAL_NS;
    occ_gpu_uuid_format(s->gpu.uuid, uuid); /* by uuid: CUDA and NVML number GPUs differently */
    int result = s->nvml.init();
    if (result == OCC_NVML_SUCCESS)
        result = s->gpm.handle(uuid, &s->device);
    if (result == OCC_NVML_SUCCESS)
        result = s->gpm.support(s->device, &support);
    if (result != OCC_NVML_SUCCESS)
        return fail(s, result, "asking for GPM", err);
    if (!support.supported) {
        (void)occ_fail(err, OCC_E_INVALID, "this GPU has no GPM (it came with Hopper)");
        return OCC_SOURCE_NOT_SUPPORTED;
    }
    for (int i = 0; i < 2 && result == OCC_NVML_SUCCESS; i++)
        result = s->gpm.sample_alloc(&s->samples[i]);
    if (result == OCC_NVML_SUCCESS)
        result = s->gpm.sample_get(s->device, s->samples[0]);
    s->taken_ns[0] = occ_now_ns();
    s->due_ns = occ_monotonic_ns() + s->interval_ns;
    return result == OCC_NVML_SUCCESS ? OCC_SOURCE_OK : fail(s, result, "a GPM sample", err);
}

static void convert(const struct occ_source *s, struct occ_sample *sample)
{
    double ns = (double)(s->taken_ns[1] - s->taken_ns[0]);
    double active = s->get.metrics[0].value / 100, occupancy = s->get.metrics[1].value / 100;
    sample->start_ns = s->taken_ns[0];
    sample->end_ns = s->taken_ns[1];
    for (int i = 0; i < OCC_COUNTER_COUNT; i++)
        sample->value[i] = NAN;
    sample->value[OCC_COUNTER_ELAPSED] = ns;
    if (s->get.metrics[0].result == OCC_NVML_SUCCESS)
        sample->value[OCC_COUNTER_ACTIVE] = active * ns * s->gpu.sm_count;
    if (s->get.metrics[1].result == OCC_NVML_SUCCESS)
        sample->value[OCC_COUNTER_WARPS] = occupancy * ns * s->gpu.sm_count * s->gpu.max_warps_per_sm;
}

static enum occ_source_state gpm_read(struct occ_source *s, struct occ_sample *samples, size_t max,
                                      size_t *ret_n, struct occ_error *err)
{
    *ret_n = 0;
    if (max == 0 || occ_monotonic_ns() < s->due_ns)
        return OCC_SOURCE_OK;
    s->due_ns = occ_monotonic_ns() + s->interval_ns;
    int result = s->gpm.sample_get(s->device, s->samples[1]);
    s->taken_ns[1] = occ_now_ns();
    s->get.version = OCC_NVML_GPM_VERSION;
    s->get.n = 2;
    s->get.sample1 = s->samples[0];
    s->get.sample2 = s->samples[1];
    s->get.metrics[0].id = OCC_NVML_GPM_SM_UTIL;
    s->get.metrics[1].id = OCC_NVML_GPM_SM_OCCUPANCY;
    if (result == OCC_NVML_SUCCESS)
        result = s->gpm.metrics_get(&s->get);
    if (result != OCC_NVML_SUCCESS)
        return fail(s, result, "a GPM sample", err);
    bool good = s->taken_ns[1] > s->taken_ns[0];
    if (good)
        convert(s, &samples[(*ret_n)++]);
    s->stats.samples += good;
    s->stats.bad_samples += !good;
    void *older = s->samples[0];
    s->samples[0] = s->samples[1];
    s->samples[1] = older;
    s->taken_ns[0] = s->taken_ns[1];
    return OCC_SOURCE_OK;
}

static enum occ_source_state gpm_set_interval(struct occ_source *s, int64_t interval_ns,
                                              struct occ_error *err)
{
    (void)err;
    s->interval_ns = interval_ns > MIN_INTERVAL_NS ? interval_ns : MIN_INTERVAL_NS;
    return OCC_SOURCE_OK;
}

static const char *gpm_get_note(const struct occ_source *s)
{
    (void)s;
    return "";
}

static void gpm_get_stats(const struct occ_source *s, struct occ_source_stats *ret_stats)
{
    *ret_stats = s->stats;
}

const struct occ_source_kind occ_source_gpm = {.word = "gpm",
                                               .bytes = sizeof(struct occ_source),
                                               .begin = gpm_begin,
                                               .read = gpm_read,
                                               .set_interval = gpm_set_interval,
                                               .get_stats = gpm_get_stats,
                                               .get_note = gpm_get_note,
                                               .close = gpm_close};
