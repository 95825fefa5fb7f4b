/* See closer.h. One thread for each closer; `done` is its last word. */
#include "closer.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct occ_closer {
    pthread_t thread;
    atomic_bool done;
    size_t n;
    int fds[];
};

static void *close_all(void *closer)
{
    struct occ_closer *c = closer;
    for (size_t i = 0; i < c->n; i++)
        (void)close(c->fds[i]);
    atomic_store(&c->done, true);
    return NULL;
}

struct occ_closer *occ_closer_start(const int *fds, size_t n)
{
    struct occ_closer *c = n > 0 ? malloc(sizeof *c + n * sizeof *fds) : NULL;
    if (!c)
        return NULL; /* without memory they stay open */
    atomic_init(&c->done, false);
    c->n = 0;
    for (size_t i = 0; i < n; i++)
        if (fcntl(fds[i], F_GET_SEALS) >= 0)
            (void)close(fds[i]);
        else
            c->fds[c->n++] = fds[i];
    if (c->n > 0 && pthread_create(&c->thread, NULL, close_all, c) == 0)
        return c;
    free(c);
    return NULL;
}

bool occ_closer_is_done(struct occ_closer *closer)
{
    if (!atomic_load(&closer->done))
        return false;
    (void)pthread_join(closer->thread, NULL);
    free(closer);
    return true;
}
