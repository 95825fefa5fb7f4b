/* The look at /proc for competing profilers that all GPUs of a daemon share: one pass over all processes
 * costs some 5 us for each, and does not depend on the GPU. Any thread. */
#pragma once

#include "competing_profilers.h"
#include "support/error.h"

/* The age up to which GPUs share a look. */
#define OCC_PROFILER_WATCH_NS INT64_C(2000000000)

struct occ_profiler_watch;

/* `proc` outlives the watch. */
int occ_profiler_watch_new(const char *proc, struct occ_profiler_watch **ret_watch, struct occ_error *err);
/* NULL is fine. */
void occ_profiler_watch_free(struct occ_profiler_watch *watch);

/* Replaces the users whose tools count; `users` gets the last array back for reuse. At first only tools of
 * root and of the daemon's own user count. */
void occ_profiler_watch_swap_users(struct occ_profiler_watch *watch, struct occ_profiler_users *users);

/* As occ_competing_profiler_text(), of a look at most OCC_PROFILER_WATCH_NS before `now_ns` (monotonic). */
const char *occ_profiler_watch_find(struct occ_profiler_watch *watch, uint32_t cc_major, int64_t now_ns);
