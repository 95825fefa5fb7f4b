/* Ends of sessions that no launch causes: before a capture, with a context, and at the program's end.
 *
 * All functions: the caller holds `lock`; they release it while they wait and in calls of CUPTI. */
#pragma once

#include "profiler.h"

/* Counts a capture that is about to begin and ends its context's session: a session must not end during a
 * capture, a capture may never end, and launches without ranges have no times. Waits, at most
 * OCC_EXACT_PATIENCE_NS, for other threads that begin or end sessions. */
void occ_capture_begins(struct occ_exact *e, const struct occ_capture_stream *of);
void occ_exact_context_destroyed(struct occ_exact *e, const void *context);
/* See occ_exact_end_all(). */
bool occ_exact_end_sessions(struct occ_exact *e);
