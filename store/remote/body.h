/*
 * Rows on their way into a table of the warehouse, in ClickHouse's format TabSeparated. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sqlite3_stmt;

/* All zero: empty. Free with occ_body_free(). */
struct occ_body {
    char *data;
    size_t n, allocated;
    uint64_t rows;
    bool in_row; /* a value was put since the row began */
    bool failed; /* out of memory: nothing more is put */
};

void occ_body_free(struct occ_body *body);
void occ_body_clear(struct occ_body *body);

/* The next column of the row. */
void occ_body_put_u64(struct occ_body *body, uint64_t value);
void occ_body_put_text(struct occ_body *body, const char *text, size_t n);
/* With the digits that a Float32 needs; NaN: NULL. */
void occ_body_put_float(struct occ_body *body, double value);
/* [a,b,...] */
void occ_body_put_list(struct occ_body *body, const uint64_t *values, size_t n);
/* Columns of a statement's row; reals with digits that are the same again when they come back. */
void occ_body_put_columns(struct occ_body *body, struct sqlite3_stmt *stmt, int first, int n);
void occ_body_end_row(struct occ_body *body);

/* The id of a kernel, by its mangled name, and of a launch configuration, by its row's text between the id
 * and `cluster`. */
uint64_t occ_body_id(const char *data, size_t n);

/* Text as it is, between rows or columns that were made before. */
void occ_body_put_raw(struct occ_body *body, const char *text, size_t n);
