/*
 * The answer of occq top as a table or as advice: default columns by the known values, the overview above,
 * footers below. One thread; one answer a process.
 */
#pragma once

#include "cli/history/history.h"
#include "cli/kernels/top.h"
#include "top_layers.h"

struct top_args {
    struct history_args history;
    const char *by, *order, *cause; /* cause: a cause's label */
    bool advice;
    double min_loss;
    struct top_layers_args layers;
};

/* The printed rows: the first `shown` rows of `top`. */
struct top_report {
    double covered_ratio;                /* part of kernel time with a range; NaN: not by range */
    const struct occ_overview *overview; /* NULL: GPU time is not known */
    const struct cli_command *command;
    const struct top_args *args;
    struct occ_top *top;
    size_t shown;
    struct occ_store *store;
};

enum occ_top_by top_by_of(const struct top_args *args);
/* True if the answer is a table of the chosen or the default columns. */
bool top_has_table(const struct top_args *args);
/* Orders and prints the rows; the default columns depend on the known values. */
int top_print(const struct top_report *report, struct occ_error *err);
