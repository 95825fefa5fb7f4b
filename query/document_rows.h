/* The rows of a document in JSON as an Arrow stream. One thread. */
#pragma once

#include "occtrace-query.h"
#include "support/error.h"

/* Begins a stream of one batch. `rows`: SQL for the rows of the document ?1 as column `value`; NULL: the
 * first array of the document. A document without rows gives a stream with a column "rows" and
 * no row. */
int query_document_rows(const char *document, const char *rows, struct ArrowArrayStream *ret_stream,
                        struct occ_error *err);
