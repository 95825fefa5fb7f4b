/*
 * One table of the rows of several histories: each row with its owner, in one order, and a sum of what adds
 * up below them. A struct cli_table (table.h) whose selection has a gatherer hands its rows over instead of
 * printing them; the gatherer copies values, so a history can be closed before the next one is opened.
 *
 * Memory: twice `number` rows at most (0: all rows). All histories give the same columns. One thread.
 */
#pragma once

#include <stdio.h>

#include "values.h"

/* A column that is a part of the sum of another one, over all rows. */
struct cli_part {
    const char *key, *of;
    bool runs; /* of this row and those above it */
};
enum { CLI_PARTS_MAX = 4 };

/* How rows of several histories become one answer. */
struct cli_merge {
    /* Keys of columns: rows are ordered by the first of both that has a value, rows without one are last.
     * NULL: by a row's place in its history's answer. Equal rows stand in the order of owners. */
    const char *keys[2];
    bool ascending;
    const struct cli_part *parts; /* up to CLI_PARTS_MAX; `key` NULL ends them; NULL: none */
    const char *sum_by; /* a sum for each value of the column with this key; NULL: one of all rows */
    int64_t number;     /* of rows at most; 0: all */
};

struct cli_gather;

int cli_gather_new(const struct cli_merge *merge, struct cli_gather **ret_gather, struct occ_error *err);
/* NULL is fine. */
void cli_gather_freep(struct cli_gather **gather);

/* Rows from here on are of this owner, whose name must outlive the gatherer. */
void cli_gather_of(struct cli_gather *gather, const char *owner);
/* Whether values of a column are read though it is not selected. `gather` NULL: no. */
bool cli_gather_reads(const struct cli_gather *gather, const char *key);

/* A history's answer begins, named `name` in JSON; the selection must outlive it. */
int cli_gather_begin(struct cli_gather *gather, const char *name, const struct cli_selection *selection,
                     struct occ_error *err);
/* A row for the getters of the selection's columns, which is copied. */
int cli_gather_add(struct cli_gather *gather, const void *row, struct occ_error *err);
/* There are more rows than the owner's history gave. */
void cli_gather_more(struct cli_gather *gather);
/* A line below the table, with the owner's name before it; only where the table is for people. */
void cli_gather_line(struct cli_gather *gather, const char *line);

/* Prints the table, and below it the lines. Nothing where no answer has begun. */
int cli_gather_print(struct cli_gather *gather, FILE *out, struct occ_error *err);
/* "the first 20 of 557 rows of all owners; -n shows more", into `buffer`; false: all rows were printed. */
bool cli_gather_cut_text(const struct cli_gather *gather, char *buffer, size_t size);
