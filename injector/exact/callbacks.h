/* CUPTI's callbacks for launches, stream captures and destroyed contexts: they begin and end sessions
 * (profiler.h). */
#pragma once

#include "profiler.h"

/* Subscribes to callbacks and turns measuring on. Returns false and sets the problem on failure. Called by
 * the thread that initialises CUDA. */
bool occ_exact_watch(struct occ_exact *exact);

/* Ends the sessions of all contexts that no thread has claimed. The caller holds `lock`, has turned measuring
 * off and has limited its naps. Releases the lock in calls of CUPTI, and while it waits for claims to end.
 * Returns false without the lock: another thread held it for too long. */
bool occ_exact_end_all(struct occ_exact *exact);
