/*
 * fork(2): the child has no helper and must not report for its parent. It drops the inherited state:
 * descriptors are closed and the ring is unmapped; the pool stays, since CUPTI's copy in the child may still
 * point into it. No call to CUPTI (it would hang), no free. A child that initialises CUDA itself starts
 * again. The handlers run within fork, in the parent and in the child: only async-signal-safe calls.
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "ask.h"
#include "guest.h"

static void before(void)
{
    struct occ_guest *g = occ_guest();
    int saved = errno;
    if (g->pid == getpid())
        occ_ask_before_fork(g);
    errno = saved;
}

static void in_child(void)
{
    struct occ_guest *g = occ_guest();
    int saved = errno;
    if (atomic_load(&g->state) == OCC_GUEST_IDLE)
        return;
    if (g->tracing.nvtx)
        g->tracing.nvtx->attach(NULL);
    occ_link_close(&g->link);
    if (occ_fd_get(&g->memfd) < 0)
        g->ring.fd = -1;
    occ_ring_destroy(&g->ring);
    g->memfd = OCC_FD_NONE;
    atomic_store(&g->state, OCC_GUEST_IDLE);
    errno = saved;
}

void occ_fork_prepare(void)
{
    static bool prepared; /* inherited by children, like the handlers */
    if (!prepared)
        prepared = pthread_atfork(before, NULL, in_child) == 0;
}
