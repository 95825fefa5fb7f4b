/* See arrow_stream.h. One thread at a time. */
#include "arrow_stream.h"

#include <errno.h>
#include <locale.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "arrow_column.h"
#include "cli/fit.h"
#include "utf8.h"

struct stream {
    struct query_source source;
    struct query_column *columns;
    int n;
    int64_t rows;  /* of the batch that is being filled */
    bool is_first; /* the first batch is filled and was not taken */
    bool is_done;
    struct occ_error err;
};

static void free_stream(struct stream *stream)
{
    for (int i = 0; i < stream->n; i++)
        query_column_release(&stream->columns[i]);
    free(stream->columns);
    (void)sqlite3_finalize(stream->source.statement);
    if (stream->source.close)
        stream->source.close(stream->source.owner);
    free(stream);
}

/* ---- batches ---- */

static int add_row(struct stream *stream)
{
    int status = 0;
    for (int i = 0; i < stream->n && status == 0; i++)
        status = query_column_add(&stream->columns[i], stream->source.statement, i, &stream->err);
    stream->rows += status == 0;
    return status;
}

static bool is_full(const struct stream *stream)
{
    size_t bytes = 0;
    for (int i = 0; i < stream->n; i++)
        bytes += query_column_bytes(&stream->columns[i]);
    return (size_t)stream->rows >= stream->source.batch_rows || bytes >= stream->source.batch_bytes;
}

/* Reads the rows of a batch. */
static int read_rows(struct stream *stream)
{
    sqlite3_stmt *statement = stream->source.statement;
    int status = 0, code = SQLITE_ROW;
    while (status == 0 && !is_full(stream) && (code = sqlite3_step(statement)) == SQLITE_ROW)
        status = add_row(stream);
    stream->is_done = status != 0 || code != SQLITE_ROW;
    if (status == 0 && code != SQLITE_ROW && code != SQLITE_DONE)
        status = occ_fail(&stream->err, code == SQLITE_NOMEM ? OCC_E_NO_MEMORY : OCC_E_IO, "%s",
                          sqlite3_errmsg(sqlite3_db_handle(statement)));
    return status;
}

/* Regular expressions read text by the locale, which is only this thread's and ends with the call. */
static int fill(struct stream *stream)
{
    locale_t user = uselocale(cli_text_locale());
    int status = read_rows(stream);
    (void)uselocale(user);
    return status;
}

static void release_batch(struct ArrowArray *batch)
{
    for (int64_t i = 0; i < batch->n_children; i++) { /* a consumer may have moved a child */
        if (batch->children[i] && batch->children[i]->release)
            batch->children[i]->release(batch->children[i]);
        free(batch->children[i]);
    }
    free(batch->children);
    free(batch->buffers);
    batch->release = NULL;
}

/* Moves the columns into an array of structs. */
static int take_batch(struct stream *stream, struct ArrowArray *ret_batch)
{
    struct ArrowArray batch = {.length = stream->rows,
                               .n_buffers = 1, /* the validity of rows: all are valid */
                               .buffers = calloc(1, sizeof *batch.buffers),
                               .children = calloc((size_t)stream->n + 1, sizeof *batch.children),
                               .release = release_batch};
    int status = batch.buffers && batch.children ? 0 : occ_no_memory(&stream->err);
    for (int i = 0; i < stream->n && status == 0; i++) {
        batch.children[i] = calloc(1, sizeof **batch.children);
        batch.n_children = batch.children[i] ? i + 1 : i;
        status = batch.children[i] ? query_column_take(&stream->columns[i], batch.children[i], &stream->err)
                                   : occ_no_memory(&stream->err);
    }
    stream->rows = 0;
    if (status == 0)
        *ret_batch = batch;
    else
        release_batch(&batch);
    return status;
}

/* ---- the interface ---- */

static int errno_of(const struct occ_error *err)
{
    return err->code == OCC_E_NO_MEMORY ? ENOMEM : err->code == OCC_E_INVALID ? EINVAL : EIO;
}

