/* Samples of the history for `occq live`: the same questions as those of `occq top` and `runs`. A source asks
 * in a thread of its own, so that keys are answered meanwhile. */
#pragma once

#include <pthread.h>

#include "cli/history/history.h"
#include "model.h"

struct kernel_names;
struct sqlite3_stmt;

/* A history that is opened when it is there, and again after it was replaced or upgraded. */
struct live_reader {
    const struct history_args *args;
    pthread_mutex_t lock;    /* around changes of the next one, for live_source_free() */
    struct occ_store *store; /* NULL: not open */
    struct sqlite3_stmt *runs;
    int64_t version, newest_kernel;
    struct kernel_names *names;
};
void live_reader_init(struct live_reader *reader, const struct history_args *args);
void live_reader_release(struct live_reader *reader);
/* NULL: no memory. */
struct live_sample *live_read(struct live_reader *reader, int64_t window_ns);

/* What the user's own daemon or the system's service reports of the history at this path; "": neither writes
 * it, or tells of it. */
void live_ask_daemon(const char *history, char line[LIVE_LINE_BYTES]);

struct live_source;
int live_source_new(const struct history_args *args, struct live_source **ret_source, struct occ_error *err);
/* Interrupts a question in progress. NULL is fine. */
void live_source_free(struct live_source *source);
OCC_CLEANUP(live_source, live_source_free)
/* Asks, unless that is in progress. */
void live_source_ask(struct live_source *source, int64_t window_ns);
/* The answer, for the caller to free; NULL: there is none yet. */
struct live_sample *live_source_take(struct live_source *source);
/* Readable when there is an answer. */
int live_source_fd(const struct live_source *source);
