/* CUPTI's callbacks for launches, stream captures and destroyed contexts: they begin and end sessions
 * (profiler.h). */
#pragma once

#include "profiler.h"

/* Subscribes to callbacks and turns measuring on. Returns false and sets the problem on failure. Called by
 * the thread that initialises CUDA. */
bool occ_exact_watch(struct occ_exact *exact);

/* Ends the sessions of all contexts that no thread has claimed. The caller holds `lock` and has turned
 * measuring off. Releases the lock in calls of CUPTI, and while it waits for claims to end, at most
 * `patience_ns`. */
void occ_exact_end_all(struct occ_exact *exact, long patience_ns);
