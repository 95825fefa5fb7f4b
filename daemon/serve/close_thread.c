/* See close_thread.h. */
#include "close_thread.h"

#include <fcntl.h>
#include <unistd.h>

static void *close_all(void *close_thread)
{
    struct occ_close_thread *c = close_thread;
    for (size_t i = 0; i < c->n; i++)
        (void)close(c->fds[i]);
    atomic_store(&c->is_done, true);
    return NULL;
}

static void start_thread(struct occ_close_thread *c)
{
    atomic_store(&c->is_done, false);
    c->has_thread = pthread_create(&c->thread, NULL, close_all, c) == 0;
}

void occ_close_thread_start(struct occ_close_thread *c, const int *fds, size_t n)
{
    c->n = 0;
    for (size_t i = 0; i < n; i++)
        if (fcntl(fds[i], F_GET_SEALS) >= 0)
            (void)close(fds[i]);
        else
            c->fds[c->n++] = fds[i];
    if (c->n > 0)
        start_thread(c);
}

bool occ_close_thread_is_busy(struct occ_close_thread *c)
{
    if (c->n > 0 && !c->has_thread)
        start_thread(c);
    if (c->n == 0 || !c->has_thread || !atomic_load(&c->is_done))
        return c->n > 0;
    (void)pthread_join(c->thread, NULL);
    c->has_thread = false;
    c->n = 0;
    return false;
}
