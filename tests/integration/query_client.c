/*
 * A program that uses libocctrace-query by its header alone, for query_library.py.
 *
 *   query_client ask FILE QUESTION OPTIONS     the document
 *   query_client table FILE QUESTION OPTIONS   the rows of an Arrow stream
 *   query_client sql FILE STATEMENT            the same
 *   query_client threads FILE                  questions from several threads, which all get the same answers
 *   query_client fork FILE                     a question in a child
 *
 * A stream is printed with a line "NAME FORMAT" for each column, then a line for each row, with tabulators
 * between values, NULL as "\N" and blobs in hexadecimal digits; standard error has the number of batches.
 * Each batch is checked against the specification; the first column is moved out of its batch, as consumers
 * may do. Exit status: the library's; 9 if the library breaks its contract.
 */
#include <inttypes.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "occtrace-query.h"

enum { BROKEN = 9, THREADS = 4, ROUNDS = 5, SIGNALS = 32 };

static void require(bool holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "the library breaks its contract: %s\n", what);
    exit(BROKEN);
}

/* ---- the process's state ---- */

struct state {
    locale_t locale;
    char name[64];
    struct sigaction handlers[SIGNALS];
    mode_t mask;
};

static struct state look(void)
{
    struct state state = {.locale = uselocale((locale_t)0)};
    (void)snprintf(state.name, sizeof state.name, "%s", setlocale(LC_ALL, NULL));
    for (int i = 1; i < SIGNALS; i++)
        (void)sigaction(i, NULL, &state.handlers[i]);
    state.mask = umask(022);
    (void)umask(state.mask);
    return state;
}

static void compare(const struct state *before)
{
    struct state now = look();
    require(before->locale == now.locale && strcmp(before->name, now.name) == 0, "the locale has changed");
    require(before->mask == now.mask, "the umask has changed");
    for (int i = 1; i < SIGNALS; i++)
        require(before->handlers[i].sa_handler == now.handlers[i].sa_handler, "a signal handler has changed");
}

/* ---- streams ---- */

static void put_value(const struct ArrowArray *array, char format, int64_t row)
{
    const uint8_t *valid = array->buffers[0];
    if (array->null_count != 0 && !(valid[row / 8] >> (row % 8) & 1)) {
        (void)printf("\\N");
        return;
    }
    if (format == 'l') {
        (void)printf("%" PRId64, ((const int64_t *)array->buffers[1])[row]);
        return;
    }
    if (format == 'g') {
        (void)printf("%.17g", ((const double *)array->buffers[1])[row]);
        return;
    }
    const int32_t *ends = array->buffers[1];
    const uint8_t *bytes = array->buffers[2];
    require(ends[0] == 0 && ends[row] <= ends[row + 1], "offsets of texts");
    for (int32_t i = ends[row]; i < ends[row + 1]; i++)
        (void)printf(format == 'u' ? "%c" : "%02x", bytes[i]);
}

static void check_column(const struct ArrowArray *array, char format, int64_t length)
{
    int64_t nulls = 0;
    require(array->length == length && array->offset == 0 && array->n_children == 0, "length of a column");
    require(array->n_buffers == (format == 'u' || format == 'z' ? 3 : 2), "buffers of a column");
    for (int64_t row = 0; row < length && array->buffers[0]; row++)
        nulls += !(((const uint8_t *)array->buffers[0])[row / 8] >> (row % 8) & 1);
    require(nulls == array->null_count, "null_count");
    require(array->buffers[1] != NULL, "a buffer is missing");
}

static void put_batch(const struct ArrowSchema *schema, struct ArrowArray *batch)
{
    struct ArrowArray first = *batch->children[0]; /* moved */
    batch->children[0]->release = NULL;
    require(batch->n_children == schema->n_children && batch->n_buffers == 1, "shape of a batch");
    for (int64_t i = 0; i < batch->n_children; i++)
        check_column(i == 0 ? &first : batch->children[i], schema->children[i]->format[0], batch->length);
    for (int64_t row = 0; row < batch->length; row++) {
        for (int64_t i = 0; i < batch->n_children; i++) {
            (void)printf("%s", i ? "\t" : "");
            put_value(i == 0 ? &first : batch->children[i], schema->children[i]->format[0], row);
        }
        (void)printf("\n");
    }
    batch->release(batch);
    require(batch->release == NULL, "a released batch keeps its function");
    first.release(&first);
    require(first.release == NULL, "a released column keeps its function");
}

