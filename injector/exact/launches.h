/* Launches of the program, as CUPTI's callbacks report them: which context a launch is in, when its sessions
 * begin and end, that launches take turns, and which call a session's ranges may be.
 *
 * All functions: the caller holds `lock`, which is released while they wait and in calls of CUPTI. */
#pragma once

#include "profiler.h"

/* One thread waits for another one this long at most. */
#define OCC_EXACT_PATIENCE_NS 500000000L

void occ_launch_begins(struct occ_exact *e, const struct occ_callback_data *data, bool is_graph);
/* result: the CUresult of the call. */
void occ_launch_ends(struct occ_exact *e, uint32_t result);
/* A capture begins now. Its context's session ends before: it must not end until the capture does, which may
 * be never, and launches without its ranges have no times. Sessions that are about to begin or end are over.
 */
void occ_capture_begins(struct occ_exact *e, const struct occ_callback_data *data);
/* A launch of an unknown session begins, or ends: each session that runs meanwhile has no values. */
void occ_exact_stray(struct occ_exact *e, bool begins);
void occ_exact_context_destroyed(struct occ_exact *e, void *context);

/* Waits at most so long until no thread has claimed the context; NULL: any context. False: one has still. */
bool occ_exact_wait_for_claims(struct occ_exact *e, const struct occ_exact_context *c, long patience_ns);
/* See occ_exact_end_all(). */
void occ_exact_end_sessions(struct occ_exact *e, long patience_ns);
