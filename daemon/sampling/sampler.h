/*
 * Hardware counters for the daemon: finds the GPUs, has one worker for each (gpu_worker.h), feeds them the
 * launches that the collectors append to the histories, and puts what was measured into these.
 *
 * A history gets the values of its own launches, and the seconds of the GPUs that its launches have named.
 * The samples at full rate show what others do on the GPU: the first history, root's where there is one for
 * each owner, gets all of them, another only those of times when no other history has programs there.
 *
 * GPUs are sampled while programs report and have launched something in the last 10 s, or have just come;
 * else the counters are given back, as they are during a pause and while another tool wants them
 * (source_select.h). Launches never wait for any of this: queues are bounded, what does not fit is counted
 * and has no measured value.
 *
 * Threads: every function here belongs to the daemon's loop. One thread a GPU inherits its signal mask; the
 * one that finds the GPUs, since starting the driver can take a second, has all signals blocked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/collect/collector.h"
#include "gpu_worker.h"
#include "store/store.h"
#include "support/error.h"

struct occ_sampler;

/* Starts nothing. */
int occ_sampler_new(const struct occ_sampler_options *options, struct occ_sampler **ret_sampler,
                    struct occ_error *err);
/* Ends the threads and gives the counters back. NULL is fine. */
void occ_sampler_free(struct occ_sampler *sampler);

/* A history whose launches will be fed: its number in the daemon, its store, which gets the results, and its
 * collector, which knows its programs. The first one that is added takes the samples of all. */
int occ_sampler_add_history(struct occ_sampler *sampler, uint32_t history, struct occ_store *store,
                            const struct occ_collector *collector, struct occ_error *err);
/* Its store has another file: results of launches that were fed before are dropped. */
void occ_sampler_restart_history(struct occ_sampler *sampler, uint32_t history);
/* What was measured for it and not stored is gone. */
void occ_sampler_remove_history(struct occ_sampler *sampler, uint32_t history);

/* Starts to look for GPUs, unless counters are switched off; call it before programs come. */
void occ_sampler_discover(struct occ_sampler *sampler);

/* A program has come: all GPUs are sampled for the next 10 s, since its own is not known yet. */
void occ_sampler_wake(struct occ_sampler *sampler);

/* Waits, for `patience_ns` at most, until it is known of every GPU whether its counters can be read: the
 * first launches of a program that starts afterwards are measured too. */
void occ_sampler_await(struct occ_sampler *sampler, int64_t patience_ns);

/* A program of user `uid` uses this libcupti, where the daemon may have found none. It is taken from any user
 * by root's daemon, else from the daemon's own, and is opened only if nobody else can have written it
 * (cupti/trusted.h). */
void occ_sampler_offer_library(struct occ_sampler *sampler, const char *path, uint32_t uid);

/* Launches of one run on the GPU with this uuid, which the history calls `device`, as they were appended. */
struct occ_sampler_launches {
    uint32_t history;
    const uint8_t *uuid;
    int64_t device, run;
    const struct occ_store_launch *rows;
    size_t n;
};
void occ_sampler_feed(struct occ_sampler *sampler, const struct occ_sampler_launches *launches);

/* Whether occ_sampler_poll() is to be called every OCC_SAMPLER_POLL_NS, also without launches. */
#define OCC_SAMPLER_POLL_NS INT64_C(100000000)
bool occ_sampler_is_busy(struct occ_sampler *sampler);
/* Users whose profilers get the counters, as occ_profiler_watch_swap_users(). */
void occ_sampler_swap_users(struct occ_sampler *sampler, struct occ_profiler_users *users);

/* While programs report (`programs`), active GPUs that they have used stay wanted: a long kernel's launch is
 * reported when it ends. Gives the histories what was measured for them. */
void occ_sampler_poll(struct occ_sampler *sampler, bool programs);

/* Whether there is something for occ_sampler_store(). */
bool occ_sampler_has_results(const struct occ_sampler *sampler, uint32_t history);

/* Puts what was measured for a history since the last call into its store, of GPUs that its launches have
 * named; durable with its next commit. What the store has no room for is dropped and counted: a commit must
 * not wait for it. */
int occ_sampler_store(struct occ_sampler *sampler, uint32_t history, struct occ_error *err);

/* No more launches come: measures those that wait with the samples so far, within `patience_ns`. */
void occ_sampler_settle(struct occ_sampler *sampler, int64_t patience_ns);

/* Gives the counters back for `duration_ns`, or takes them again (0). */
void occ_sampler_pause(struct occ_sampler *sampler, int64_t duration_ns);
/* How long the pause still is; 0: there is none. */
int64_t occ_sampler_paused_ns(const struct occ_sampler *sampler);
enum occ_sampler_mode occ_sampler_mode(const struct occ_sampler *sampler);
const char *occ_sampler_mode_word(enum occ_sampler_mode mode);

/* The status of at most `max` GPUs; returns their number. */
size_t occ_sampler_get_status(struct occ_sampler *sampler, struct occ_gpu_status *status, size_t max);
/* Of the GPU with this uuid; false: the sampler does not know it, and ret_status->reason has why. */
bool occ_sampler_find_status(struct occ_sampler *sampler, const uint8_t uuid[16],
                             struct occ_gpu_status *ret_status);
