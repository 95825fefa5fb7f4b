/*
 * PM sampling through CUPTI: the counters of a whole GPU at a fixed interval, in one pass, without
 * serialising anything and without a context. The chip's counter sets take turns, the first one 10 of 11
 * parts of the time. Samples come straight from one decode of the hardware buffer into an image, which is
 * initialised before each decode since a full image stays full.
 *
 * Threads: one for each source.
 */
#include "pm_library.h"
#include "support/clock.h"

#include <math.h>
#include <stdlib.h>

#define BUFFER_BYTES      (UINT64_C(64) << 20)
#define BUFFER_MAX_BYTES  (UINT64_C(512) << 20)
#define IMAGE_NS          INT64_C(200000000) /* that an image holds: four rounds of the thread that reads */
#define IMAGE_MIN_SAMPLES 64u
#define IMAGE_MAX_SAMPLES 4096u
#define MAIN_SET_NS       INT64_C(5000000000) /* then the other sets have their turns, ... */
#define OTHER_SETS_NS     INT64_C(500000000)  /* ... all together for this long */

struct occ_source {
    struct occ_pm_library library;
    const struct occ_chip_sets *chip;
    const struct occ_counter_set *sets[OCC_SETS_MAX]; /* those of the chip that one pass holds ... */
    struct occ_cupti_host hosts[OCC_SETS_MAX];        /* ... and one for each */
    struct occ_counter_set reduced;                   /* the first set, where it had to be */
    uint32_t n_sets, at;                              /* at: index of the set in use */
    void *sampling;                                   /* CUPTI's object; NULL: not enabled */
    bool started;
    bool is_full;     /* the hardware buffer, which keeps its oldest records: it takes no more */
    uint32_t ordinal; /* CUDA's, of the GPU */
    int64_t interval_ns, turn_ends_ns; /* turn_ends: CLOCK_MONOTONIC */
    uint64_t buffer_bytes;
    struct occ_cupti_image image;
    size_t next, completed; /* samples of the image that are not handed out yet */
    bool first;             /* the next decode's first sample has a start that means nothing */
    int64_t last_end_ns;
    struct occ_source_stats stats;
};

/* ---- begin and end ---- */

static void stop(struct occ_source *s)
{
    struct occ_params_object p = {.size = sizeof p, .object = s->sampling};
    if (s->started)
        (void)s->library.pm.stop(&p);
    s->started = false;
}

static void pm_close(struct occ_source *s)
{
    if (!s)
        return;
    stop(s);
    struct occ_params_object p = {.size = sizeof p, .object = s->sampling};
    if (s->sampling)
        (void)s->library.pm.disable(&p);
    for (uint32_t i = 0; i < OCC_SETS_MAX; i++)
        occ_cupti_host_close(&s->hosts[i]);
    occ_cupti_image_free(&s->image);
    free(s);
}

static uint32_t image_samples(int64_t interval_ns)
{
    int64_t n = IMAGE_NS / interval_ns;
    return n < IMAGE_MIN_SAMPLES   ? IMAGE_MIN_SAMPLES
           : n > IMAGE_MAX_SAMPLES ? IMAGE_MAX_SAMPLES
                                   : (uint32_t)n;
}

static uint32_t make_image(struct occ_source *s)
{
    struct occ_params_pm_data_size p = {.size = sizeof p,
                                        .object = s->sampling,
                                        .metrics = s->hosts[s->at].metrics,
                                        .max_samples = image_samples(s->interval_ns)};
    uint32_t result = s->library.pm.data_size(&p);
    if (result != OCC_CUPTI_SUCCESS)
        return result;
    s->stats.bytes_per_sample = p.data_size / p.max_samples;
    occ_cupti_image_free(&s->image);
    return occ_cupti_image_new(&s->image, p.data_size) ? OCC_CUPTI_SUCCESS : OCC_CUPTI_ERROR_OUT_OF_MEMORY;
}

static uint32_t empty_image(struct occ_source *s)
{
    struct occ_params_data p = {.size = sizeof p, .object = s->sampling, .data = s->image};
    s->next = s->completed = 0;
    return s->library.pm.data(&p);
}

static uint32_t set_config(struct occ_source *s)
{
    bool by_clock = s->chip->system_clock_only; /* of about 1 GHz: as many clocks as nanoseconds */
    struct occ_params_pm_config p = {.size = sizeof p,
                                     .object = s->sampling,
                                     .config = s->hosts[s->at].config,
                                     .buffer_bytes = s->buffer_bytes,
                                     .interval = (uint64_t)s->interval_ns,
                                     .trigger = by_clock ? OCC_PM_TRIGGER_SYSTEM_CLOCK : OCC_PM_TRIGGER_TIME,
                                     .append_mode =
                                         s->chip->keep_oldest ? OCC_PM_KEEP_OLDEST : OCC_PM_KEEP_LATEST};
    return s->library.pm.set_config(&p);
}

