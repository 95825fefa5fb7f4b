/* The state that gather.c fills and gather_print.c prints; see gather.h. One thread. */
#pragma once

#include <math.h>

#include "gather.h"

enum {
    CLI_GATHER_HIDDEN = CLI_PARTS_MAX + 1, /* hidden columns: the bases of shares, and the key of sum rows */
};

struct cli_gathered {
    const char *owner;
    size_t owner_index, row_index; /* row_index: in the answer of the owner's history */
    struct cli_value key;
    struct cli_value brief;    /* of the first column with brief texts */
    struct cli_value values[]; /* shown columns, then hidden columns; copied texts follow the array */
};

struct cli_gather {
    struct cli_merge merge;
    const char *name;                 /* NULL: no answer has begun */
    const struct cli_selection *from; /* selection of the current history's answer */
    const struct cli_column *keys[2], *hidden[CLI_GATHER_HIDDEN]; /* columns of the current answer */
    const struct cli_column *brief;             /* the first one with brief texts; NULL: none */
    struct cli_column columns[CLI_MAX_COLUMNS]; /* the printed columns; the first column is the owner */
    struct cli_selection shown;
    size_t n_values; /* values in a row */
    const char *owner;
    size_t owner_index, row_index;
    struct cli_gathered **rows;
    size_t n, allocated, added;
    double totals[CLI_PARTS_MAX]; /* sums of the bases of shares, over all rows */
    bool has_more;
    char *lines;
};

/* Returns the value as a number; NaN: no number. */
static inline double gather_real(const struct cli_value *value)
{
    return value->type == CLI_INTEGER    ? (double)value->integer
           : value->type == CLI_UNSIGNED ? (double)value->number
           : value->type == CLI_REAL     ? value->real
                                         : (double)NAN;
}

static inline size_t gather_count_parts(const struct cli_merge *merge)
{
    size_t n = 0;
    while (merge->parts && n < CLI_PARTS_MAX && merge->parts[n].key)
        n++;
    return n;
}

/* Returns the row's value in the base column of a share; NaN: unknown. */
static inline double gather_whole(const struct cli_gather *g, const struct cli_gathered *row, size_t part)
{
    return gather_real(&row->values[g->shown.n - 1 + part]);
}

/* Sorts the rows and keeps at most the first `most` (0: all). */
void gather_sort(struct cli_gather *g, size_t most);
