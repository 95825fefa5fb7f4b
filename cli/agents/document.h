/*
 * A bounded JSON document on one line. Text of recorded programs (names of kernels, labels, layers) may be
 * hostile: it occurs only in members with names that begin with "quoted_", sanitised and cut to
 * AGENT_QUOTE_BYTES. One thread.
 */
#pragma once

#include "support/error.h"
#include "support/json.h"

enum {
    AGENT_BYTES = 1500,      /* default of max_bytes */
    AGENT_BYTES_MIN = 1500,  /* every document without lists fits */
    AGENT_BYTES_MAX = 32768, /* largest max_bytes */
    AGENT_QUOTE_BYTES = 96,
    AGENT_TAIL_BYTES = 220, /* room for the members behind a list */
};

struct agent_document {
    struct occ_json json; /* for members; the object is open */
    char *text;
    size_t bytes; /* valid after agent_document_bytes() */
    size_t limit;
};

int agent_document_open(struct agent_document *document, size_t limit, struct occ_error *err);
/* Ends the object. *ret_text is malloc'ed, without a newline. Frees the document in any case. */
int agent_document_close(struct agent_document *document, char **ret_text, struct occ_error *err);
/* Frees an open document; does nothing after agent_document_close(). */
void agent_document_free(struct agent_document *document);
size_t agent_document_bytes(struct agent_document *document);

/* Writes text from a recorded program. `key` begins with "quoted_", or is NULL inside an array with such a
 * key. `text` NULL: null. A text above AGENT_QUOTE_BYTES loses its middle. */
void agent_quote(struct occ_json *json, const char *key, const char *text);
/* Writes six significant digits; NaN becomes "not measured". */
void agent_measured(struct occ_json *json, const char *key, double value);
/* Writes six significant digits; NaN becomes "unknown". */
void agent_known(struct occ_json *json, const char *key, double value);

/* A row of a list: an array, written only if the document stays within its limit. */
struct agent_row {
    struct occ_json json; /* for values; the array is open */
    char *text;
    size_t bytes;
};
int agent_row_open(struct agent_row *row, struct occ_error *err);
/* Adds the row to the array that is open in the document. Returns 1; 0: the document has no room; or a
 * negative error. Frees the row in any case. */
int agent_row_close(struct agent_row *row, struct agent_document *document, struct occ_error *err);

/* The same for a member of the document. */
int agent_member_close(struct agent_row *row, const char *key, struct agent_document *document,
                       struct occ_error *err);

/* Opens the members of a list: "columns" with the names (NULL-terminated), and the array "rows", which the
 * caller closes. */
void agent_list_open(struct agent_document *document, const char *const *columns);

/* Writes "more" unless all rows are shown: number of rows shown, their total, and the offset for the next
 * question. */
void agent_more(struct agent_document *document, size_t offset, size_t shown, size_t total);
/* Writes "next": the tool and an argument that lead to details; `argument` NULL: none. */
void agent_next(struct agent_document *document, const char *tool, const char *argument, int64_t value);
