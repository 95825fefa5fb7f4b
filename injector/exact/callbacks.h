/* CUPTI's callbacks around launches, captures and the end of contexts: they begin and end sessions
 * (profiler.h). */
#pragma once

#include "profiler.h"

/* Subscribes and turns measuring on; false with the problem set. By the thread that initialises CUDA. */
bool occ_exact_watch(struct occ_exact *exact);

/* Ends the sessions of all contexts that no thread has claimed. The caller holds `lock` and has turned
 * measuring off; the lock is released in calls of CUPTI, and while it waits at most `patience_ns` for claims
 * to end. */
void occ_exact_end_all(struct occ_exact *exact, long patience_ns);
