/*
 * Questions to a history of occtrace, from any program. One library call gives the document that a command of
 * occq prints; SQL gives an Arrow C stream.
 *
 *   occ_query *query;
 *   occ_query_error error;
 *   char *document;
 *   if (occ_query_open("history.db", &query, &error) == OCC_QUERY_OK) {
 *       if (occ_query_ask(query, "top", "{\"by\": \"layer\"}", &document, &error) == OCC_QUERY_OK) {
 *           puts(document);
 *           occ_query_free(document);
 *       }
 *       occ_query_close(query);
 *   }
 *
 * Documents. occ_query_ask(query, "top", ...) gives the bytes that "occq top --json" prints, with the same
 * options; the JSON Schemas are in docs/schemas. SQL has the same names and units: ratios 0 to 1,
 * nanoseconds, bytes; null means not measured or not known, never 0. Of the settings of occq (occq.yaml) only
 * the prices for "cost" of top apply.
 *
 * Effects. The library reads. It prints nothing, installs no signal handler, changes neither locale nor
 * environment, starts no process, no thread except libcurl's for the name of a warehouse's host, and never
 * ends the process. A history is a file that other programs may have written: a damaged or foreign file is an
 * error.
 *
 * Threads. A handle and a stream belong to one thread at a time; different handles and streams may be used by
 * different threads. occ_query_ask(), occ_query_table() and questions to a warehouse take turns within the
 * process; SQL over a file does not wait. After fork() a child opens handles of its own.
 *
 * Limits. Options have at most 64 KiB, a document 256 MiB, a value of SQL 256 MiB, a statement of SQL 96
 * columns. A batch of SQL over a file has at most 16384 rows, and ends with the row that reaches 16 MiB;
 * other streams have one batch.
 *
 * Two SQLite libraries in one process. POSIX locks belong to the process: a program that writes the same
 * history by an SQLite of its own must not hold a lock on it while this library closes it.
 */
#ifndef OCCTRACE_QUERY_H
#define OCCTRACE_QUERY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The Arrow C data and stream interfaces, as their specification declares them. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE           2
#define ARROW_FLAG_MAP_KEYS_SORTED    4

struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};
#endif

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* The numbers are the exit statuses of occq; a rule of "check" that fails is OCC_QUERY_OK. */
enum {
    OCC_QUERY_OK = 0,
    OCC_QUERY_FAILURE = 1, /* no memory, a damaged file, a limit */
    OCC_QUERY_USAGE = 2,   /* an unknown question, a wrong option or statement */
    OCC_QUERY_NOTHING = 3  /* there is no such history, nothing matches, or a check did not judge all rules */
};

#define OCC_QUERY_MESSAGE_BYTES 1024

/* A failure, in words for people. Functions set it unless they return OCC_QUERY_OK. */
typedef struct occ_query_error {
    int code; /* one of the numbers above */
    char message[OCC_QUERY_MESSAGE_BYTES];
} occ_query_error;

typedef struct occ_query occ_query;

/* Returns the library's version, such as "0.1.0". Any thread. */
const char *occ_query_version(void);

/* Opens a history for questions. `where`: a file; "http://..." or "https://...", a cluster's warehouse; NULL:
 * the history of the user, as occq chooses it. Keeps no file open between questions. `error` may be NULL,
 * here and below. */
int occ_query_open(const char *where, occ_query **ret_query, occ_query_error *error);
/* Streams of the handle stay valid. NULL is allowed. */
void occ_query_close(occ_query *query);

/*
 * Asks "top", "show", "diff", "history", "launches", "runs", "check" or "sql"; "hit_rate", which is occq show
 * --hit-rate; or "verdict": the members "gpu_time" and "findings" of top without its rows. `options`: a JSON
 * object; NULL: {}.
 *
 * Its members are the long options of the command ("since": "2h", "number": 5, "min-loss": 10; blanks in
 * names are "-" or "_"; true sets a flag, false and null leave an option out) and the operands: "kernel" of
 * show and history, "a" and "b" of diff, "side" of check, "statement" of sql. "format" is "json" (default),
 * "csv", "markdown" (diff) or "text", as people read it on a screen of "width" characters (default 0:
 * unlimited).
 *
 * *ret_document is NUL-terminated UTF-8; free it with occ_query_free(). If OCC_QUERY_NOTHING is returned, it
 * is the document of a check whose rules were not all judged, a document without rows, or NULL; after other
 * failures it is NULL.
 */
int occ_query_ask(occ_query *query, const char *question, const char *options, char **ret_document,
                  occ_query_error *error);
void occ_query_free(char *document);

/* Returns the notes of the handle's last occ_query_ask() or occ_query_table(), one line each: runs that were
 * recorded in part, rows that were left out. "": nothing. Valid until the next question of the handle. */
const char *occ_query_notes(const occ_query *query);

/* Asks like occ_query_ask() and gives the rows of the document as a stream of one batch; of show, the launch
 * configurations, each with its kernel_id, kernel and device_id. true and false are 1 and 0; objects and
 * arrays are JSON texts. A document without rows has a column "rows" and no row. */
int occ_query_table(occ_query *query, const char *question, const char *options,
                    struct ArrowArrayStream *ret_stream, occ_query_error *error);

/*
 * Runs one reading statement, with the limits of "occq sql". The stream has the types of the first batch:
 * INTEGER is int64, REAL float64, TEXT utf8, BLOB binary; a column with integers and reals is float64, and
 * one without any value has its declared type, else float64. A later value that does not fit ends the stream
 * with an error; CAST in the statement prevents it. Bytes that are not UTF-8 become U+FFFD. The caller
 * releases the stream.
 */
int occ_query_sql(occ_query *query, const char *statement, struct ArrowArrayStream *ret_stream,
                  occ_query_error *error);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
