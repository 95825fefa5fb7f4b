/* The program as a child; see child.h. One thread; `interrupted` is written by a signal handler. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cleanup.h"
#include "support/text.h"

static volatile sig_atomic_t interrupted;

/* Forwarded to the program; real-time signals too. */
static const int forwarded[] = {SIGHUP,    SIGTERM, SIGUSR1, SIGUSR2, SIGALRM,
                                SIGVTALRM, SIGPROF, SIGIO,   SIGPWR};
/* The terminal sends these to its whole foreground group. */
static const int dropped[] = {SIGINT, SIGQUIT};

/* A signal that occtrace inherited as ignored (nohup) stays ignored, in occtrace and in the program. */
static void take_unless_ignored(sigset_t *taken, int number)
{
    struct sigaction current;
    if (sigaction(number, NULL, &current) == 0 && current.sa_handler != SIG_IGN)
        (void)sigaddset(taken, number);
}

void child_signals_take(struct child_signals *signals)
{
    struct sigaction normal = {.sa_handler = SIG_DFL};
    (void)sigemptyset(&signals->taken);
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
        take_unless_ignored(&signals->taken, forwarded[i]);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        take_unless_ignored(&signals->taken, number);
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        take_unless_ignored(&signals->taken, dropped[i]);
    /* with an inherited SIG_IGN the kernel would reap occtrace's children */
    (void)sigaction(SIGCHLD, &normal, &signals->original_chld);
    (void)sigaddset(&signals->taken, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &signals->taken, &signals->original_mask);
}

void child_signals_give_back(const struct child_signals *signals)
{
    (void)sigaction(SIGCHLD, &signals->original_chld, NULL);
    (void)sigprocmask(SIG_SETMASK, &signals->original_mask, NULL);
}

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

void child_signals_allow_interrupt(const struct child_signals *signals)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    const struct timespec now = {0, 0};
    struct sigaction action = {.sa_handler = on_interrupt};
    sigset_t wanted;
    (void)sigemptyset(&wanted);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!sigismember(&signals->taken, numbers[i]))
            continue;
        (void)sigaddset(&wanted, numbers[i]);
        (void)sigaction(numbers[i], &action, NULL);
    }
    /* signals that arrived while the program ran were meant for the program */
    while (sigtimedwait(&wanted, NULL, &now) > 0)
        ;
    (void)sigprocmask(SIG_UNBLOCK, &wanted, NULL);
}

bool child_interrupted(void)
{
    return interrupted != 0;
}

