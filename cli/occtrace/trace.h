/* The state of one call of occtrace, shared by its files. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "child.h"
#include "cli/command.h"
#include "private_daemon.h"
#include "program.h"
#include "support/error.h"
#include "trace_options.h"

struct trace {
    const struct trace_options *options;
    struct child_signals signals;
    char session[33];
    char *library; /* loaded by CUDA's driver */
    char *nvtx;    /* loaded by NVTX; NULL: not requested */
    char *preload; /* added to LD_PRELOAD; NULL: the program starts with CUDA_INJECTION64_PATH instead */
    char *socket;  /* the daemon's socket, passed to the program */
    char *db;      /* the history; NULL: unknown */
    bool is_private;
    struct private_daemon daemon; /* if is_private */
    int64_t start_ns, end_ns;     /* of the program */
    pid_t program;
    struct program executable;
};

/* Prepares the start of the program (prepare.c): session, libraries, a daemon. A private daemon may still
 * start. */
int trace_prepare(struct trace *trace, struct occ_error *err);
/* Waits until the daemon listens. After a failure there is no private daemon. */
int trace_await_daemon(struct trace *trace, struct occ_error *err);

/* After the program's end (conclude.c): waits until the history is complete, and prints the summary. */
void trace_conclude(struct trace *trace, char *const *argv, int wait_status);

/* Sends one request to the daemon at trace->socket, on a separate connection. Another user's daemon gets
 * nothing, unless --socket or $OCCTRACE_SOCKET names it. */
int trace_ask_daemon(const struct trace *trace, const char *request, int patience_ms, char *answer,
                     size_t size, struct occ_error *err);
/* The value of a "key value" line of the daemon's status, malloc'ed, or NULL. */
char *trace_daemon_value(const struct trace *trace, const char *key);

/* Prints "occtrace: TEXT" on stderr, sanitised, since names in it come from the program. */
#define trace_note(...) cli_note(&cli_occtrace, __VA_ARGS__)
