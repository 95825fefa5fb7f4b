/*
 * Reads the output of `ncu --csv --metrics ...`: quoted columns, one line per launch and metric, after
 * messages of ncu and the program. The header line names the columns. Pure; any thread.
 */
#pragma once

#include <stddef.h>

struct ncu_csv {
    int metric, value; /* columns; -1: no header yet */
};
#define NCU_CSV_INIT                                                                                         \
    {                                                                                                        \
        -1, -1                                                                                               \
    }

/* Reads a line. Returns 1 for a value of `metric`, *ret_value; else 0. */
int ncu_csv_line(struct ncu_csv *csv, const char *line, const char *metric, double *ret_value);
