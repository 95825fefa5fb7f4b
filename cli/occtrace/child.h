/*
 * The program under observation as occtrace's child: its signals, its end. One thread.
 *
 * While the program runs, occtrace blocks the signals of `struct child_signals` and handles them one at a
 * time: SIGINT and SIGQUIT are dropped (the terminal sends them to the program too), other signals are
 * forwarded unless the kernel sent them (then the program got them too). The program and every other child
 * start with occtrace's original signal mask and handlers. When a terminal stops the program (SIGTSTP,
 * SIGTTIN, SIGTTOU), occtrace stops too, so that the shell's job control notices.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "support/error.h"

struct child_signals {
    sigset_t taken; /* blocked, and received with sigwaitinfo() */
    sigset_t original_mask;
    struct sigaction original_chld;
};

/* Blocks the signals; call before any child is started. */
void child_signals_take(struct child_signals *signals);
/* Restores the original mask and handlers, in a child before exec. Async-signal-safe. */
void child_signals_give_back(const struct child_signals *signals);
/* After the program's end: SIGINT, SIGTERM, SIGHUP and SIGQUIT then only interrupt occtrace's own waits
 * (EINTR). */
void child_signals_allow_interrupt(const struct child_signals *signals);
/* True if one of these signals has arrived. */
bool child_interrupted(void);

/* A variable with value NULL stays unchanged. Name NULL ends a list. */
struct child_variable {
    const char *name, *value;
};

/* A copy of the environment with `variables` and without `removed` (NULL ends the names). NULL: no memory. A
 * child of vfork(2) must not change its environment, since it uses the memory of its parent; vfork(2) spares
 * the copy of occtrace's page tables, for which the program would wait. */
char **child_environment(const struct child_variable *variables, const char *const *removed);
void child_environment_freep(char ***environment); /* for _cleanup_ */

/* Executes `argv` (searches PATH) in a child, with `variables` in its environment. Returns 0 if the program
 * runs, exec's errno (positive), or a negative OCC_E_* if fork failed. */
int child_start(const struct child_signals *signals, char *const *argv,
                const struct child_variable *variables, pid_t *ret_pid, struct occ_error *err);

/* Waits for the end of `program` and returns its wait status; meanwhile handles `signals` for the program.
 * Calls `other_ended` for every other child that ends. */
int child_wait(const struct child_signals *signals, pid_t program,
               void (*other_ended)(pid_t pid, void *context), void *context);

/* Ends this process like `wait_status`: with the same exit status, or by the same signal (without a core
 * file). */
void child_end_like(int wait_status) __attribute__((noreturn));
