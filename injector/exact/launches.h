/* Launches of the program, as CUPTI's callbacks report them: finds a launch's context, begins and ends the
 * context's sessions, makes launches take turns, and lists the calls that may be a session's ranges.
 *
 * All functions: the caller holds `lock`; they release it while they wait and in calls of CUPTI. */
#pragma once

#include "profiler.h"

void occ_launch_begins(struct occ_exact *e, const struct occ_callback_data *data, bool is_graph);
/* Handles the return of a launch call; `result` is its CUresult. */
void occ_launch_ends(struct occ_exact *e, uint32_t result);
/* Counts the begin or the end of a call that launches in several contexts. */
void occ_launch_in_several(struct occ_exact *e, bool begins);
/* Ends the calls that the calling thread is in: the thread has been cancelled, and they never return. */
void occ_launch_thread_ended(struct occ_exact *e);
