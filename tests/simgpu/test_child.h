/*
 * Runs each case in a process of its own, because a simulated device reads its environment once:
 * RUN(function, "NAME=value", ...) forks, sets the variables and runs `function` in the child, where a failed
 * CHECK() prints the condition and ends the child. The parent never uses the driver.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)

#define CHECK_EQUAL(got, expected)                                                                           \
    do {                                                                                                     \
        long long got_ = (long long)(got), expected_ = (long long)(expected);                                \
        if (got_ != expected_) {                                                                             \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #got, got_, expected_);     \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)

static inline void run_in_child(void (*function)(void), const char *const *settings)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (; *settings; settings++)
            putenv((char *)(uintptr_t)*settings);
        function();
        fflush(NULL);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define RUN(function, ...) run_in_child(function, (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})