/* Configures the set in use and starts. */
static enum occ_source_state start(struct occ_source *s, struct occ_error *err)
{
    uint32_t result = set_config(s);
    if (result != OCC_CUPTI_SUCCESS)
        return occ_pm_fail(&s->library, result, "configuring PM sampling", err);
    struct occ_params_object p = {.size = sizeof p, .object = s->sampling};
    result = make_image(s);
    if (result == OCC_CUPTI_SUCCESS)
        result = empty_image(s);
    if (result == OCC_CUPTI_SUCCESS)
        result = s->library.pm.start(&p);
    if (result != OCC_CUPTI_SUCCESS)
        return occ_pm_fail(&s->library, result, "starting PM sampling", err);
    s->started = s->first = true;
    s->is_full = false;
    return OCC_SOURCE_OK;
}

/* The set in use has its turn from now on; bursts and overflows do not change when it ends. */
static enum occ_source_state start_turn(struct occ_source *s, struct occ_error *err)
{
    int64_t turn_ns = s->at == 0 ? MAIN_SET_NS : OTHER_SETS_NS / (s->n_sets - 1);
    s->turn_ends_ns = occ_monotonic_ns() + turn_ns;
    return start(s, err);
}

static enum occ_source_state find_chip(struct occ_source *s, const char **ret_chip, struct occ_error *err)
{
    struct occ_params_none initialize = {.size = sizeof initialize};
    struct occ_params_chip_name name = {.size = sizeof name, .device = s->ordinal};
    uint32_t result = s->library.host.initialize(&initialize);
    if (result == OCC_CUPTI_SUCCESS)
        result = s->library.host.chip_name(&name);
    if (result != OCC_CUPTI_SUCCESS)
        return occ_pm_fail(&s->library, result, "asking for the chip", err);
    *ret_chip = name.name;
    s->chip = occ_chip_sets_find(name.name);
    return OCC_SOURCE_OK;
}

/* The first set is needed, with launched blocks or without; of the others, those that this chip and driver
 * have. */
static enum occ_source_state configure(struct occ_source *s, const char *chip, struct occ_error *err)
{
    struct occ_cupti_image availability;
    enum occ_source_state state;
    uint32_t result = occ_cupti_availability(s->library.pm.availability, s->ordinal, &availability);
    if (result != OCC_CUPTI_SUCCESS)
        return occ_pm_fail(&s->library, result, "asking for the chip's counters", err);
    s->reduced = occ_counter_set_without_launched(s->chip->sets[0]);
    s->sets[0] = s->chip->sets[0];
    state = occ_pm_configure(&s->library, chip, &availability, s->sets[0], &s->hosts[0], NULL);
    if (state != OCC_SOURCE_OK) {
        s->sets[0] = &s->reduced;
        state = occ_pm_configure(&s->library, chip, &availability, s->sets[0], &s->hosts[0], err);
    }
    s->n_sets = state == OCC_SOURCE_OK;
    for (uint32_t i = 1; i < s->chip->n && state == OCC_SOURCE_OK; i++) {
        s->sets[s->n_sets] = s->chip->sets[i];
        s->n_sets += occ_pm_configure(&s->library, chip, &availability, s->sets[s->n_sets],
                                      &s->hosts[s->n_sets], NULL) == OCC_SOURCE_OK;
    }
    occ_cupti_image_free(&availability);
    return state;
}

static enum occ_source_state enable(struct occ_source *s, struct occ_error *err)
{
    struct occ_params_enable p = {.size = sizeof p, .subject = s->ordinal};
    uint32_t result = s->library.pm.enable(&p);
    if (result != OCC_CUPTI_SUCCESS)
        return occ_pm_fail(&s->library, result, "enabling PM sampling", err);
    s->sampling = p.object;
    return OCC_SOURCE_OK;
}

static enum occ_source_state pm_begin(struct occ_source *s, const struct occ_source_options *options,
                                      struct occ_error *err)
{
    const char *chip = NULL;
    s->ordinal = options->gpu.ordinal;
    s->interval_ns = options->interval_ns;
    s->buffer_bytes = options->buffer_bytes ? options->buffer_bytes : BUFFER_BYTES;
    s->buffer_bytes = s->buffer_bytes < BUFFER_MAX_BYTES ? s->buffer_bytes : BUFFER_MAX_BYTES;
    enum occ_source_state state = occ_pm_bind(options->cupti_path, &s->library, err);
    if (state == OCC_SOURCE_OK)
        state = find_chip(s, &chip, err);
    if (state == OCC_SOURCE_OK)
        state = configure(s, chip, err);
    if (state == OCC_SOURCE_OK)
        state = enable(s, err);
    return state == OCC_SOURCE_OK ? start_turn(s, err) : state;
}

/* ---- reading ---- */

