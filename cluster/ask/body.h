/* Rows to be sent to a table of the warehouse, in ClickHouse's format TabSeparated. One thread at a time. */
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
    bool in_row; /* a value was added since the row began */
    bool failed; /* out of memory: further values are ignored */
};

void occ_body_free(struct occ_body *body);
void occ_body_clear(struct occ_body *body);

/* These functions add the next column of the row. Texts are escaped. */
void occ_body_put_u64(struct occ_body *body, uint64_t value);
void occ_body_put_text(struct occ_body *body, const char *text, size_t n);
/* Adds a number with the digits that a Float32 needs; NaN becomes NULL. */
void occ_body_put_float(struct occ_body *body, double value);
/* Adds [a,b,...]. */
void occ_body_put_list(struct occ_body *body, const uint64_t *values, size_t n);
/* Adds `n` columns of a statement's row, from column `first` on; reals with so many digits that they are
 * equal when read back. */
void occ_body_put_columns(struct occ_body *body, struct sqlite3_stmt *stmt, int first, int n);
/* Ends the row and counts it. */
void occ_body_end_row(struct occ_body *body);

/* Returns the id of a kernel, from its mangled name, or of a launch configuration, from the text of its row
 * between the id and `cluster`. */
uint64_t occ_body_id(const char *data, size_t n);

/* Adds text unchanged, between finished rows or columns. */
void occ_body_put_raw(struct occ_body *body, const char *text, size_t n);