static int put_stream(struct ArrowArrayStream *stream)
{
    struct ArrowSchema schema;
    struct ArrowArray batch;
    int batches = 0, rc;
    require(stream->get_schema(stream, &schema) == 0, "get_schema");
    require(strcmp(schema.format, "+s") == 0, "a stream has structs");
    for (int64_t i = 0; i < schema.n_children; i++)
        (void)printf("%s %s\n", schema.children[i]->name, schema.children[i]->format);
    while ((rc = stream->get_next(stream, &batch)) == 0 && batch.release) {
        put_batch(&schema, &batch);
        batches++;
    }
    if (rc != 0)
        (void)fprintf(stderr, "%s\n", stream->get_last_error(stream));
    schema.release(&schema);
    require(schema.release == NULL, "a released schema keeps its function");
    stream->release(stream);
    require(stream->release == NULL, "a released stream keeps its function");
    (void)fprintf(stderr, "batches: %d\n", batches);
    return rc == 0 ? OCC_QUERY_OK : OCC_QUERY_FAILURE;
}

/* ---- questions ---- */

static int fail(const occ_query_error *error, int status)
{
    require(error->code == status && error->message[0], "a failure has no message");
    (void)fprintf(stderr, "%s\n", error->message);
    return status;
}

static int ask(occ_query *query, char **argv, occ_query_error *error)
{
    char *document = NULL;
    int status = occ_query_ask(query, argv[0], argv[1], &document, error);
    require(status == OCC_QUERY_OK || status == OCC_QUERY_NOTHING || !document, "a failure has a document");
    (void)fputs(document ? document : "", stdout);
    occ_query_free(document);
    (void)fputs(occ_query_notes(query), stderr);
    return status == OCC_QUERY_OK ? status : fail(error, status);
}

static int stream(occ_query *query, char **argv, occ_query_error *error)
{
    struct ArrowArrayStream rows = {.release = NULL};
    int status = argv[1] ? occ_query_table(query, argv[0], argv[1], &rows, error)
                         : occ_query_sql(query, argv[0], &rows, error);
    return status == OCC_QUERY_OK ? put_stream(&rows) : fail(error, status);
}

/* ---- threads ---- */

static char *expected;
static const char *path;

static int64_t count_rows(occ_query *query)
{
    struct ArrowArrayStream rows;
    struct ArrowArray batch;
    int64_t n = 0;
    require(occ_query_sql(query, "SELECT * FROM launch WHERE kernel REGEXP '.'", &rows, NULL) == OCC_QUERY_OK,
            "sql");
    while (rows.get_next(&rows, &batch) == 0 && batch.release) {
        n += batch.length;
        batch.release(&batch);
    }
    rows.release(&rows);
    return n;
}

static void *ask_often(void *unused)
{
    occ_query *query = NULL;
    require(occ_query_open(path, &query, NULL) == OCC_QUERY_OK, "open");
    for (int i = 0; i < ROUNDS; i++) {
        char *document = NULL;
        require(occ_query_ask(query, "top", NULL, &document, NULL) == OCC_QUERY_OK, "top");
        require(strcmp(document, expected) == 0, "threads get different answers");
        occ_query_free(document);
        require(count_rows(query) > 0, "rows");
    }
    occ_query_close(query);
    return unused;
}

static int run_threads(occ_query *query)
{
    pthread_t threads[THREADS];
    require(occ_query_ask(query, "top", NULL, &expected, NULL) == OCC_QUERY_OK, "top");
    for (int i = 0; i < THREADS; i++)
        require(pthread_create(&threads[i], NULL, ask_often, NULL) == 0, "no thread");
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    occ_query_free(expected);
    return OCC_QUERY_OK;
}

static int run_child(occ_query *query)
{
    int status = 0;
    require(occ_query_ask(query, "top", NULL, &expected, NULL) == OCC_QUERY_OK, "top");
    pid_t child = fork();
    if (child == 0) {
        (void)ask_often(NULL);
        _exit(0);
    }
    (void)waitpid(child, &status, 0);
    occ_query_free(expected);
    require(status == 0, "a child gets no answer");
    return OCC_QUERY_OK;
}

int main(int argc, char **argv)
{
    occ_query *query = NULL;
    occ_query_error error = {0, ""};
    if (argc < 3)
        return OCC_QUERY_USAGE;
    path = argv[2];
    const struct state before = look();
    int status = occ_query_open(path, &query, &error);
    if (status != OCC_QUERY_OK)
        return fail(&error, status);
    switch (argv[1][0]) {
    case 'a':
        status = ask(query, argv + 3, &error);
        break;
    case 'f':
        status = run_child(query);
        break;
    case 's':
    case 't':
        status = argv[1][1] == 'h' ? run_threads(query) : stream(query, argv + 3, &error);
        break;
    default:
        status = OCC_QUERY_USAGE;
    }
    occ_query_close(query);
    compare(&before);
    return status;
}
