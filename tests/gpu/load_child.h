/*
 * Other processes of an experiment: started, listened to line by line, ended, reaped. A child is killed with
 * its parent (PR_SET_PDEATHSIG) and by gpu_child_stop() after a grace. One thread.
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
    char text[8192];      /* lines that were not taken yet */
    char last_words[256]; /* the last line that was taken: what a child that fails had to say */
};

#define GPU_CHILD_INIT                                                                                       \
    {                                                                                                        \
        .out = -1                                                                                            \
    }

/* `words` as for execvp. `environment`: NAME=value strings that are set in the child, NULL-terminated, or
 * NULL. */
int gpu_child_start(struct gpu_child *child, const char *const *words, const char *const *environment,
                    struct occ_error *err);
/* Where the program of that name beside this executable is; `path` has PATH_MAX bytes. */
bool gpu_child_path_beside(const char *name, char *path);
/* Another identity: `prepare` runs in the child before the program, which `program` may replace by a copy of
 * it (public_copy.h). */
struct gpu_identity {
    void (*prepare)(const void *);
    const void *context;
    const char *program; /* NULL: the one beside this executable */
};
/* The program of that name beside this executable, with more words. `identity` NULL: as we are. */
int gpu_child_start_beside(struct gpu_child *child, const char *name, const char *const *words,
                           const char *const *environment, const struct gpu_identity *identity,
                           struct occ_error *err);
/* The next line within `seconds`, without its end. OCC_E_NOT_FOUND: there is none (more). */
int gpu_child_line(struct gpu_child *child, double seconds, char *line, size_t size, struct occ_error *err);
/* The same, but lines that do not begin with `word` are skipped. */
int gpu_child_expect(struct gpu_child *child, const char *word, double seconds, char *line, size_t size,
                     struct occ_error *err);
void gpu_child_signal(const struct gpu_child *child, int number);
/* Waits; after `seconds` the child is killed. Its exit code, 128 + signal, or -1 when it had to be killed. */
int gpu_child_wait(struct gpu_child *child, double seconds);
/* SIGTERM, then gpu_child_wait(). Harmless without a child. */
int gpu_child_stop(struct gpu_child *child);

/* The number of `key=number` in a line; NaN: there is none. */
double gpu_line_number(const char *line, const char *key);
/* The word of `key=word`; "" if there is none. */
void gpu_line_word(const char *line, const char *key, char *word, size_t size);

/* gpu_load with more words; waits for its "ready" line. */
int gpu_load_start(struct gpu_child *child, const char *const *words, char *ready, size_t size,
                   struct occ_error *err);
