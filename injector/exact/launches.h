/* Launches of the program, as CUPTI's callbacks report them: finds a launch's context, begins and ends the
 * context's sessions, makes launches take turns, and lists the calls that may be a session's ranges.
 *
 * All functions: the caller holds `lock`; they release it while they wait and in calls of CUPTI. */
#pragma once

#include "profiler.h"

/* Maximum time that one thread waits for another. */
#define OCC_EXACT_PATIENCE_NS 500000000L

void occ_launch_begins(struct occ_exact *e, const struct occ_callback_data *data, bool is_graph);
/* Handles the return of a launch call; `result` is its CUresult. */
void occ_launch_ends(struct occ_exact *e, uint32_t result);
/* Counts a capture that is about to begin and ends its context's session: a session must not end during a
 * capture, a capture may never end, and launches without ranges have no times. Waits, at most
 * OCC_EXACT_PATIENCE_NS, for other threads that begin or end sessions. */
void occ_capture_begins(struct occ_exact *e, const struct occ_callback_data *data);
/* Counts the begin or the end of a launch that may belong to any session: sessions that run meanwhile have no
 * values. */
void occ_exact_stray(struct occ_exact *e, bool begins);
void occ_exact_context_destroyed(struct occ_exact *e, void *context);

/* Waits at most `patience_ns` until no thread has claimed the context `c`, or any context if NULL. Returns
 * false if a claim remains. */
bool occ_exact_wait_for_claims(struct occ_exact *e, const struct occ_exact_context *c, long patience_ns);
/* See occ_exact_end_all(). */
void occ_exact_end_sessions(struct occ_exact *e, long patience_ns);
