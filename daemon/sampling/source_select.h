/*
 * The counter source of one GPU: opens the best kind that works (PM sampling, then GPM), gives it back while
 * it is not wanted, paused, or wanted by another tool (counters/profiler_watch.h), and replaces one that
 * fails. A kind that is busy, lost, failed or not permitted is tried again after a while; one that cannot
 * work here is not. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "counters/profiler_watch.h"
#include "sampler_machine.h"
#include "support/error.h"

/* X(NAME, word, text): which kinds of sources may be used. */
#define OCC_SAMPLER_MODES(X)                                                                                 \
    X(AUTO, "auto", "the best that works: pm, gpm, none")                                                    \
    X(PM, "pm", "CUPTI PM sampling: per-launch occupancy and its causes")                                    \
    X(GPM, "gpm", "NVML GPM: a GPU's mean every 100 ms, no privilege")                                       \
    X(NONE, "none", "no hardware counters")

#define OCC_SAMPLER_ENUMERATOR(name, word, text) OCC_SAMPLER_##name,
enum occ_sampler_mode { OCC_SAMPLER_MODES(OCC_SAMPLER_ENUMERATOR) };

struct occ_sampler_options {
    enum occ_sampler_mode mode;
    int64_t interval_ns;                       /* of PM samples */
    const struct occ_sampler_machine *machine; /* NULL: this one */
};

/* A kind of source that is not in use. */
struct occ_source_slot {
    enum occ_source_state state; /* why not; OK: it was not tried */
    char detail[OCC_ERROR_MESSAGE_BYTES];
    int64_t retry_ns; /* monotonic */
};

struct occ_source_select {
    struct occ_sampler_options options; /* with a machine */
    struct occ_gpu_found gpu;
    const struct occ_source_kind *kind; /* of `source`, or of the last one; NULL: there was none */
    struct occ_source *source;          /* NULL: none is open */
    size_t slot;                        /* of `kind` */
    struct occ_source_slot slots[OCC_SOURCE_SLOTS];
    bool has_worked[OCC_SOURCE_SLOTS]; /* was opened, ever */
    struct occ_profiler_watch *watch;  /* of all GPUs */
    const char *competitor;            /* another tool that wants the counters; NULL: none */
    bool is_paused, has_tried;
    enum occ_source_state state;          /* why there is no better source; OK: `source` is the best kind */
    char reason[256];                     /* the same for people; "" */
    int64_t burst_ends_ns, next_burst_ns; /* monotonic; burst_ends_ns 0: no burst */
    struct occ_source_stats closed;       /* of sources that were closed */
    char *offered;                        /* a libcupti that a program uses, not checked; NULL: none */
};

/* Takes the path (malloc'ed): sources that found no library are tried again. Freed by the select's owner. */
void occ_source_select_offer(struct occ_source_select *select, char *path);

/* Opens, closes or changes the source. True: it is of another kind than the last one. Times are monotonic. */
bool occ_source_select_poll(struct occ_source_select *select, int64_t now_ns, int64_t wanted_until_ns,
                            int64_t paused_until_ns);

/* Samples of the open source, oldest first, at most `max`; a source that fails is closed. */
size_t occ_source_select_read(struct occ_source_select *select, struct occ_sample *samples, size_t max);

/* Starts a burst of short PM intervals if one is `useful` and the last one is long enough ago, and ends it.
 * True: a burst has ended. */
bool occ_source_select_burst(struct occ_source_select *select, bool useful);

/* After so long the source is to be read again. */
int64_t occ_source_select_read_every_ns(const struct occ_source_select *select);

/* What the open source does less of than others of its kind, for people; "": nothing. */
const char *occ_source_select_note(const struct occ_source_select *select);

void occ_source_select_close(struct occ_source_select *select);

/* The samples cannot be used because of `err`: closes the source; no kind is tried for a while. */
void occ_source_select_fail(struct occ_source_select *select, const struct occ_error *err);

/* Of all sources so far. */
void occ_source_select_get_stats(const struct occ_source_select *select, struct occ_source_stats *ret_stats);
