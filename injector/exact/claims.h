/* Contexts, their claims, and the bounded waits of the program's threads.
 *
 * All functions: the caller holds `lock`; they release it while they wait, except where stated. */
#pragma once

#include "profiler.h"

/* Maximum time that one thread waits for another. */
#define OCC_EXACT_PATIENCE_NS 500000000L

struct occ_exact_context *occ_exact_find(struct occ_exact *e, const void *context);

/* Returns the time `ns` from now on CLOCK_MONOTONIC; ns < 1 s. */
struct timespec occ_exact_after(long ns);

/* Counts the begin or the end of a launch that may belong to any session: sessions that run meanwhile have no
 * values. */
void occ_exact_stray(struct occ_exact *e, bool begins);

/* True if no session may begin or end: a stream is captured, or measuring or CUPTI has ended. own_captures:
 * captures of the calling thread that have not begun yet. The result is valid while `lock` is held. */
bool occ_exact_must_not_touch(const struct occ_exact *e, uint32_t own_captures);
/* True if sessions may begin and end. Called without `lock` between steps, each of which may take long: a
 * capture that stopped waiting may have begun meanwhile. */
bool occ_exact_may_go_on(struct occ_exact *e);

bool occ_exact_is_claimed(const struct occ_exact *e, const struct occ_exact_context *c);
/* Waits at most OCC_EXACT_PATIENCE_NS until no thread has claimed the context `c`, or any context if NULL.
 * Returns false if a claim remains. */
bool occ_exact_wait_for_claims(struct occ_exact *e, const struct occ_exact_context *c);
/* Waits until no launch is in flight, since a launch in flight would be in neither session. New launches wait
 * meanwhile, because the context is claimed. The wait is bounded: a launch may itself wait, and its callback
 * may be lost. */
void occ_exact_wait_for_launches(struct occ_exact *e, struct occ_exact_context *c, uint32_t own_captures);

/* Claims the context and releases the lock, so that CUPTI may be called for the context. */
void occ_exact_begin_calls(struct occ_exact *e, struct occ_exact_context *c);
/* Takes the lock and ends the claim. Returns false, without the lock and with the claim, only in a thread of
 * limited patience (occ_exact_lock()). */
bool occ_exact_end_calls(struct occ_exact *e, struct occ_exact_context *c);
void occ_exact_end_claim(struct occ_exact *e, struct occ_exact_context *c);
