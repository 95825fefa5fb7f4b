/*
 * What `ncu --csv --metrics ...` prints: quoted columns, one line for each launch and metric, behind lines of
 * ncu's and the program's own talk. The columns are found by their names in the header line. Pure; any
 * thread.
 */
#pragma once

#include <stddef.h>

struct ncu_csv {
    int metric, value; /* columns; -1: the header was not seen yet */
};
#define NCU_CSV_INIT                                                                                         \
    {                                                                                                        \
        -1, -1                                                                                               \
    }

/* Takes a line. 1: it holds a value of `metric`, *ret_value; 0: something else. */
int ncu_csv_line(struct ncu_csv *csv, const char *line, const char *metric, double *ret_value);
