/* The search of /proc for competing profilers, shared by all GPUs of a daemon: a pass over all processes
 * costs some 5 us per process and does not depend on the GPU. Any thread. */
#pragma once

#include "competing_profilers.h"
#include "support/error.h"

/* Maximum age of a search result. */
#define OCC_PROFILER_WATCH_NS INT64_C(2000000000)

struct occ_profiler_watch;

/* `proc` must outlive the watch. */
int occ_profiler_watch_new(const char *proc, struct occ_profiler_watch **ret_watch, struct occ_error *err);
/* NULL is allowed. */
void occ_profiler_watch_free(struct occ_profiler_watch *watch);

/* Replaces the users of occ_competing_profilers(); `users` gets the previous array for reuse. Before the
 * first call only tools of root and of the daemon's own user are respected. */
void occ_profiler_watch_swap_users(struct occ_profiler_watch *watch, struct occ_profiler_users *users);

/* See occ_competing_profiler_text(); the result is at most OCC_PROFILER_WATCH_NS older than `now_ns`
 * (monotonic). */
const char *occ_profiler_watch_find(struct occ_profiler_watch *watch, uint32_t cc_major, int64_t now_ns);
