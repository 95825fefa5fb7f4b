/*
 * Merges the rows of several histories into one table: each row has its owner, all rows are sorted together,
 * and a sum row below them adds up the additive columns. A struct cli_table (table.h) adds its rows to the
 * gatherer of its selection, if any, and prints nothing. The gatherer copies values, so a history can be
 * closed before the next history is opened.
 *
 * Memory: at most 2 x `number` + 1024 rows (number 0: all rows). All histories have the same columns. One
 * thread.
 */
#pragma once

#include <stdio.h>

#include "values.h"

/* A column that shows a share: the value of column `of` / the sum of column `of` over all rows. */
struct cli_part {
    const char *key, *of;
    bool runs; /* running share: the sum over this row and all rows above it is divided */
};
enum { CLI_PARTS_MAX = 4 };

/* How rows of several histories become one answer. */
struct cli_merge {
    /* Keys of two columns. Rows are sorted by the first column that has a value; rows without a value are
     * last. NULL: rows keep their place in the answer of their history. Equal rows are sorted by owner. */
    const char *keys[2];
    bool ascending;
    const struct cli_part *parts; /* up to CLI_PARTS_MAX; `key` NULL ends them; NULL: none */
    const char *sum_by; /* key of a column: one sum row for each value of the column; NULL: one sum row */
    int64_t number;     /* maximum number of printed rows; 0: all rows */
};

struct cli_gather;

int cli_gather_new(const struct cli_merge *merge, struct cli_gather **ret_gather, struct occ_error *err);
/* Frees *gather, which may be NULL. */
void cli_gather_freep(struct cli_gather **gather);

/* Sets the owner of the following rows. The name must outlive the gatherer. */
void cli_gather_of(struct cli_gather *gather, const char *owner);
/* True if the gatherer needs a column that the user did not select. `gather` NULL: false. */
bool cli_gather_reads(const struct cli_gather *gather, const char *key);

/* Begins a history's answer, named `name` in JSON; the selection must outlive it. */
int cli_gather_begin(struct cli_gather *gather, const char *name, const struct cli_selection *selection,
                     struct occ_error *err);
/* Copies the values of a row; the getters of the selection's columns read them. */
int cli_gather_add(struct cli_gather *gather, const void *row, struct occ_error *err);
/* Notes that the owner's history has more rows than its answer. */
void cli_gather_more(struct cli_gather *gather);
/* Adds a line below the table, prefixed with the owner's name. Text format only. */
void cli_gather_line(struct cli_gather *gather, const char *line);

/* Prints the table and the lines below the table; prints nothing if no answer has begun. */
int cli_gather_print(struct cli_gather *gather, FILE *out, struct occ_error *err);
/* Formats "the first 20 of 557 rows of all owners; -n shows more" into `buffer`. Returns false if all rows
 * were printed. */
bool cli_gather_cut_text(const struct cli_gather *gather, char *buffer, size_t size);
