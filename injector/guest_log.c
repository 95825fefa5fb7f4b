/* A line is formatted on the stack and written with one write(2). The file is opened for each line: lines are
 * few, and the program could close a kept descriptor and reuse its number. A write that fails (a pipe without
 * a reader, a file at its size limit) must not end the program: the signal it raises is consumed. */
#include "guest_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 512

static char target[PATH_MAX];

void occ_guest_log_open(const char *where)
{
    size_t n = strnlen(where, sizeof target - 1);
    memcpy(target, where, n);
    target[n] = '\0';
}

/* write(2) without SIGPIPE and SIGXFSZ. A signal that was pending before stays pending for the program. */
static void write_quietly(int fd, const char *line, size_t n)
{
    sigset_t ours, before, pending;
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGPIPE);
    (void)sigaddset(&ours, SIGXFSZ);
    (void)pthread_sigmask(SIG_BLOCK, &ours, &before);
    (void)sigpending(&pending);
    if (write(fd, line, n) < 0 && (errno == EPIPE || errno == EFBIG)) {
        int raised = errno == EPIPE ? SIGPIPE : SIGXFSZ;
        (void)sigdelset(&ours, raised == SIGPIPE ? SIGXFSZ : SIGPIPE);
        if (!sigismember(&pending, raised))
            (void)sigtimedwait(&ours, NULL, &(struct timespec){0, 0});
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void write_line(const char *line, size_t n)
{
    int fd = STDERR_FILENO;
    if (target[0] == '/')
        fd = open(target, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return;
    write_quietly(fd, line, n);
    if (fd != STDERR_FILENO)
        (void)close(fd);
}

void occ_guest_log(const char *format, ...)
{
    if (target[0] == '\0')
        return;
    int saved = errno;
    char line[LINE_BYTES];
    int n = snprintf(line, sizeof line, "occtrace[%d]: ", (int)getpid());
    va_list args;
    va_start(args, format);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
    va_end(args);
    if (m >= 0) {
        size_t length = strlen(line);
        line[length] = '\n';
        write_line(line, length + 1);
    }
    errno = saved;
}
