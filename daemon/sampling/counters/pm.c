/*
 * PM sampling through CUPTI: the counters of a whole GPU at a fixed interval, in one pass, without
 * serialising kernels and without a context. The chip's counter sets take turns; the first set has 10/11 of
 * the time. A read decodes the hardware buffer into an image, and again while the buffer has more samples
 * than the image holds. An empty image is copied over the image before each decode, since a full image stays
 * full.
 *
 * Another set or interval needs another session (pm_session.h). After a change that fails, or after which
 * samples cannot be decoded, no further change is made: the first set is sampled at the first interval.
 *
 * Threads: one per source.
 */
#include "pm_session.h"
#include "pm_sets.h"
#include "support/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES     (UINT64_C(64) << 20)
#define BUFFER_MAX_BYTES (UINT64_C(512) << 20)
/* an image holds four rounds of the reading thread at long intervals, */
#define IMAGE_NS          INT64_C(200000000)
#define IMAGE_MIN_SAMPLES 64u
/* two rounds at short intervals; 400 samples of 23.3 KB take 9.3 MB */
#define IMAGE_MAX_SAMPLES 400u
#define MAIN_SET_NS       INT64_C(5000000000) /* length of the first set's turn */
#define OTHER_SETS_PART   10                  /* the other sets together have 1/OTHER_SETS_PART of that */

struct occ_source {
    struct occ_pm_library library;
    const struct occ_chip_sets *chip;
    struct occ_pm_sets sets;
    uint32_t at; /* index of the set in use */
    struct occ_pm_session session;
    bool is_full;         /* a hardware buffer that keeps its oldest records is full and accepts no more */
    bool keeps_first_set; /* a change has failed: first set and first interval only */
    bool has_changed;     /* the set or the interval changed and no sample has been decoded since */
    uint32_t ordinal;     /* CUDA's ordinal of the GPU */
    int64_t interval_ns, first_interval_ns, turn_ns, turn_ends_ns; /* turn_ends_ns: CLOCK_MONOTONIC */
    uint64_t buffer_bytes;
    size_t next, completed; /* samples of the image not returned yet: indices next to completed - 1 */
    bool first;             /* the first sample of the next decode has a meaningless start */
    int64_t last_end_ns;
    struct occ_source_stats stats;
    char note[OCC_PM_MISSING_BYTES + 256];
};

/* ---- begin and end ---- */

static void pm_close(struct occ_source *s)
{
    if (!s)
        return;
    occ_pm_session_free(&s->session);
    occ_pm_sets_free(&s->sets);
    free(s);
}

static uint32_t image_samples(int64_t interval_ns)
{
    int64_t n = IMAGE_NS / interval_ns;
    return n < IMAGE_MIN_SAMPLES   ? IMAGE_MIN_SAMPLES
           : n > IMAGE_MAX_SAMPLES ? IMAGE_MAX_SAMPLES
                                   : (uint32_t)n;
}

static struct occ_pm_plan plan_of(const struct occ_source *s)
{
    return (struct occ_pm_plan){.device = s->ordinal,
                                .host = &s->sets.host[s->at],
                                .interval_ns = s->interval_ns,
                                .buffer_bytes = s->buffer_bytes,
                                .by_system_clock = s->chip->system_clock_only,
                                .keep_oldest = s->chip->keep_oldest,
                                .image_samples = image_samples(s->interval_ns)};
}

static void on_begun(struct occ_source *s)
{
    s->stats.bytes_per_sample = s->session.image_bytes / image_samples(s->interval_ns);
    s->first = true;
    s->is_full = false;
    s->next = s->completed = 0;
}

static enum occ_source_state begin_session(struct occ_source *s, struct occ_error *err)
{
    const struct occ_pm_plan plan = plan_of(s);
    enum occ_source_state state = occ_pm_session_begin(&s->session, &plan, err);
    if (state == OCC_SOURCE_OK)
        on_begun(s);
    return state;
}

/* Starts the turn of the set in use. Bursts and overflows do not change its end. */
static void begin_turn(struct occ_source *s)
{
    int64_t turn_ns = s->at == 0 ? s->turn_ns : s->turn_ns / OTHER_SETS_PART / (s->sets.n - 1);
    s->turn_ends_ns = occ_monotonic_ns() + turn_ns;
}

static enum occ_source_state find_chip(struct occ_source *s, const char **ret_chip, struct occ_error *err)
{
    struct occ_params_chip_name name = {.size = sizeof name, .device = s->ordinal};
    uint32_t result = occ_pm_initialize(&s->library);
    if (result != OCC_CUPTI_SUCCESS)
        return occ_pm_fail(&s->library, result, "initialising the profiler", err);
    enum occ_source_state state = occ_pm_check_support(&s->library, s->ordinal, err);
    if (state != OCC_SOURCE_OK)
        return state;
    result = s->library.host.chip_name(&name);
    if (result != OCC_CUPTI_SUCCESS)
        return occ_pm_fail(&s->library, result, "asking for the chip", err);
    *ret_chip = name.name;
    s->chip = occ_chip_sets_find(name.name);
    return OCC_SOURCE_OK;
}

