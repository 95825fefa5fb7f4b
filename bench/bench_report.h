/* Common parts of the benchmarks: time, order statistics, and the machine's description in JSON. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static inline double bench_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts `values` and returns their median. */
static inline double bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, bench_compare);
    return values[n / 2];
}

/* Prints "machine": {...}, without a comma. */
static inline void bench_print_machine(void)
{
    char line[256], model[200] = "unknown";
    struct utsname system = {0};
    FILE *cpus = fopen("/proc/cpuinfo", "r");
    while (cpus && fgets(line, sizeof line, cpus))
        if (sscanf(line, "model name : %199[^\n\"\\]", model) == 1)
            break;
    if (cpus)
        (void)fclose(cpus);
    (void)uname(&system);
    system.release[strcspn(system.release, "-")] = '\0'; /* keep the version, drop the builder's suffix */
    (void)printf("  \"machine\": {\"cpu\": \"%s\", \"cores\": %ld, \"kernel\": \"%s\", \"compiler\": \"%s\"}",
                 model, sysconf(_SC_NPROCESSORS_ONLN), system.release, __VERSION__);
}
