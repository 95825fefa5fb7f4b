/*
 * The program under observation as occtrace's child: its signals, its end. One thread.
 *
 * Signals. Those of `struct child_signals` are blocked in occtrace and taken one at a time while the program
 * runs: SIGINT and SIGQUIT are dropped (the terminal sends them to the program too), others are forwarded
 * unless the kernel sent them (then the program got them too). The program and every other child start with
 * the mask and the handling that occtrace was started with. When a terminal stops the program (SIGTSTP,
 * SIGTTIN, SIGTTOU), occtrace stops too, so that the shell's job control sees it.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "support/error.h"

struct child_signals {
    sigset_t taken; /* blocked, and waited for */
    sigset_t original_mask;
    struct sigaction original_chld;
};

/* Blocks; to be called before anything is started. */
void child_signals_take(struct child_signals *signals);
/* In a forked child before exec: as occtrace was started. Async-signal-safe. */
void child_signals_give_back(const struct child_signals *signals);
/* After the program's end: SIGINT, SIGTERM, SIGHUP and SIGQUIT now only end occtrace's own waits (EINTR). */
void child_signals_allow_interrupt(const struct child_signals *signals);
/* True once one of them came. */
bool child_interrupted(void);

struct child_variable {
    const char *name, *value;
};

/* Forks and executes `argv` (PATH is searched) with `variables` (name NULL ends them; those with a value NULL
 * stay as they are) added to the environment. 0: runs. Positive: the errno value of exec. Negative OCC_E_*:
 * could not fork. */
int child_start(const struct child_signals *signals, char *const *argv,
                const struct child_variable *variables, pid_t *ret_pid, struct occ_error *err);

/* Waits for `program`'s end; returns its wait status. `other_ended` is called for every other child that
 * ends. */
int child_wait(const struct child_signals *signals, pid_t program,
               void (*other_ended)(pid_t pid, void *context), void *context);

/* Ends this process like `wait_status`: with the same exit status, or by the same signal (without a core
 * file). */
void child_end_like(int wait_status) __attribute__((noreturn));
