/* See sampling.h. */
#include "sampling.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/sampling/counters/gpus.h"
#include "stop.h"
#include "support/cleanup.h"
#include "support/clock.h"
#include "support/text.h"

enum { READ_ROOM = 8192, MOST_SAMPLES = 8 * 1000 * 1000 };

enum occ_source_state gpu_sampling_open(struct sampling *sampling, const struct occ_source_kind *kind,
                                        int64_t interval_ns, uint64_t buffer_bytes)
{
    struct occ_source_options options = {.interval_ns = interval_ns, .buffer_bytes = buffer_bytes};
    size_t gpus = 0;
    *sampling = (struct sampling){
        .kind = kind, .interval_ns = interval_ns, .read_every_ns = occ_source_read_every_ns(interval_ns)};
    sampling->state = occ_gpus_find(&options.gpu, 1, &gpus, &sampling->error);
    if (sampling->state == OCC_SOURCE_OK)
        sampling->state = occ_source_open(kind, &options, &sampling->source, &sampling->error);
    return sampling->state;
}

bool gpu_sampling_due(const struct sampling *sampling, int64_t now_ns)
{
    return now_ns >= sampling->next_read_ns;
}

static bool make_room(struct sampling *sampling)
{
    if (sampling->room - sampling->n >= READ_ROOM)
        return true;
    size_t room = sampling->room ? sampling->room * 2 : 4 * (size_t)READ_ROOM;
    struct occ_sample *samples =
        room > MOST_SAMPLES ? NULL : realloc(sampling->samples, room * sizeof *samples);
    if (!samples)
        return false;
    sampling->samples = samples;
    sampling->room = room;
    return true;
}

static double processor_s(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static enum occ_source_state read_once(struct sampling *sampling, size_t *ret_n)
{
    *ret_n = 0;
    if (!make_room(sampling)) {
        (void)occ_fail(&sampling->error, OCC_E_NO_MEMORY, "more samples than an experiment keeps");
        return OCC_SOURCE_FAILED;
    }
    double before = processor_s();
    enum occ_source_state state = sampling->kind->read(sampling->source, sampling->samples + sampling->n,
                                                       READ_ROOM, ret_n, &sampling->error);
    sampling->cpu_s += processor_s() - before;
    sampling->n += *ret_n;
    sampling->reads++;
    sampling->full_reads += *ret_n == READ_ROOM;
    return state;
}

enum occ_source_state gpu_sampling_read(struct sampling *sampling)
{
    size_t n = READ_ROOM;
    while (sampling->state == OCC_SOURCE_OK && n == READ_ROOM)
        sampling->state = read_once(sampling, &n);
    sampling->next_read_ns = occ_now_ns() + sampling->read_every_ns;
    return sampling->state;
}

void gpu_sampling_forget(struct sampling *sampling)
{
    sampling->n = 0;
}

enum occ_source_state gpu_sampling_run(struct sampling *sampling, double seconds)
{
    int64_t end_ns = occ_now_ns() + (int64_t)(seconds * 1e9);
    while (sampling->state == OCC_SOURCE_OK && occ_now_ns() < end_ns &&
           gpu_sleep((double)sampling->read_every_ns / 1e9))
        (void)gpu_sampling_read(sampling);
    return sampling->state;
}

/* ---- means ---- */

/* Sums two counters over the samples with both. */
struct pair {
    double over, under;
};

static struct pair sum(const struct sampling *sampling, enum occ_counter over, enum occ_counter under)
{
    struct pair pair = {0};
    for (size_t i = 0; i < sampling->n; i++) {
        const double *value = sampling->samples[i].value;
        if (isnan(value[over]) || isnan(value[under]))
            continue;
        pair.over += value[over];
        pair.under += value[under];
    }
    return pair;
}

static double ratio(struct pair pair, double scale)
{
    return pair.under > 0 && scale > 0 ? pair.over / (pair.under * scale) : NAN;
}

void gpu_sampling_means(const struct sampling *sampling, uint32_t max_warps, uint32_t sms,
                        struct sampling_means *ret_means)
{
    double ns = 0, clocked_ns = 0, cycles = 0;
    for (size_t i = 0; i < sampling->n; i++) {
        const struct occ_sample *sample = &sampling->samples[i];
        double length_ns = (double)(sample->end_ns - sample->start_ns);
        ns += length_ns;
        if (isnan(sample->value[OCC_COUNTER_ELAPSED]))
            continue;
        clocked_ns += length_ns;
        cycles += sample->value[OCC_COUNTER_ELAPSED];
    }
    double cycles_per_ns = clocked_ns > 0 ? cycles / clocked_ns : NAN;
    *ret_means = (struct sampling_means){
        .achieved = ratio(sum(sampling, OCC_COUNTER_WARPS, OCC_COUNTER_ACTIVE), max_warps),
        .elapsed = ratio(sum(sampling, OCC_COUNTER_WARPS, OCC_COUNTER_ELAPSED), (double)max_warps * sms),
        .sm_active = ratio(sum(sampling, OCC_COUNTER_ACTIVE, OCC_COUNTER_ELAPSED), sms),
        .blocks = ratio(sum(sampling, OCC_COUNTER_BLOCKS, OCC_COUNTER_ACTIVE), 1),
        .seconds = ns / 1e9,
        .block_us = ratio(sum(sampling, OCC_COUNTER_BLOCKS, OCC_COUNTER_LAUNCHED), cycles_per_ns * 1e3),
        .cycles_per_ns = cycles_per_ns,
    };
}

void gpu_sampling_stats(const struct sampling *sampling, struct occ_source_stats *ret_stats)
{
    *ret_stats = (struct occ_source_stats){0};
    if (sampling->source)
        sampling->kind->get_stats(sampling->source, ret_stats);
}

int gpu_sampling_dump(const struct sampling *sampling, const char *path)
{
    _cleanup_(occ_fclosep) FILE *file = fopen(path, "we");
    for (size_t i = 0; file && i < sampling->n; i++) {
        const struct occ_sample *s = &sampling->samples[i];
        (void)fprintf(file, "%" PRId64 " %" PRId64 " %.17g %.17g %.17g\n", s->start_ns, s->end_ns,
                      s->value[OCC_COUNTER_WARPS], s->value[OCC_COUNTER_ACTIVE],
                      s->value[OCC_COUNTER_ELAPSED]);
    }
    return file && fflush(file) == 0 && !ferror(file) ? 0 : -1;
}

void gpu_sampling_close(struct sampling *sampling)
{
    if (sampling->source)
        sampling->kind->close(sampling->source);
    sampling->source = NULL;
    free(sampling->samples);
    sampling->samples = NULL;
    sampling->n = sampling->room = 0;
}
