/*
 * Hardware counters for the daemon: finds the GPUs, runs one worker per GPU (gpu_worker.h), feeds them the
 * launches that the collectors append to the histories, and stores the results in these histories.
 *
 * A history gets the values of its own launches, and the seconds of the GPUs that its launches used.
 * Full-rate samples show the activity of all programs on the GPU: the first history (root's if each owner has
 * one) gets all of them; another history only those of times when no other history has programs on the GPU.
 *
 * A GPU is sampled for 10 s after a program has connected or launched something on it; then the counters are
 * released, as during a pause and while another tool needs them (source_select.h). Launches never wait for
 * the sampler: queues are bounded; launches that do not fit are counted and have no measured value.
 *
 * Threads: the daemon's loop calls every function here. The thread of each GPU inherits the loop's signal
 * mask; the thread that finds the GPUs (starting the driver can take a second) has all signals blocked.
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

/* Starts no thread. */
int occ_sampler_new(const struct occ_sampler_options *options, struct occ_sampler **ret_sampler,
                    struct occ_error *err);
/* Ends the threads and releases the counters. NULL is allowed. */
void occ_sampler_free(struct occ_sampler *sampler);

/* Adds a history whose launches will be fed: its number in the daemon, the store for its results, and its
 * collector, which knows its programs. The first history gets the samples of all GPUs. */
int occ_sampler_add_history(struct occ_sampler *sampler, uint32_t history, struct occ_store *store,
                            const struct occ_collector *collector, struct occ_error *err);
/* Call it after the store was reopened with another file: results of earlier launches are dropped. */
void occ_sampler_restart_history(struct occ_sampler *sampler, uint32_t history);
/* Removes a history; its results not stored yet are lost. */
void occ_sampler_remove_history(struct occ_sampler *sampler, uint32_t history);

/* Starts to search for GPUs unless counters are switched off. Call it before programs connect. */
void occ_sampler_discover(struct occ_sampler *sampler);

/* A program has connected: samples all GPUs for 10 s, since the program's GPU is not known yet. */
void occ_sampler_wake(struct occ_sampler *sampler);

/* Waits at most `patience_ns` until each GPU has tried to open its counters, so that the first launches of a
 * program started afterwards are measured too. */
void occ_sampler_await(struct occ_sampler *sampler, int64_t patience_ns);

/* A libcupti that a program uses, for GPUs whose worker found none. `is_own`: the program has the daemon's
 * user and sees the same files. Root's daemon accepts the path of any other program too if every user may
 * read the file; another daemon does not. The library is opened only if no other user can have written it
 * (cupti/trusted.h). */
void occ_sampler_offer_library(struct occ_sampler *sampler, const char *path, bool is_own);

/* Appended launches, or memory operations, of one run on the GPU with this uuid; `device` is the GPU's id in
 * the history. */
struct occ_sampler_launches {
    uint32_t history;
    const uint8_t *uuid;
    int64_t device, run;
    const struct occ_store_launch *rows;
    size_t n;
    bool are_memory; /* `config` of a row is an occ_producer_memory() */
};
void occ_sampler_feed(struct occ_sampler *sampler, const struct occ_sampler_launches *launches);

/* true if occ_sampler_poll() must be called every OCC_SAMPLER_POLL_NS, even without launches. */
#define OCC_SAMPLER_POLL_NS INT64_C(100000000)
bool occ_sampler_is_busy(struct occ_sampler *sampler);
/* See occ_profiler_watch_swap_users(). */
void occ_sampler_swap_users(struct occ_sampler *sampler, struct occ_profiler_users *users);

/* Shares new results among the histories. While programs report (`programs`), active GPUs that launches have
 * used stay sampled: the launch of a long kernel is reported when it ends. */
void occ_sampler_poll(struct occ_sampler *sampler, bool programs);

/* true if occ_sampler_store() has results to write. */
bool occ_sampler_has_results(const struct occ_sampler *sampler, uint32_t history);

/* Writes the results of a history since the last call into its store, for GPUs that its launches have used;
 * the next commit makes them durable. Results are dropped and counted if the store has no room, so that a
 * commit does not wait for them. */
int occ_sampler_store(struct occ_sampler *sampler, uint32_t history, struct occ_error *err);

/* Call it after the last launch: measures the waiting launches with the samples read until now, within
 * `patience_ns`. */
void occ_sampler_settle(struct occ_sampler *sampler, int64_t patience_ns);

/* Releases the counters for `duration_ns`, or ends the pause (0). */
void occ_sampler_pause(struct occ_sampler *sampler, int64_t duration_ns);
/* Remaining time of the pause; 0: not paused. */
int64_t occ_sampler_paused_ns(const struct occ_sampler *sampler);
enum occ_sampler_mode occ_sampler_mode(const struct occ_sampler *sampler);
const char *occ_sampler_mode_word(enum occ_sampler_mode mode);

/* Copies the status of the first GPUs, at most `max`. Returns the number of all GPUs, which may exceed `max`.
 */
size_t occ_sampler_get_status(struct occ_sampler *sampler, struct occ_gpu_status *status, size_t max);
/* The status of the GPU with this uuid. false: the sampler does not know it; ret_status->reason says why. */
bool occ_sampler_find_status(struct occ_sampler *sampler, const uint8_t uuid[16],
                             struct occ_gpu_status *ret_status);