/* Fills the image anew; *ret_drained: the hardware buffer holds no more, else the image is full. */
static enum occ_source_state decode(struct occ_source *s, bool *ret_drained, struct occ_error *err)
{
    uint32_t result = empty_image(s);
    struct occ_params_pm_decode p = {.size = OCC_PM_DECODE_SIZE,
                                     .object = s->sampling,
                                     .data = s->image.bytes,
                                     .data_size = s->image.size};
    struct occ_params_pm_info info = {
        .size = sizeof info, .data = s->image.bytes, .data_size = s->image.size};
    if (result == OCC_CUPTI_SUCCESS)
        result = s->library.pm.decode(&p);
    *ret_drained = p.stop_reason != OCC_PM_STOP_IMAGE_FULL;
    s->stats.overflows += p.overflow != 0 || result == OCC_CUPTI_ERROR_OUT_OF_MEMORY;
    s->is_full |= p.overflow != 0 && s->chip->keep_oldest;
    if (result == OCC_CUPTI_ERROR_OUT_OF_MEMORY) { /* the hardware buffer has overflowed: begin again */
        stop(s);
        return start(s, err);
    }
    if (result == OCC_CUPTI_SUCCESS)
        result = s->library.pm.info(&info);
    if (result != OCC_CUPTI_SUCCESS)
        return occ_pm_fail(&s->library, result, "decoding samples", err);
    s->completed = info.completed;
    s->next = s->first && s->completed > 0 ? 1 : 0;
    s->first = s->first && s->completed == 0;
    return OCC_SOURCE_OK;
}

static bool take_values(struct occ_source *s, size_t index, struct occ_sample *sample)
{
    const struct occ_counter_set *set = s->sets[s->at];
    double values[OCC_SET_METRICS_MAX] = {0};
    if (occ_cupti_host_evaluate(&s->hosts[s->at], &s->image, index, values) != OCC_CUPTI_SUCCESS)
        return false;
    for (int i = 0; i < OCC_COUNTER_COUNT; i++)
        sample->value[i] = NAN;
    for (uint32_t i = 0; i < set->n; i++)
        sample->value[set->counter[i]] = values[i];
    return true;
}

/* False: the sample is not valid. */
static bool take_sample(struct occ_source *s, size_t index, struct occ_sample *sample)
{
    struct occ_params_pm_sample p = {.size = sizeof p,
                                     .object = s->sampling,
                                     .data = s->image.bytes,
                                     .data_size = s->image.size,
                                     .index = index};
    if (s->library.pm.sample(&p) != OCC_CUPTI_SUCCESS || p.start_ns >= p.end_ns || p.end_ns > INT64_MAX ||
        !take_values(s, index, sample))
        return false;
    sample->start_ns = (int64_t)p.start_ns;
    sample->end_ns = (int64_t)p.end_ns;
    s->stats.gaps += s->last_end_ns != 0 && sample->start_ns - s->last_end_ns > s->interval_ns / 2;
    s->last_end_ns = sample->end_ns;
    return true;
}

/* CUPTI's header does not promise that a full buffer takes records again once they are read. */
static enum occ_source_state restart_if_full(struct occ_source *s, struct occ_error *err)
{
    if (!s->is_full)
        return OCC_SOURCE_OK;
    stop(s);
    s->last_end_ns = 0;
    return start(s, err);
}

/* Changes to the next set when the turn of the one in use has ended. */
static enum occ_source_state rotate(struct occ_source *s, struct occ_error *err)
{
    if (s->n_sets < 2 || occ_monotonic_ns() < s->turn_ends_ns)
        return OCC_SOURCE_OK;
    stop(s);
    s->at = (s->at + 1) % s->n_sets;
    s->stats.rotations++;
    s->last_end_ns = 0;
    return start_turn(s, err);
}

static enum occ_source_state pm_read(struct occ_source *s, struct occ_sample *samples, size_t max,
                                     size_t *ret_n, struct occ_error *err)
{
    enum occ_source_state state = OCC_SOURCE_OK;
    bool is_drained = false;
    *ret_n = 0;
    while (state == OCC_SOURCE_OK && *ret_n < max && (s->next < s->completed || !is_drained)) {
        if (s->next == s->completed) {
            state = decode(s, &is_drained, err);
            continue;
        }
        bool good = take_sample(s, s->next++, &samples[*ret_n]);
        *ret_n += good;
        s->stats.bad_samples += !good;
    }
    s->stats.samples += *ret_n;
    if (state != OCC_SOURCE_OK || !is_drained || s->next < s->completed)
        return state;
    state = restart_if_full(s, err);
    return state == OCC_SOURCE_OK ? rotate(s, err) : state;
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
                                              .bytes = sizeof(struct occ_source),
                                              .begin = pm_begin,
                                              .read = pm_read,
                                              .set_interval = pm_set_interval,
                                              .get_stats = pm_get_stats,
                                              .close = pm_close};
