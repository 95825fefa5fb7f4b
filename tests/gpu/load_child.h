/*
 * Child processes of an experiment: start, output line by line, end, reaping. A child is killed with its
 * parent (PR_SET_PDEATHSIG) and by gpu_child_stop() after a grace period. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "support/error.h"

struct gpu_child {
    pid_t pid; /* 0: none */
    int out;   /* its stdout and stderr; -1: none */
    size_t held;
    char text[8192];      /* lines that are not taken yet */
    char last_words[256]; /* last line: the error of a child that fails */
};

#define GPU_CHILD_INIT                                                                                       \
    {                                                                                                        \
        .out = -1                                                                                            \
    }

/* `words` as for execvp. `environment`: NAME=value strings that are set in the child, NULL-terminated, or
 * NULL. */
int gpu_child_start(struct gpu_child *child, const char *const *words, const char *const *environment,
                    struct occ_error *err);
/* Finds a program beside this executable by its name; `path` has PATH_MAX bytes. */
bool gpu_child_path_beside(const char *name, char *path);
/* Another identity: `prepare` runs in the child before the program; `program` may be a copy (public_copy.h).
 */
struct gpu_identity {
    void (*prepare)(const void *);
    const void *context;
    const char *program; /* NULL: the program beside this executable */
};
/* Starts the named program beside this executable, with more words. `identity` NULL: the current user. */
int gpu_child_start_beside(struct gpu_child *child, const char *name, const char *const *words,
                           const char *const *environment, const struct gpu_identity *identity,
                           struct occ_error *err);
/* Takes the next line within `seconds`, without its end. Returns OCC_E_NOT_FOUND without a line. */
int gpu_child_line(struct gpu_child *child, double seconds, char *line, size_t size, struct occ_error *err);
/* Takes the next line that begins with `word`; skips other lines. */
int gpu_child_expect(struct gpu_child *child, const char *word, double seconds, char *line, size_t size,
                     struct occ_error *err);
void gpu_child_signal(const struct gpu_child *child, int number);
/* Waits, and kills the child after `seconds`. Returns its exit code, 128 + signal, or -1 after the kill. */
int gpu_child_wait(struct gpu_child *child, double seconds);
/* SIGTERM, then gpu_child_wait(). Harmless without a child. */
int gpu_child_stop(struct gpu_child *child);

/* Returns the number of `key=number` in a line; NaN without one. */
double gpu_line_number(const char *line, const char *key);
/* Gets the word of `key=word`; "" without one. */
void gpu_line_word(const char *line, const char *key, char *word, size_t size);

/* gpu_load with more words; waits for its "ready" line. */
int gpu_load_start(struct gpu_child *child, const char *const *words, char *ready, size_t size,
                   struct occ_error *err);
