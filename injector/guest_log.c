/*
 * Lines are made in a buffer on the stack and written with one write(2). A file is opened for each line: these
 * lines are few, and a descriptor that we kept could have been closed and given to somebody else by the program.
 */
#include "guest_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 512

static char target[PATH_MAX];

void occ_guest_log_open(const char *where)
{
    size_t n = strnlen(where, sizeof target - 1);
    memcpy(target, where, n);
    target[n] = '\0';
}

static void write_line(const char *line, size_t n)
{
    int fd = STDERR_FILENO;
    if (target[0] == '/')
        fd = open(target, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return;
    ssize_t written = write(fd, line, n);
    (void)written; /* nobody could be told */
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