/* CUPTI may refuse to report availability while another client samples; Enable then returns the error. */
static enum occ_source_state configure(struct occ_source *s, const char *chip, struct occ_error *err)
{
    struct occ_cupti_image availability;
    (void)occ_cupti_availability(s->library.pm.availability, s->ordinal, &availability);
    enum occ_source_state state = occ_pm_sets_configure(&s->sets, &s->library, chip, &availability, err);
    occ_cupti_image_free(&availability);
    return state;
}

static void write_note(struct occ_source *s, const char *why_fixed)
{
    char missing[OCC_PM_MISSING_BYTES];
    occ_pm_sets_write_missing(&s->sets, missing);
    (void)snprintf(
        s->note, sizeof s->note, "%s%s%s%s%s",
        missing[0] ? "not counted on this GPU, or not in one pass: " : "", missing,
        missing[0] && s->keeps_first_set ? "; " : "",
        s->keeps_first_set ? "only one counter set and no bursts, since CUPTI failed after a change" : "",
        why_fixed);
}

static enum occ_source_state find_sets(struct occ_source *s, struct occ_error *err)
{
    const char *chip = NULL;
    occ_pm_session_enter();
    enum occ_source_state state = find_chip(s, &chip, err);
    if (state == OCC_SOURCE_OK)
        state = configure(s, chip, err);
    occ_pm_session_leave();
    write_note(s, "");
    return state;
}

static enum occ_source_state pm_begin(struct occ_source *s, const struct occ_source_options *options,
                                      struct occ_error *err)
{
    s->session.library = &s->library;
    s->ordinal = options->gpu.ordinal;
    s->interval_ns = s->first_interval_ns = options->interval_ns;
    s->turn_ns = options->turn_ns ? options->turn_ns : MAIN_SET_NS;
    s->keeps_first_set = options->keeps_first_set;
    s->buffer_bytes = options->buffer_bytes ? options->buffer_bytes : BUFFER_BYTES;
    s->buffer_bytes = s->buffer_bytes < BUFFER_MAX_BYTES ? s->buffer_bytes : BUFFER_MAX_BYTES;
    enum occ_source_state state = occ_pm_bind(options->cupti_path, options->cupti_offered, &s->library, err);
    if (state == OCC_SOURCE_OK)
        state = find_sets(s, err);
    if (state == OCC_SOURCE_OK)
        state = begin_session(s, err);
    if (state == OCC_SOURCE_OK)
        begin_turn(s);
    return state;
}

/* ---- other sessions ---- */

/* Restarts with the set and interval in use. */
static enum occ_source_state reopen(struct occ_source *s, struct occ_error *err)
{
    occ_pm_session_end(&s->session);
    s->last_end_ns = 0;
    return begin_session(s, err);
}

/* Called after an error: if it followed a change of set or interval, in the change itself or in the samples
 * decoded afterwards, goes back to the first set and interval for good. */
static enum occ_source_state give_up_changes(struct occ_source *s, enum occ_source_state state,
                                             const struct occ_error *err)
{
    if (s->keeps_first_set || !s->has_changed)
        return state;
    s->at = 0;
    s->interval_ns = s->first_interval_ns;
    if (reopen(s, NULL) != OCC_SOURCE_OK)
        return state;
    s->keeps_first_set = true;
    s->stats.failed_changes++;
    char why[160];
    (void)snprintf(why, sizeof why, ": %s", err->message);
    write_note(s, why);
    return OCC_SOURCE_OK;
}

static enum occ_source_state change(struct occ_source *s, uint32_t at, int64_t interval_ns,
                                    struct occ_error *err)
{
    s->has_changed = s->has_changed || at != s->at || interval_ns != s->interval_ns;
    s->at = at;
    s->interval_ns = interval_ns;
    enum occ_source_state state = reopen(s, err);
    return state == OCC_SOURCE_OK ? state : give_up_changes(s, state, err);
}

static bool may_change(const struct occ_source *s)
{
    return !s->keeps_first_set && occ_pm_session_may_end();
}

/* ---- reading ---- */

/* Fills the image again; *ret_drained: the hardware buffer is empty; otherwise the image is full. */
static uint32_t decode(struct occ_source *s, bool *ret_drained)
{
    struct occ_params_pm_decode p = {.size = OCC_PM_DECODE_SIZE,
                                     .object = s->session.object,
                                     .data = s->session.image.bytes,
                                     .data_size = s->session.image_bytes};
    struct occ_params_pm_info info = {
        .size = sizeof info, .data = s->session.image.bytes, .data_size = s->session.image_bytes};
    s->next = s->completed = 0;
    memcpy(s->session.image.bytes, s->session.empty.bytes, s->session.image_bytes);
    uint32_t result = s->library.pm.decode(&p);
    *ret_drained = p.stop_reason != OCC_PM_STOP_IMAGE_FULL;
    s->stats.overflows += p.overflow != 0 || result == OCC_CUPTI_ERROR_OUT_OF_MEMORY;
    s->is_full |= p.overflow != 0 && s->chip->keep_oldest;
    if (result == OCC_CUPTI_SUCCESS)
        result = s->library.pm.info(&info);
    if (result != OCC_CUPTI_SUCCESS)
        return result;
    s->completed = info.completed;
    s->next = s->first && s->completed > 0 ? 1 : 0;
    s->first = s->first && s->completed == 0;
    return OCC_CUPTI_SUCCESS;
}

