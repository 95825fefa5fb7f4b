/*
 * Hardware counters for the daemon: one thread a GPU in use (gpu_worker.c) reads a counter source, joins its samples with the
 * launches that the collector feeds, and gives back what was measured, added up by minute, run and shape.
 *
 *   collector --feed--> inbox --(thread: source + attribution)--> outbox --store--> history
 *
 * GPUs are sampled while programs report and have launched something in the last 10 s, or have just come; else the
 * counters are given back. They are given back too when asked (pause), and PM's while another tool wants them
 * (counters/competing_profilers.c). A source that cannot work says why once, and the next best takes its place (GPM after PM); one that was
 * busy or lost is tried again every 30 s. Launches never wait for any of this: inbox and outbox are bounded, what does not fit is counted and has no measured value.
 *
 * Threads: every function here belongs to the daemon's loop. Its threads share with it only what a track's mutex
 * guards, which is held for copying a batch or less; all signals are blocked in them.
 */
#ifndef OCC_SAMPLER_SAMPLER_H
#define OCC_SAMPLER_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/counters/gpus.h"
#include "daemon/counters/source.h"
#include "store/store.h"
#include "support/error.h"

/* X(NAME, word, text): which sources may be used. */
#define OCC_SAMPLER_MODES(X)                                                                                 \
    X(AUTO, "auto", "the best that works: pm, gpm, none")                                                    \
    X(PM, "pm", "CUPTI PM sampling: per-launch occupancy and its causes")                                    \
    X(GPM, "gpm", "NVML GPM: a GPU's mean every 100 ms, no privilege")                                       \
    X(NONE, "none", "no hardware counters")

enum occ_sampler_mode {
#define X(name, word, text) OCC_SAMPLER_##name,
    OCC_SAMPLER_MODES(X)
#undef X
        OCC_SAMPLER_MODE_COUNT
};

struct occ_sampler_options {
    enum occ_sampler_mode mode;
    int64_t interval_ns; /* of PM samples */
};

struct occ_sampler;

/* Starts nothing. */
int occ_sampler_new(const struct occ_sampler_options *options, struct occ_sampler **ret_sampler,
                    struct occ_error *err);
/* Ends the threads and gives the counters back. NULL is fine. */
void occ_sampler_free(struct occ_sampler *sampler);

/* Begins to look for GPUs, unless no counters may be used: before the first program comes, since it takes a while. */
void occ_sampler_begin(struct occ_sampler *sampler);

/* Whether something is still being done though no launches come; then occ_sampler_tend() wants to be called every
 * OCC_SAMPLER_TEND_NS. */
#define OCC_SAMPLER_TEND_NS INT64_C(100000000)
bool occ_sampler_is_busy(struct occ_sampler *sampler);
/* `programs`: some report; GPUs that they have used and that are active stay wanted, since a long kernel is told of when
 * it ends. True: there is something for occ_sampler_store(). */
bool occ_sampler_tend(struct occ_sampler *sampler, bool programs);

/* A program has come: its GPU is not known yet, so all are sampled for the next 10 s. */
void occ_sampler_wake(struct occ_sampler *sampler);

/* Waits until it is known of every GPU whether its counters can be read, at most `patience_ns`: so that the first launches
 * of a program that has not started yet are measured too. */
void occ_sampler_await(struct occ_sampler *sampler, int64_t patience_ns);

/* Launches of one run on the GPU with this uuid, as they were appended to `store`, which knows their shapes and calls the
 * GPU `device`. */
void occ_sampler_feed(struct occ_sampler *sampler, struct occ_store *store, const uint8_t uuid[16],
                      int64_t device, int64_t run, const struct occ_store_launch *rows, size_t n);

/* Puts what was measured since the last call into the store: sums by shape, values of launches that were read directly,
 * samples of GPUs that the store knows; durable with its next commit. What the store has no room for is dropped and
 * counted: a commit must not wait for it. */
int occ_sampler_store(struct occ_sampler *sampler, struct occ_store *store, struct occ_error *err);

/* No more launches come: joins all that wait with the samples that are there, and waits for it, at most
 * `patience_ns`. */
void occ_sampler_settle(struct occ_sampler *sampler, int64_t patience_ns);

/* Gives the counters back for `duration_ns`, or takes them again (0). */
void occ_sampler_pause(struct occ_sampler *sampler, int64_t duration_ns);
/* How long that still is; 0: not at all. */
int64_t occ_sampler_paused_ns(const struct occ_sampler *sampler);
enum occ_sampler_mode occ_sampler_mode(const struct occ_sampler *sampler);

/* How things are on one GPU. Zeroed uuid: the sampler knows no such GPU. */
struct occ_sampler_status {
    uint8_t uuid[16];
    uint32_t ordinal;
    const char *source;          /* word of the kind; "none" */
    enum occ_source_state state; /* OK: it samples */
    char reason[256];            /* why there is no better source, for people; "": this is the best */
    struct occ_source_stats stats;
    int64_t offset_ns; /* fitted, kernels' clock to samples' clock */
    double drift_ppm, residual_ratio;
    uint64_t launches, dropped; /* fed; that did not fit */
};
/* At most `max`; how many there are. */
size_t occ_sampler_status(struct occ_sampler *sampler, struct occ_sampler_status *status, size_t max);
/* Of the GPU with this uuid; false: the sampler does not know it, and status->reason says why. */
bool occ_sampler_ask(struct occ_sampler *sampler, const uint8_t uuid[16],
                     struct occ_sampler_status *ret_status);

/* OCC_SAMPLER_MODE_COUNT: no such word. */
enum occ_sampler_mode occ_sampler_mode_parse(const char *word);
const char *occ_sampler_mode_word(enum occ_sampler_mode mode);

#endif