static int get_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    struct stream *stream = self->private_data;
    *out = (struct ArrowArray){.release = NULL};
    if (stream->err.code != 0)
        return errno_of(&stream->err);
    if (!stream->is_first && !stream->is_done && fill(stream) != 0)
        return errno_of(&stream->err);
    stream->is_first = false;
    return stream->rows == 0 || take_batch(stream, out) == 0 ? 0 : errno_of(&stream->err);
}

static void release_schema(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i] && schema->children[i]->release)
            schema->children[i]->release(schema->children[i]);
        free(schema->children[i]);
    }
    free(schema->children);
    schema->release = NULL;
}

static int get_schema(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
    struct stream *stream = self->private_data;
    struct ArrowSchema schema = {.format = "+s",
                                 .name = "",
                                 .children = calloc((size_t)stream->n + 1, sizeof *schema.children),
                                 .release = release_schema};
    int status = schema.children ? 0 : occ_no_memory(&stream->err);
    for (int i = 0; i < stream->n && status == 0; i++) {
        schema.children[i] = calloc(1, sizeof **schema.children);
        schema.n_children = schema.children[i] ? i + 1 : i;
        status = schema.children[i]
                     ? query_column_describe(&stream->columns[i], schema.children[i], &stream->err)
                     : occ_no_memory(&stream->err);
    }
    if (status == 0)
        *out = schema;
    else
        release_schema(&schema);
    return status == 0 ? 0 : errno_of(&stream->err);
}

static const char *get_last_error(struct ArrowArrayStream *self)
{
    const struct stream *stream = self->private_data;
    return stream->err.code != 0 ? stream->err.message : NULL;
}

static void release(struct ArrowArrayStream *self)
{
    free_stream(self->private_data);
    self->release = NULL;
}

/* ---- the beginning ---- */

static int name_columns(struct stream *stream)
{
    sqlite3_stmt *statement = stream->source.statement;
    int n = sqlite3_column_count(statement);
    if (n == 0)
        return occ_fail(&stream->err, OCC_E_INVALID, "the statement has no columns");
    if (n > QUERY_COLUMNS_MAX)
        return occ_fail(&stream->err, OCC_E_FULL, "more than %d columns", QUERY_COLUMNS_MAX);
    stream->columns = calloc((size_t)n, sizeof *stream->columns);
    if (!stream->columns)
        return occ_no_memory(&stream->err);
    for (; stream->n < n; stream->n++) {
        const char *name = sqlite3_column_name(statement, stream->n);
        struct query_column *column = &stream->columns[stream->n];
        column->kind = query_kind_of_type(sqlite3_column_decltype(statement, stream->n));
        column->name = name ? query_utf8_text(name) : NULL;
        if (!column->name)
            return occ_no_memory(&stream->err);
    }
    return 0;
}

/* Reads the first batch and keeps the types of its columns. */
static int begin(struct stream *stream)
{
    int status = name_columns(stream);
    if (status == 0)
        status = fill(stream);
    for (int i = 0; i < stream->n && status == 0; i++)
        status = query_column_freeze(&stream->columns[i], &stream->err);
    stream->is_first = true;
    return status;
}

int query_stream_begin(const struct query_source *source, struct ArrowArrayStream *ret_stream,
                       struct occ_error *err)
{
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream) {
        (void)sqlite3_finalize(source->statement);
        if (source->close)
            source->close(source->owner);
        return occ_no_memory(err);
    }
    stream->source = *source;
    int status = begin(stream);
    if (status != 0) {
        if (err)
            *err = stream->err;
        free_stream(stream);
        return status;
    }
    *ret_stream = (struct ArrowArrayStream){.get_schema = get_schema,
                                            .get_next = get_next,
                                            .get_last_error = get_last_error,
                                            .release = release,
                                            .private_data = stream};
    return 0;
}
