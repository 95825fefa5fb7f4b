/* Samples of the history for `occq live`, with the same queries as `occq top` and `occq runs`. A source
 * queries in its own thread, so that the terminal's thread answers keys meanwhile. */
#pragma once

#include <pthread.h>

#include "cli/history/history.h"
#include "model.h"

struct kernel_names;
struct sqlite3_stmt;

/* A history, opened once it exists, and again after it was replaced or upgraded. */
struct live_reader {
    const struct history_args *args;
    pthread_mutex_t lock;    /* protects `store` for live_source_free() */
    struct occ_store *store; /* NULL: not open */
    struct sqlite3_stmt *runs;
    int64_t version, newest_kernel;
    struct kernel_names *names;
};
void live_reader_init(struct live_reader *reader, const struct history_args *args);
void live_reader_release(struct live_reader *reader);
/* Reads one sample; NULL: no memory. */
struct live_sample *live_read(struct live_reader *reader, int64_t window_ns);

/* Asks the user's own daemon or the system's service for its report about the history at this path; "":
 * neither writes or reports it. */
void live_ask_daemon(const char *history, char line[LIVE_LINE_BYTES]);

struct live_source;
int live_source_new(const struct history_args *args, struct live_source **ret_source, struct occ_error *err);
/* Interrupts a running query and frees the source; NULL is allowed. */
void live_source_free(struct live_source *source);
OCC_CLEANUP(live_source, live_source_free)
/* Requests a sample; has no effect while a query runs. */
void live_source_ask(struct live_source *source, int64_t window_ns);
/* Returns the sample, which the caller frees; NULL: none yet. */
struct live_sample *live_source_take(struct live_source *source);
/* Returns a descriptor that is readable while a sample is ready. */
int live_source_fd(const struct live_source *source);
