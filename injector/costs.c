/*
 * See costs.h. CUPTI's worker thread is found by the name that it inherited, with getdents64(2) rather than
 * readdir(3), which allocates.
 */
#include "costs.h"
#include "clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Looked for in the first rounds only: a program may have thousands of threads. */
#define MOST_LOOKS 3u

/* What the kernel writes for an entry of a directory: getdents64(2). */
struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

static bool bears_the_name(const char *tid)
{
    char path[64], name[32] = "";
    (void)snprintf(path, sizeof path, "/proc/self/task/%.16s/comm", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, name, sizeof name - 1);
    (void)close(fd);
    return n > 0 && strcmp(name, OCC_COSTS_WORKER_NAME "\n") == 0;
}

static pid_t search_entries(const char *bytes, long n)
{
    for (long at = 0; at < n;) {
        const struct entry *e = (const void *)(bytes + at);
        if (e->name[0] != '.' && bears_the_name(e->name))
            return (pid_t)strtol(e->name, NULL, 10);
        at += e->bytes;
    }
    return 0;
}

static pid_t find_worker(void)
{
    _Alignas(8) char bytes[4096];
    pid_t worker = 0;
    long n = 0;
    int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    while (worker == 0 && (n = syscall(SYS_getdents64, fd, bytes, sizeof bytes)) > 0)
        worker = search_entries(bytes, n);
    (void)close(fd);
    return worker;
}

/* The CPU clock of another thread of this process, as pthread_getcpuclockid(3) makes it from a thread's id. */
static clockid_t cpu_clock_of(pid_t tid)
{
    return (clockid_t)(~(unsigned int)tid << 3 | 6u);
}

void occ_costs_measure(struct occ_costs *costs, const struct occ_drain *drain)
{
    struct occ_ring_producer *ring = drain->ring;
    if (costs->worker == 0 && costs->looks < MOST_LOOKS && drain->records > 0) {
        costs->looks++;
        costs->worker = find_worker();
    }
    if (costs->worker != 0)
        occ_ring_set_cost(ring, OCC_COST_CUPTI_CPU_NS, occ_clock_ns(cpu_clock_of(costs->worker)));
    occ_ring_set_cost(ring, OCC_COST_RECORDS, drain->records);
    occ_ring_set_cost(ring, OCC_COST_BUFFERS, drain->buffers);
    occ_ring_set_cost(ring, OCC_COST_INIT_NS, costs->init_ns);
    occ_ring_set_cost(ring, OCC_COST_CALLBACK_NS,
                      atomic_load_explicit(&drain->pool->callback_ns, memory_order_relaxed));
    occ_ring_set_cost(ring, OCC_COST_HELPER_CPU_NS, occ_clock_ns(CLOCK_THREAD_CPUTIME_ID));
    occ_ring_set_cost(ring, OCC_COST_PROCESS_CPU_NS, occ_clock_ns(CLOCK_PROCESS_CPUTIME_ID));
}