static bool is_named(const char *entry, const char *name)
{
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

static bool is_kept(const char *entry, const struct child_variable *variables, const char *const *removed)
{
    for (; variables->name; variables++)
        if (variables->value && is_named(entry, variables->name))
            return false;
    for (; *removed; removed++)
        if (is_named(entry, *removed))
            return false;
    return true;
}

void child_environment_freep(char ***environment)
{
    for (char **entry = *environment; entry && *entry; entry++)
        free(*entry);
    free(*environment);
}

char **child_environment(const struct child_variable *variables, const char *const *removed)
{
    size_t n = 0, entries = 1;
    for (char **entry = environ; *entry; entry++)
        entries++;
    for (const struct child_variable *v = variables; v->name; v++)
        entries++;
    _cleanup_(child_environment_freep) char **copy = calloc(entries, sizeof *copy);
    bool is_whole = copy != NULL;
    for (char **entry = environ; is_whole && *entry; entry++)
        if (is_kept(*entry, variables, removed))
            is_whole = (copy[n++] = strdup(*entry)) != NULL;
    for (; is_whole && variables->name; variables++)
        if (variables->value)
            is_whole = occ_format_text(&copy[n++], NULL, "%s=%s", variables->name, variables->value) == 0;
    return is_whole ? occ_take(copy) : NULL;
}

/* Executes the program in the child; never returns. Writes errno of a failure to `report`, which a successful
 * exec closes. */
static void execute(const struct child_signals *signals, char *const *argv, char *const *environment,
                    int report)
{
    child_signals_give_back(signals);
    (void)execvpe(argv[0], argv, environment);
    int why = errno;
    ssize_t written = write(report, &why, sizeof why);
    (void)written; /* fails only if the parent has ended */
    _exit(127);
}

static int read_report(int report)
{
    int why = 0;
    ssize_t n;
    do
        n = read(report, &why, sizeof why);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof why ? why : 0;
}

int child_start(const struct child_signals *signals, char *const *argv,
                const struct child_variable *variables, pid_t *ret_pid, struct occ_error *err)
{
    static const char *const none[] = {NULL};
    int ends[2];
    _cleanup_(child_environment_freep) char **environment = child_environment(variables, none);
    if (!environment)
        return occ_no_memory(err);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return occ_fail_errno(err, errno, "cannot make a pipe");
    pid_t pid = vfork();
    if (pid == 0)
        execute(signals, argv, environment, ends[1]);
    int fork_errno = errno;
    (void)close(ends[1]);
    int why = pid > 0 ? read_report(ends[0]) : 0;
    (void)close(ends[0]);
    if (pid < 0)
        return occ_fail_errno(err, fork_errno, "cannot start a process");
    if (why != 0)
        (void)waitpid(pid, NULL, 0);
    else
        *ret_pid = pid;
    return why;
}

static bool is_one_of(int number, const int *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

/* Forwards with kill(2) or, if the signal has a queued value, with sigqueue(3). */
static void forward(pid_t program, const siginfo_t *info)
{
    if (info->si_code == SI_KERNEL || is_one_of(info->si_signo, dropped, sizeof dropped / sizeof *dropped))
        return;
    if (info->si_code == SI_QUEUE)
        (void)sigqueue(program, info->si_signo, info->si_value);
    else
        (void)kill(program, info->si_signo);
}

/* Stops occtrace with the signal of terminal job control that stopped the program. In a process group without
 * a shell the kernel ignores such a signal. After occtrace continues, it wakes a program of another process
 * group, since the shell wakes only its own job's group. */
static void stop_like(pid_t program, int number)
{
    if (number != SIGTSTP && number != SIGTTIN && number != SIGTTOU)
        return;
    (void)raise(number);
    if (getpgid(program) != getpgrp())
        (void)kill(program, SIGCONT);
}

/* Returns true if `program` has ended. */
static bool reap(pid_t program, int *status, void (*other_ended)(pid_t, void *), void *context)
{
    bool ended = false;
    int one;
    for (pid_t pid; (pid = waitpid(-1, &one, WNOHANG | WUNTRACED)) > 0;) {
        if (WIFSTOPPED(one)) {
            if (pid == program)
                stop_like(program, WSTOPSIG(one));
        } else if (pid == program) {
            *status = one;
            ended = true;
        } else {
            other_ended(pid, context);
        }
    }
    return ended;
}

int child_wait(const struct child_signals *signals, pid_t program, void (*other_ended)(pid_t, void *),
               void *context)
{
    int status = 0;
    while (!reap(program, &status, other_ended, context)) {
        siginfo_t info;
        if (sigwaitinfo(&signals->taken, &info) > 0 && info.si_signo != SIGCHLD)
            forward(program, &info);
    }
    return status;
}

void child_end_like(int wait_status)
{
    if (WIFEXITED(wait_status))
        exit(WEXITSTATUS(wait_status));
    int number = WTERMSIG(wait_status);
    struct sigaction normal = {.sa_handler = SIG_DFL};
    const struct rlimit none = {0, 0};
    sigset_t only;
    /* only the program's core is useful; RLIMIT_CORE does not prevent core pipes */
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)sigaction(number, &normal, NULL);
    (void)sigemptyset(&only);
    (void)sigaddset(&only, number);
    (void)sigprocmask(SIG_UNBLOCK, &only, NULL);
    (void)raise(number);
    exit(128 + number);
}
