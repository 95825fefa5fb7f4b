/* See page.h. */
#include "page.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/array.h"
#include "support/text.h"

enum { BYTES_MAX = 64 << 20 };

static bool append(struct live_page *page, const char *text, size_t n)
{
    if (!occ_grow((void **)&page->text, &page->allocated, page->length + n, BYTES_MAX, 1))
        return false;
    memcpy(page->text + page->length, text, n);
    page->length += n;
    page->text[page->length] = '\0';
    return true;
}

int live_page_set(struct live_page *page, const char *text, struct occ_error *err)
{
    live_page_close(page);
    return append(page, text, strlen(text)) ? 0 : occ_no_memory(err);
}

/* Starts this program with no signals blocked. */
static pid_t start(char *const *argv, int columns, int out)
{
    char width[16];
    sigset_t none;
    (void)snprintf(width, sizeof width, "%d", columns);
    (void)sigemptyset(&none);
    pid_t child = fork();
    if (child != 0)
        return child;
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setenv("COLUMNS", width, 1);
    (void)setenv("NO_COLOR", "1", 1);
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(out, STDERR_FILENO);
    (void)execv("/proc/self/exe", argv);
    _exit(127);
}

int live_page_run(struct live_page *page, char *const *argv, int columns, struct occ_error *err)
{
    int ends[2];
    int status = live_page_set(page, "", err);
    if (status == 0 && pipe2(ends, O_CLOEXEC) != 0)
        status = occ_fail_errno(err, errno, "cannot make a pipe");
    if (status != 0)
        return status;
    page->child = start(argv, columns, ends[1]);
    (void)close(ends[1]);
    if (page->child < 0) {
        (void)close(ends[0]);
        return occ_fail_errno(err, errno, "cannot start occq");
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    page->fd = ends[0];
    return 0;
}

static void end_child(struct live_page *page)
{
    if (page->fd < 0)
        return;
    (void)close(page->fd);
    page->fd = -1;
    (void)kill(page->child, SIGKILL); /* safe: it only reads */
    while (waitpid(page->child, NULL, 0) < 0 && errno == EINTR)
        ;
}

void live_page_read(struct live_page *page)
{
    char bytes[65536];
    ssize_t n = page->fd < 0 ? 0 : read(page->fd, bytes, sizeof bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || !append(page, bytes, (size_t)n))
        end_child(page);
}

void live_page_close(struct live_page *page)
{
    end_child(page);
    free(page->text);
    *page = (struct live_page)LIVE_NO_PAGE;
}

static const char *next_line(const char *at)
{
    at += strcspn(at, "\n");
    return at + (*at == '\n');
}

size_t live_page_lines(const struct live_page *page)
{
    size_t lines = 0;
    for (const char *at = page->text; at && *at; lines++)
        at = next_line(at);
    return lines;
}

const char *live_page_line(const struct live_page *page, size_t number)
{
    const char *at = page->text;
    for (; number && *at; number--)
        at = next_line(at);
    return at;
}
