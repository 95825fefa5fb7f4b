/*
 * The library's functions; see occtrace-query.h. Commands of occq have state of the process, so that
 * questions take turns; a stream over a file has a connection of its own and takes none.
 */
#include "occtrace-query.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "arrow_stream.h"
#include "cli/fit.h"
#include "cli/history/history.h"
#include "cli/history/sql_guard.h"
#include "document_rows.h"
#include "support/cleanup.h"
#include "support/paths.h"

struct occ_query {
    char *where, *notes;
    bool is_url;
};

/* ---- turns ---- */

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* In a child after fork() the holder of the lock does not exist; the next question resets all state. */
static void renew_turn(void)
{
    turn = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* The first handle of the process calls it. */
static void begin_process(void)
{
    (void)cli_text_locale(); /* streams use it without a turn */
    (void)pthread_atfork(NULL, NULL, renew_turn);
}

/* ---- failures ---- */

static int code_of(const struct occ_error *err)
{
    switch (err->code) {
    case OCC_E_INVALID:
    case OCC_E_USAGE:
    case OCC_E_READ_ONLY:
        return OCC_QUERY_USAGE;
    case OCC_E_NOT_FOUND:
        return OCC_QUERY_NOTHING;
    default:
        return OCC_QUERY_FAILURE;
    }
}

static int fail_with(occ_query_error *error, int code, const char *message)
{
    if (error) {
        error->code = code;
        (void)snprintf(error->message, sizeof error->message, "%s", message);
    }
    return code;
}

static int fail(occ_query_error *error, const struct occ_error *err)
{
    return fail_with(error, code_of(err), err->message);
}

/* ---- notes ---- */

/* Removes the parts for a shell: the prefix "occq top: " of lines, and the hint at --help. */
static void tidy_notes(char *notes)
{
    char *out = notes;
    for (char *line = notes, *end; *line; line = end) {
        size_t length = strcspn(line, "\n");
        end = line + length + (line[length] == '\n');
        char *text = strncmp(line, "occq", 4) == 0 ? strstr(line, ": ") : NULL;
        if (text && text < line + length)
            line = text + 2;
        if (strncmp(line, "Try '", 5) == 0)
            continue;
        memmove(out, line, (size_t)(end - line));
        out += end - line;
    }
    *out = '\0';
}

/* Copies the last line, the reason for a failure. */
static void last_note(const char *notes, char *line, size_t size)
{
    size_t end = strlen(notes);
    end -= end > 0 && notes[end - 1] == '\n';
    size_t start = end;
    while (start > 0 && notes[start - 1] != '\n')
        start--;
    (void)snprintf(line, size, "%.*s", (int)(end - start), notes + start);
}

/* ---- questions ---- */

/* Tells whether the file was removed: for occq a failure, for occ_query_open() no history. */
static bool is_removed(const occ_query *query)
{
    return !query->is_url && access(query->where, F_OK) != 0 && errno == ENOENT;
}

/* The document of "check" tells that a rule fails: the question has not failed. */
static int code_of_exit(const occ_query *query, int exit_status)
{
    if (exit_status == CLI_EXIT_RULE_FAILS)
        return OCC_QUERY_OK;
    return exit_status == OCC_QUERY_FAILURE && is_removed(query) ? OCC_QUERY_NOTHING : exit_status;
}

/* Runs the command and keeps its notes. *ret_text NULL: no output. */
static int run(occ_query *query, struct query_options *options, char **ret_text, occ_query_error *error)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct query_answer answer = {.status = OCC_QUERY_FAILURE};
    char reason[OCC_QUERY_MESSAGE_BYTES];
    (void)pthread_mutex_lock(&turn);
    int rc = query_run(options, &answer, &err);
    (void)pthread_mutex_unlock(&turn);
    if (rc != 0)
        return fail(error, &err);
    free(query->notes);
    query->notes = occ_take(answer.notes);
    if (query->notes)
        tidy_notes(query->notes);
    int status = code_of_exit(query, answer.status);
    if (status == OCC_QUERY_OK || status == OCC_QUERY_NOTHING)
        *ret_text = occ_take(answer.text);
    query_answer_free(&answer);
    if (status == OCC_QUERY_OK)
        return OCC_QUERY_OK;
    last_note(occ_query_notes(query), reason, sizeof reason);
    return fail_with(error, status, reason[0] ? reason : "the document has the reason");
}

static int ask(occ_query *query, const char *question, const char *json, bool needs_json, char **ret_text,
               occ_query_error *error)
{
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(query_options_free) struct query_options options = {.n = 0};
    const struct query_question *known = query_find_question(question, &err);
    *ret_text = NULL;
    free(query->notes);
    query->notes = NULL;
    if (!known || query_options_read(known, json, query->where, query->is_url, &options, &err) != 0)
        return fail(error, &err);
    if (needs_json && strcmp(options.format, "--json") != 0)
        return fail_with(error, OCC_QUERY_USAGE, "rows have no format");
    return run(query, &options, ret_text, error);
}

