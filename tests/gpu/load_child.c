/* See load_child.h. */
#include "load_child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cleanup.h"
#include "support/clock.h"
#include "support/paths.h"
#include "support/text.h"

enum { MOST_WORDS = 40, STOP_GRACE_S = 10, READY_S = 30 };

struct beginning {
    const char *const *words, *const *environment;
    const struct gpu_identity *identity;
};

__attribute__((noreturn)) static void become(const struct beginning *b, int out, pid_t parent)
{
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(out, STDERR_FILENO);
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGHUP, SIG_DFL);
    if (b->identity)
        b->identity->prepare(b->identity->context);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* after the change of user, which clears it */
    if (getppid() != parent)
        _exit(127);
    for (size_t i = 0; b->environment && b->environment[i]; i++)
        (void)putenv((char *)(uintptr_t)b->environment[i]);
    execvp(b->words[0], (char *const *)(uintptr_t)b->words);
    (void)fprintf(stderr, "cannot start %s: %s\n", b->words[0], strerror(errno));
    _exit(127);
}

static int start(struct gpu_child *child, const struct beginning *beginning, struct occ_error *err)
{
    int ends[2];
    *child = (struct gpu_child)GPU_CHILD_INIT;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return occ_fail_errno(err, errno, "pipe");
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become(beginning, ends[1], parent);
    int why = errno;
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return occ_fail_errno(err, why, "cannot start %s", beginning->words[0]);
    }
    child->pid = pid;
    child->out = ends[0];
    return 0;
}

int gpu_child_start(struct gpu_child *child, const char *const *words, const char *const *environment,
                    struct occ_error *err)
{
    const struct beginning beginning = {.words = words, .environment = environment};
    return start(child, &beginning, err);
}

bool gpu_child_path_beside(const char *name, char *path)
{
    _cleanup_(occ_freep) char *directory = NULL;
    return occ_path_of_self(&directory, NULL) == 0 &&
           snprintf(path, PATH_MAX, "%s/%s", directory, name) < PATH_MAX;
}

int gpu_child_start_beside(struct gpu_child *child, const char *name, const char *const *words,
                           const char *const *environment, const struct gpu_identity *identity,
                           struct occ_error *err)
{
    char program[PATH_MAX];
    const char *all[MOST_WORDS + 2] = {identity && identity->program ? identity->program : program};
    const struct beginning beginning = {all, environment, identity};
    *child = (struct gpu_child)GPU_CHILD_INIT;
    if (!gpu_child_path_beside(name, program))
        return occ_fail(err, OCC_E_NOT_FOUND, "cannot say where %s is", name);
    for (size_t i = 0; words[i] && i < MOST_WORDS; i++)
        all[i + 1] = words[i];
    return start(child, &beginning, err);
}

/* ---- listening ---- */

static bool take_line(struct gpu_child *child, char *line, size_t size)
{
    char *end = memchr(child->text, '\n', child->held);
    if (!end)
        return false;
    *end = '\0';
    (void)snprintf(line, size, "%s", child->text);
    (void)snprintf(child->last_words, sizeof child->last_words, "%s", child->text);
    child->held -= (size_t)(end + 1 - child->text);
    memmove(child->text, end + 1, child->held);
    return true;
}

/* Appends available output to the held text. Returns 0 if the child has closed it, or at the end of the time.
 */
static ssize_t take_text(struct gpu_child *child, int64_t until_ns)
{
    if (child->held == sizeof child->text)
        child->held = 0; /* drop a line that long: it is not a result */
    int64_t left_ms = (until_ns - occ_now_ns()) / 1000000;
    struct pollfd out = {.fd = child->out, .events = POLLIN};
    if (child->out < 0 || left_ms < 0 || poll(&out, 1, left_ms > INT_MAX ? INT_MAX : (int)left_ms) <= 0)
        return 0;
    ssize_t n = read(child->out, child->text + child->held, sizeof child->text - child->held);
    if (n > 0)
        child->held += (size_t)n;
    return n;
}

int gpu_child_line(struct gpu_child *child, double seconds, char *line, size_t size, struct occ_error *err)
{
    int64_t until_ns = occ_now_ns() + (int64_t)(seconds * 1e9);
    while (!take_line(child, line, size))
        if (take_text(child, until_ns) <= 0)
            return occ_fail(err, OCC_E_NOT_FOUND, "process %d says nothing more%s%s", (int)child->pid,
                            child->last_words[0] ? "; its last words: " : "", child->last_words);
    return 0;
}

int gpu_child_expect(struct gpu_child *child, const char *word, double seconds, char *line, size_t size,
                     struct occ_error *err)
{
    size_t length = strlen(word);
    int64_t until_ns = occ_now_ns() + (int64_t)(seconds * 1e9);
    int code;
    do {
        double left = (double)(until_ns - occ_now_ns()) / 1e9;
        code = gpu_child_line(child, left > 0 ? left : 0, line, size, err);
    } while (code == 0 && (strncmp(line, word, length) != 0 || (line[length] && line[length] != ' ')));
    return code;
}

/* ---- ending ---- */

void gpu_child_signal(const struct gpu_child *child, int number)
{
    if (child->pid > 0)
        (void)kill(child->pid, number);
}

static bool reaped(struct gpu_child *child, int *ret_status)
{
    return waitpid(child->pid, ret_status, WNOHANG) == child->pid;
}

int gpu_child_wait(struct gpu_child *child, double seconds)
{
    if (child->pid <= 0)
        return 0;
    int status = 0, code = -1;
    char line[sizeof child->text];
    int64_t until_ns = occ_now_ns() + (int64_t)(seconds * 1e9);
    bool ended = reaped(child, &status);
    while (!ended && occ_now_ns() < until_ns) {
        (void)gpu_child_line(child, 0.02, line, sizeof line, NULL); /* reads: a full pipe blocks the child */
        ended = reaped(child, &status);
        if (!ended && child->out >= 0)
            (void)usleep(2000);
    }
    if (ended)
        code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    else if (kill(child->pid, SIGKILL) == 0)
        (void)waitpid(child->pid, &status, 0);
    (void)close(child->out);
    child->out = -1;
    child->pid = 0;
    return code;
}

int gpu_child_stop(struct gpu_child *child)
{
    gpu_child_signal(child, SIGTERM);
    return gpu_child_wait(child, STOP_GRACE_S);
}

/* ---- lines ---- */

static const char *value_of(const char *line, const char *key)
{
    size_t length = strlen(key);
    for (const char *at = strstr(line, key); at; at = strstr(at + 1, key))
        if ((at == line || at[-1] == ' ') && at[length] == '=')
            return at + length + 1;
    return NULL;
}

double gpu_line_number(const char *line, const char *key)
{
    const char *text = value_of(line, key);
    char *end = NULL;
    double value = text ? strtod(text, &end) : NAN;
    return text && end != text ? value : NAN;
}

void gpu_line_word(const char *line, const char *key, char *word, size_t size)
{
    const char *text = value_of(line, key);
    size_t length = text ? strcspn(text, " ") : 0;
    (void)snprintf(word, size, "%.*s", (int)length, text ? text : "");
}

/* ---- the load ---- */

int gpu_load_start(struct gpu_child *child, const char *const *words, char *ready, size_t size,
                   struct occ_error *err)
{
    int code = gpu_child_start_beside(child, "gpu_load", words, NULL, NULL, err);
    if (code == 0)
        code = gpu_child_expect(child, "ready", READY_S, ready, size, err);
    if (code != 0)
        (void)gpu_child_stop(child);
    return code;
}
