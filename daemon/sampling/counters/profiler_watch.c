/* See profiler_watch.h. */
#include "profiler_watch.h"

#include <pthread.h>
#include <stdlib.h>

struct occ_profiler_watch {
    const char *proc;
    /* guards the rest; held during a search, so that GPUs do not search at the same time */
    pthread_mutex_t mutex;
    struct occ_profiler_users users;
    int64_t next_ns;
    uint32_t oldest_cc; /* lowest compute capability among the GPUs that asked */
    uint32_t found;     /* result of the last search */
};

int occ_profiler_watch_new(const char *proc, struct occ_profiler_watch **ret_watch, struct occ_error *err)
{
    struct occ_profiler_watch *w = calloc(1, sizeof *w);
    if (!w)
        return occ_no_memory(err);
    w->proc = proc;
    w->oldest_cc = UINT32_MAX;
    (void)pthread_mutex_init(&w->mutex, NULL);
    *ret_watch = w;
    return 0;
}

void occ_profiler_watch_free(struct occ_profiler_watch *w)
{
    if (!w)
        return;
    (void)pthread_mutex_destroy(&w->mutex);
    free(w->users.uids);
    free(w);
}

void occ_profiler_watch_swap_users(struct occ_profiler_watch *w, struct occ_profiler_users *users)
{
    (void)pthread_mutex_lock(&w->mutex);
    struct occ_profiler_users last = w->users;
    w->users = *users;
    (void)pthread_mutex_unlock(&w->mutex);
    *users = last;
}

/* A GPU older than all before needs a new search: searches for newer GPUs skip tools that use older GPUs
 * only. */
const char *occ_profiler_watch_find(struct occ_profiler_watch *w, uint32_t cc_major, int64_t now_ns)
{
    (void)pthread_mutex_lock(&w->mutex);
    if (now_ns >= w->next_ns || cc_major < w->oldest_cc) {
        w->oldest_cc = cc_major < w->oldest_cc ? cc_major : w->oldest_cc;
        w->found = occ_competing_profilers(w->proc, w->oldest_cc, &w->users);
        w->next_ns = now_ns + OCC_PROFILER_WATCH_NS;
    }
    const char *text = occ_competing_profiler_text(w->found, cc_major);
    (void)pthread_mutex_unlock(&w->mutex);
    return text;
}
