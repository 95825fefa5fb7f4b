/* See workers.h. */
#include "workers.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOTED_MAX  4096u
#define LIST_BYTES 4096u

static struct {
    pid_t threads[NOTED_MAX];
    uint32_t n;
} noted;

/* Entry as returned by getdents64(2); opendir(3) would allocate. */
struct entry {
    uint64_t inode, offset;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

/* Calls `take` for each thread of the process. */
static void for_each_thread(void (*take)(pid_t thread, void *context), void *context)
{
    _Alignas(8) char list[LIST_BYTES];
    int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long n = 0;
    while (fd >= 0 && (n = syscall(SYS_getdents64, fd, list, sizeof list)) > 0)
        for (long at = 0; at < n; at += ((const struct entry *)(const void *)(list + at))->bytes) {
            const char *name = ((const struct entry *)(const void *)(list + at))->name;
            if (name[0] != '.')
                take((pid_t)atoi(name), context);
        }
    if (fd >= 0)
        (void)close(fd);
}

static void note(pid_t thread, void *unused)
{
    (void)unused;
    if (noted.n < NOTED_MAX)
        noted.threads[noted.n++] = thread;
}

void occ_workers_begin(void)
{
    noted.n = 0;
    for_each_thread(note, NULL);
}

static bool is_noted(pid_t thread)
{
    uint32_t i = 0;
    while (i < noted.n && noted.threads[i] != thread)
        i++;
    return i < noted.n;
}

/* Reads the signals that a thread blocks; false: the thread has ended. */
static bool read_mask(pid_t thread, unsigned long long *ret_mask)
{
    char text[4096];
    (void)snprintf(text, sizeof text, "/proc/self/task/%d/status", (int)thread);
    int fd = open(text, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *line = strstr(text, "\nSigBlk:");
    return line && sscanf(line, "\nSigBlk: %llx", ret_mask) == 1;
}

/* A thread that has not run yet blocks glibc's own signals as well. */
static void take_worker(pid_t thread, void *context)
{
    struct occ_workers *workers = context;
    unsigned long long mask, own;
    if (workers->n < OCC_WORKERS_MAX && !is_noted(thread) && read_mask(thread, &mask) &&
        read_mask((pid_t)syscall(SYS_gettid), &own) && (mask & own) == own)
        workers->threads[workers->n++] = thread;
}

void occ_workers_end(struct occ_workers *ret_workers)
{
    ret_workers->n = 0;
    if (noted.n > 0 && noted.n < NOTED_MAX)
        for_each_thread(take_worker, ret_workers);
}

static bool is_alive(pid_t thread)
{
    char task[32];
    (void)snprintf(task, sizeof task, "/proc/self/task/%d", (int)thread);
    return access(task, F_OK) == 0;
}

uint32_t occ_workers_alive(const struct occ_workers *workers, pid_t other)
{
    uint32_t n = 0;
    bool is_among = other == 0;
    for (uint32_t i = 0; i < workers->n; i++) {
        is_among |= workers->threads[i] == other;
        n += is_alive(workers->threads[i]);
    }
    return n + (!is_among && is_alive(other));
}