static bool take_values(struct occ_source *s, size_t index, struct occ_sample *sample)
{
    const struct occ_counter_set *set = &s->sets.set[s->at];
    const struct occ_cupti_image image = {s->session.image_bytes, s->session.image.bytes};
    double values[OCC_SET_METRICS_MAX] = {0};
    if (occ_cupti_host_evaluate(&s->sets.host[s->at], &image, index, values) != OCC_CUPTI_SUCCESS)
        return false;
    for (int i = 0; i < OCC_COUNTER_COUNT; i++)
        sample->value[i] = NAN;
    for (uint32_t i = 0; i < set->n; i++)
        sample->value[set->counter[i]] = values[i];
    return true;
}

/* false: the sample is invalid. */
static bool take_sample(struct occ_source *s, size_t index, struct occ_sample *sample)
{
    struct occ_params_pm_sample p = {.size = sizeof p,
                                     .object = s->session.object,
                                     .data = s->session.image.bytes,
                                     .data_size = s->session.image_bytes,
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

/* Reads at most `max` samples; *ret_drained: no more are available. Returns a CUPTI result. */
static uint32_t gather(struct occ_source *s, struct occ_sample *samples, size_t max, size_t *ret_n,
                       bool *ret_drained)
{
    uint32_t result = OCC_CUPTI_SUCCESS;
    bool is_last = false; /* the current image is the last one */
    while (result == OCC_CUPTI_SUCCESS && *ret_n < max && (s->next < s->completed || !is_last)) {
        if (s->next == s->completed) {
            result = decode(s, &is_last);
            continue;
        }
        bool good = take_sample(s, s->next++, &samples[*ret_n]);
        *ret_n += good;
        s->stats.bad_samples += !good;
    }
    *ret_drained = is_last && s->next == s->completed;
    return result;
}

/* Handles a failed decode: restarts after an overflow of the hardware buffer, and after another GPU's session
 * has ended this one. */
static enum occ_source_state recover(struct occ_source *s, uint32_t result, struct occ_error *err)
{
    const struct occ_pm_plan plan = plan_of(s);
    s->next = s->completed = 0;
    if (occ_pm_session_renew(&s->session, &plan)) {
        s->stats.renewals++;
        on_begun(s);
        return OCC_SOURCE_OK;
    }
    enum occ_source_state state = result == OCC_CUPTI_ERROR_OUT_OF_MEMORY
                                      ? reopen(s, err)
                                      : occ_pm_fail(&s->library, result, "decoding samples", err);
    return state == OCC_SOURCE_OK ? state : give_up_changes(s, state, err);
}

/* Call it once all samples are read. Restarts a full buffer, since CUPTI's header does not promise that a
 * full buffer accepts records after a read, and changes to the next set at the end of a turn. */
static enum occ_source_state change_if_due(struct occ_source *s, struct occ_error *err)
{
    bool is_due = s->sets.n > 1 && occ_monotonic_ns() >= s->turn_ends_ns && (s->at > 0 || may_change(s));
    if (!is_due && !s->is_full)
        return OCC_SOURCE_OK;
    uint32_t next = is_due && may_change(s) ? (s->at + 1) % s->sets.n : is_due ? 0 : s->at;
    bool is_other = next != s->at;
    enum occ_source_state state = change(s, next, s->interval_ns, err);
    s->stats.rotations += is_other && state == OCC_SOURCE_OK && !s->keeps_first_set;
    if (is_due)
        begin_turn(s);
    return state;
}

static enum occ_source_state pm_read(struct occ_source *s, struct occ_sample *samples, size_t max,
                                     size_t *ret_n, struct occ_error *err)
{
    bool is_drained;
    *ret_n = 0;
    occ_pm_session_enter();
    uint32_t result = gather(s, samples, max, ret_n, &is_drained);
    occ_pm_session_leave();
    s->stats.samples += *ret_n;
    if (result != OCC_CUPTI_SUCCESS)
        return recover(s, result, err);
    s->has_changed = s->has_changed && *ret_n == 0; /* a decoded sample proves that the last change works */
    return is_drained ? change_if_due(s, err) : OCC_SOURCE_OK;
}

static enum occ_source_state pm_set_interval(struct occ_source *s, int64_t interval_ns, struct occ_error *err)
{
    if (interval_ns == s->interval_ns)
        return OCC_SOURCE_OK;
    if (!may_change(s) && interval_ns != s->first_interval_ns)
        return OCC_SOURCE_NOT_SUPPORTED;
    return change(s, s->at, interval_ns, err);
}

static const char *pm_get_note(const struct occ_source *s)
{
    return s->note;
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
                                              .get_note = pm_get_note,
                                              .close = pm_close};
