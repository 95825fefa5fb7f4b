/* injector/guest_log: writing a line may raise a signal in the program's thread, which the program must not
 * notice. */
#include "injector/guest_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static bool is_pending(int number)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, number) == 1;
}

static void set_blocked(int number, int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(how, &set, NULL);
}

/* Makes stderr a pipe without a reader: write(2) raises SIGPIPE. */
static void break_pipe(void)
{
    int ends[2];
    if (pipe(ends) != 0)
        _exit(100);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
}

/* Makes stderr a file at the limit of file size: write(2) raises SIGXFSZ. */
static void fill_file(void)
{
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_FSIZE, &none);
    FILE *file = tmpfile();
    if (!file)
        _exit(101);
    dup2(fileno(file), STDERR_FILENO);
}

struct trouble {
    void (*make)(void);
    int raised, other;
};
static const struct trouble troubles[] = {{break_pipe, SIGPIPE, SIGXFSZ}, {fill_file, SIGXFSZ, SIGPIPE}};

/* A signal of the program that was pending before the line stays pending. Exit code 0 on success. */
static int with_a_pending_signal(const struct trouble *t)
{
    set_blocked(t->raised, SIG_BLOCK);
    pthread_kill(pthread_self(), t->raised);
    occ_guest_log("a line");
    return is_pending(t->raised) ? 0 : 1;
}

/* A pending signal of the other kind stays pending, and the line's own signal does not. */
static int with_another_pending_signal(const struct trouble *t)
{
    set_blocked(t->other, SIG_BLOCK);
    pthread_kill(pthread_self(), t->other);
    occ_guest_log("a line");
    return is_pending(t->other) && !is_pending(t->raised) ? 0 : 1;
}

/* The line's signal neither ends the program nor stays pending if no signal was pending; mask and errno do
 * not change. */
static int without_a_signal(const struct trouble *t)
{
    sigset_t mask;
    errno = ENOTTY;
    occ_guest_log("a line");
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    return errno == ENOTTY && !is_pending(t->raised) && sigismember(&mask, SIGPIPE) == 0 &&
                   sigismember(&mask, SIGXFSZ) == 0
               ? 0
               : 1;
}

/* Each case is a process of its own, which a signal may end. */
static void check(int (*one)(const struct trouble *))
{
    for (size_t i = 0; i < sizeof troubles / sizeof troubles[0]; i++) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0) {
            occ_guest_log_open("stderr");
            troubles[i].make();
            _exit(one(&troubles[i]));
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

static void a_pending_signal_of_the_program_stays(void **state)
{
    (void)state;
    check(with_a_pending_signal);
    check(with_another_pending_signal);
}

static void a_failed_line_leaves_no_signal(void **state)
{
    (void)state;
    check(without_a_signal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_pending_signal_of_the_program_stays),
                                       cmocka_unit_test(a_failed_line_leaves_no_signal)};
    return cmocka_run_group_tests_name("guest_log", tests, NULL, NULL);
}
