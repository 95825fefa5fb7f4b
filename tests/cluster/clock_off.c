/* Preloaded: a wall clock that is $OCC_CLOCK_OFF_S seconds wrong. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ret_time);
    const char *off = getenv("OCC_CLOCK_OFF_S"); /* NOLINT(concurrency-mt-unsafe): nobody sets it */
    if (rc == 0 && off && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        ret_time->tv_sec += atoi(off);
    return rc;
}
