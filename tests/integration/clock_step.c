/* A preloaded library: shifts the wall clock by the seconds in the file $OCC_CLOCK_STEP, an int64_t that a
 * test changes while processes run. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t none, *step_s = &none;

__attribute__((constructor)) static void map_step(void)
{
    const char *path = getenv("OCC_CLOCK_STEP"); /* NOLINT(concurrency-mt-unsafe): no thread sets it */
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    const void *map = fd >= 0 ? mmap(NULL, sizeof *step_s, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (map != MAP_FAILED)
        step_s = map;
    if (fd >= 0)
        (void)close(fd);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ret_time);
    if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        ret_time->tv_sec += *step_s;
    return rc;
}
