/* Preloaded: another host's name, $OCC_HOSTNAME, and a wall clock that is $OCC_CLOCK_OFF_S seconds wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ret_time);
    const char *off = getenv("OCC_CLOCK_OFF_S"); /* NOLINT(concurrency-mt-unsafe): nobody sets it */
    if (rc == 0 && off && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        ret_time->tv_sec += atoi(off);
    return rc;
}

__attribute__((visibility("default"))) int gethostname(char *ret_name, size_t size)
{
    const char *name = getenv("OCC_HOSTNAME"); /* NOLINT(concurrency-mt-unsafe) */
    (void)snprintf(ret_name, size, "%s", name ? name : "node");
    return 0;
}
