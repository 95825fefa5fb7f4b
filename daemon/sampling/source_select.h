/*
 * The counter source of one GPU: opens the best kind that works (PM sampling, then GPM), closes it while it
 * is not wanted, paused, or needed by another tool (counters/profiler_watch.h), and replaces a source that
 * fails. A kind that is busy, lost, failed or not permitted is tried again after a while; a kind that cannot
 * work on this machine is not. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "counters/profiler_watch.h"
#include "sampler_machine.h"
#include "support/error.h"

/* X(NAME, word, text): kinds of sources that may be used. */
#define OCC_SAMPLER_MODES(X)                                                                                 \
    X(AUTO, "auto", "the best that works: pm, gpm, none")                                                    \
    X(PM, "pm", "CUPTI PM sampling: per-launch occupancy and its causes")                                    \
    X(GPM, "gpm", "NVML GPM: a GPU's mean every 100 ms, no privilege")                                       \
    X(NONE, "none", "no hardware counters")

#define OCC_SAMPLER_ENUMERATOR(name, word, text) OCC_SAMPLER_##name,
enum occ_sampler_mode { OCC_SAMPLER_MODES(OCC_SAMPLER_ENUMERATOR) };

struct occ_sampler_options {
    enum occ_sampler_mode mode;
    int64_t interval_ns;                                   /* interval of PM samples */
    const struct occ_sampler_machine *machine;             /* NULL: occ_sampler_this_machine */
    const struct occ_attribution_assumptions *assumptions; /* NULL: the usual values */
};

/* The last refusal of a kind of source. */
struct occ_source_slot {
    enum occ_source_state state; /* why the kind was refused last; OK: not since the slots were cleared */
    char detail[OCC_ERROR_MESSAGE_BYTES];
    int64_t retry_ns; /* monotonic */
};

struct occ_source_select {
    struct occ_sampler_options options; /* must have a machine */
    struct occ_gpu_found gpu;
    const struct occ_source_kind *kind; /* kind of `source` or of the last one; NULL: no source yet */
    struct occ_source *source;          /* NULL: no source is open */
    size_t slot;                        /* slot of `kind` */
    struct occ_source_slot slots[OCC_SOURCE_SLOTS];
    bool has_worked[OCC_SOURCE_SLOTS]; /* was opened at least once */
    struct occ_profiler_watch *watch;  /* shared by all GPUs */
    const char *competitor;            /* text about another tool that needs the counters; NULL: none */
    bool is_paused, has_tried;
    enum occ_source_state state;          /* why no better source is used; OK: `source` is the best kind */
    char reason[256];                     /* the same as text for people; "": OK */
    int64_t burst_ends_ns, next_burst_ns; /* monotonic; burst_ends_ns 0: no burst */
    struct occ_source_stats closed;       /* sums over closed sources */
    /* path of a libcupti that a program uses, not checked; NULL: none */
    char *offered;
};

/* Takes over the malloc'ed path: kinds that found no library are tried again. The owner of `select` frees the
 * path. */
void occ_source_select_offer(struct occ_source_select *select, char *path);

/* Opens, closes or changes the source. true: the new source is of another kind than the last one. Times are
 * monotonic. */
bool occ_source_select_poll(struct occ_source_select *select, int64_t now_ns, int64_t wanted_until_ns,
                            int64_t paused_until_ns);

/* Reads at most `max` samples of the open source, oldest first. A source that fails is closed. */
size_t occ_source_select_read(struct occ_source_select *select, struct occ_sample *samples, size_t max);

/* Starts a burst of short PM intervals if it is `useful` and the last one is long enough ago, and ends a
 * burst that is over. true: a burst has ended. */
bool occ_source_select_burst(struct occ_source_select *select, bool useful);

/* Maximum time between two reads of the source. */
int64_t occ_source_select_read_every_ns(const struct occ_source_select *select);

/* Text for people: limitations of the open source compared to others of its kind; "": none. */
const char *occ_source_select_note(const struct occ_source_select *select);

void occ_source_select_close(struct occ_source_select *select);

/* The samples are unusable because of `err`: closes the source; no kind is tried for a while. */
void occ_source_select_fail(struct occ_source_select *select, const struct occ_error *err);

/* Sums over all sources since the start. */
void occ_source_select_get_stats(const struct occ_source_select *select, struct occ_source_stats *ret_stats);
