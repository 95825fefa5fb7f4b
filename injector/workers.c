/* See workers.h. */
#include "workers.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOTED_MAX  4096u
#define LIST_BYTES 1024u
#define TEXT_BYTES 1024u
#define LINE_BYTES 64u /* of /proc/PID/status with the mask, and more */

/* glibc's own signals, which it never blocks in a thread that runs. It blocks them in a new thread until the
 * thread takes its own mask. */
#define INTERNAL_MASK (UINT64_C(3) << (32 - 1))

static struct {
    pid_t threads[NOTED_MAX];
    uint32_t n;
} noted;

static _Atomic int mark; /* the signal that CUPTI's threads do not block; 0: none */

static bool is_free(int signal, const sigset_t *before)
{
    struct sigaction action;
    return sigismember(before, signal) == 0 && sigaction(signal, NULL, &action) == 0 &&
           action.sa_handler == SIG_DFL;
}

/* SIGSTKFLT: no kernel sends it. */
sigset_t occ_workers_mask(const sigset_t *before)
{
    sigset_t mask;
    (void)sigfillset(&mask);
    int chosen = is_free(SIGSTKFLT, before) ? SIGSTKFLT : 0;
    for (int signal = SIGRTMAX; chosen == 0 && signal >= SIGRTMIN; signal--)
        chosen = is_free(signal, before) ? signal : 0;
    if (chosen != 0)
        (void)sigdelset(&mask, chosen);
    atomic_store(&mark, chosen);
    return mask;
}

bool occ_workers_has_mask(void)
{
    sigset_t blocked;
    int free_signal = atomic_load(&mark);
    if (free_signal == 0 || pthread_sigmask(SIG_SETMASK, NULL, &blocked) != 0)
        return false;
    int signal = 1;
    while (signal <= SIGRTMAX &&
           (signal == SIGKILL || signal == SIGSTOP || (signal >= 32 && signal < SIGRTMIN) ||
            sigismember(&blocked, signal) == (signal != free_signal)))
        signal++;
    return signal > SIGRTMAX;
}

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

/* Reads the signals that a thread blocks, bit n - 1 for signal n; false: the thread has ended. The list of
 * groups, which comes before them, may be long: the end of each block is kept in front of the next. */
static bool read_mask(pid_t thread, uint64_t *ret_mask)
{
    char text[TEXT_BYTES + 1];
    const char *line = NULL;
    size_t kept = 0;
    ssize_t n;
    (void)snprintf(text, sizeof text, "/proc/self/task/%d/status", (int)thread);
    int fd = open(text, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && !line && (n = read(fd, text + kept, TEXT_BYTES - kept)) > 0) {
        size_t used = kept + (size_t)n;
        text[used] = '\0';
        line = strstr(text, "\nSigBlk:");
        if (line && strchr(line + 1, '\n'))
            break;
        line = NULL;
        kept = used < LINE_BYTES ? used : LINE_BYTES;
        memmove(text, text + used - kept, kept);
    }
    if (fd >= 0)
        (void)close(fd);
    *ret_mask = line ? strtoull(line + strlen("\nSigBlk:"), NULL, 16) : 0;
    return line != NULL;
}

/* Adds a thread with the mask, or one that has not begun to run. */
static void take_worker(pid_t thread, void *context)
{
    struct occ_workers *workers = context;
    uint64_t mask;
    if (workers->n == OCC_WORKERS_MAX || is_noted(thread) || !read_mask(thread, &mask))
        return;
    bool is_unborn = (mask & INTERNAL_MASK) == INTERNAL_MASK;
    if (!is_unborn && (mask & ~INTERNAL_MASK) != workers->mask)
        return;
    workers->unborn |= (uint32_t)is_unborn << workers->n;
    workers->threads[workers->n++] = thread;
}

void occ_workers_end(struct occ_workers *ret_workers)
{
    *ret_workers = (struct occ_workers){.n = 0};
    if (atomic_load(&mark) == 0 || noted.n == 0 || noted.n == NOTED_MAX ||
        !read_mask((pid_t)syscall(SYS_gettid), &ret_workers->mask))
        return;
    ret_workers->mask &= ~INTERNAL_MASK;
    for_each_thread(take_worker, ret_workers);
}

bool occ_workers_settle(struct occ_workers *workers)
{
    struct occ_workers settled = {.mask = workers->mask};
    if (workers->unborn == 0)
        return false;
    for (uint32_t i = 0; i < workers->n; i++)
        if (workers->unborn & (1u << i))
            take_worker(workers->threads[i], &settled);
        else
            settled.threads[settled.n++] = workers->threads[i];
    *workers = settled;
    return true;
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
