/* See threads.h. */
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

bool occ_thread_start(void *(*run)(void *), void *context)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited by the new thread before it runs */
    int rc = pthread_create(&thread, &attributes, run, context);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return rc == 0;
}

/* Called by the thread itself: if the right to change the scheduling is missing, a scheduling attribute would
 * make pthread_create() fail. */
void occ_thread_settle(void)
{
    const struct sched_param none = {0};
    int policy = sched_getscheduler(0);
    (void)pthread_setname_np(pthread_self(), "occtrace");
    if (policy == SCHED_FIFO || policy == SCHED_RR)
        (void)sched_setscheduler(0, SCHED_OTHER, &none);
}
