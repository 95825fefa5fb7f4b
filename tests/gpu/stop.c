/* See stop.h. */
#include "stop.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <time.h>

static volatile sig_atomic_t stopped;

static void on_stop(int number)
{
    (void)number;
    stopped = 1;
}

void gpu_stop_catch(void)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    const struct sigaction action = {.sa_handler = on_stop};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        (void)sigaction(signals[i], &action, NULL);
}

void gpu_stop_with_parent(void)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
}

bool gpu_stopped(void)
{
    return stopped;
}

bool gpu_sleep(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds};
    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (!stopped && nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    return !stopped;
}