int occ_query_ask(occ_query *query, const char *question, const char *options, char **ret_document,
                  occ_query_error *error)
{
    return ask(query, question, options, false, ret_document, error);
}

const char *occ_query_notes(const occ_query *query)
{
    return query->notes ? query->notes : "";
}

void occ_query_free(char *document)
{
    free(document);
}

/* Begins a stream over the rows of a document, unless the question failed with `status`. */
static int stream_rows(const char *document, const char *rows, int status,
                       struct ArrowArrayStream *ret_stream, occ_query_error *error)
{
    struct occ_error err = OCC_ERROR_INIT;
    if (status != OCC_QUERY_OK && (status != OCC_QUERY_NOTHING || !document))
        return status;
    return query_document_rows(document, rows, ret_stream, &err) == 0 ? OCC_QUERY_OK : fail(error, &err);
}

int occ_query_table(occ_query *query, const char *question, const char *options,
                    struct ArrowArrayStream *ret_stream, occ_query_error *error)
{
    _cleanup_(occ_freep) char *document = NULL;
    int status = ask(query, question, options, true, &document, error);
    const struct query_question *known = query_find_question(question, NULL);
    return stream_rows(document, known ? known->rows : NULL, status, ret_stream, error);
}

/* ---- SQL ---- */

static void close_store(void *store)
{
    occ_store_close(store);
}

/* Prepares the only statement of a text. */
static int prepare(sqlite3 *db, const char *text, sqlite3_stmt **ret_statement, struct occ_error *err)
{
    enum { VALUE_BYTES_MAX = 256 << 20 };
    const char *rest = "";
    int status = sql_guard(db, err);
    (void)sqlite3_limit(db, SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX);
    if (status == 0)
        status = sql_prepare_read(db, text, ret_statement, &rest, err);
    if (status == 0 && !*ret_statement)
        return occ_fail(err, OCC_E_INVALID, "the statement is empty");
    if (status == 0 && rest[strspn(rest, " \t\r\n;")])
        return occ_fail(err, OCC_E_INVALID, "one statement at a time");
    return status;
}

static int stream_file(const char *path, const char *text, struct ArrowArrayStream *ret_stream,
                       struct occ_error *err)
{
    const struct cli_args args = {.db = path};
    struct query_source source = {
        .close = close_store, .batch_rows = QUERY_BATCH_ROWS, .batch_bytes = QUERY_BATCH_BYTES};
    struct occ_store *store = NULL;
    int status = cli_open_history(&args, OCC_STORE_READ, &store, err);
    if (status == 0)
        status = prepare(occ_store_sqlite(store), text, &source.statement, err);
    source.owner = store;
    if (status == 0)
        return query_stream_begin(&source, ret_stream, err);
    (void)sqlite3_finalize(source.statement);
    occ_store_close(store);
    return status;
}

/* Asks the warehouse, which answers with a document. */
static int stream_warehouse(occ_query *query, const char *text, struct ArrowArrayStream *ret_stream,
                            occ_query_error *error)
{
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_freep) char *document = NULL;
    _cleanup_(query_options_free) struct query_options options = {.n = 0};
    if (query_options_of_statement(text, query->where, &options, &err) != 0)
        return fail(error, &err);
    int status = run(query, &options, &document, error);
    return stream_rows(document, NULL, status, ret_stream, error);
}

int occ_query_sql(occ_query *query, const char *statement, struct ArrowArrayStream *ret_stream,
                  occ_query_error *error)
{
    struct occ_error err = OCC_ERROR_INIT;
    if (query->is_url)
        return stream_warehouse(query, statement, ret_stream, error);
    return stream_file(query->where, statement, ret_stream, &err) == 0 ? OCC_QUERY_OK : fail(error, &err);
}

/* ---- handles ---- */

const char *occ_query_version(void)
{
    return OCC_VERSION;
}

static bool is_url(const char *where)
{
    return strncmp(where, "http://", 7) == 0 || strncmp(where, "https://", 8) == 0;
}

/* Opens the file once, so that a wrong one is refused at the beginning. */
static int try_file(const char *path, struct occ_error *err)
{
    const struct cli_args args = {.db = path};
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    return cli_open_history(&args, OCC_STORE_READ, &store, err);
}

int occ_query_open(const char *where, occ_query **ret_query, occ_query_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, begin_process);
    struct occ_error err = OCC_ERROR_INIT;
    occ_query *query = calloc(1, sizeof *query);
    int status = query ? 0 : occ_no_memory(&err);
    if (status == 0 && where)
        query->where = strdup(where);
    else if (status == 0)
        status = occ_path_own_history(&query->where, &err);
    if (status == 0 && !query->where)
        status = occ_no_memory(&err);
    if (status == 0)
        query->is_url = is_url(query->where);
    if (status == 0 && !query->is_url)
        status = try_file(query->where, &err);
    if (status == 0) {
        *ret_query = query;
        return OCC_QUERY_OK;
    }
    occ_query_close(query);
    return fail(error, &err);
}

void occ_query_close(occ_query *query)
{
    if (!query)
        return;
    free(query->where);
    free(query->notes);
    free(query);
}
