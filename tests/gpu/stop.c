/* See stop.h. */
#include "stop.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <time.h>

static volatile sig_atomic_t stopped;
static double began_s;

static void on_stop(int number)
{
    (void)number;
    stopped = 1;
}

static double now_s(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void gpu_stop_catch(void)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    const struct sigaction action = {.sa_handler = on_stop};
    began_s = now_s();
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        (void)sigaction(signals[i], &action, NULL);
}

void gpu_stop_with_parent(void)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
}

double gpu_elapsed_s(void)
{
    return now_s() - began_s;
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
