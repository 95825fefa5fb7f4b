/* `occq top --by layer`: ranges as a tree with folded siblings. One thread. */
#pragma once

#include "cli/command.h"
#include "store/store.h"

/* For --depth, --operators and --unfold. */
struct top_layers_args {
    int64_t depth; /* 0: all */
    bool operators;
    const char *unfold;
    size_t number; /* of lines, at most about */
};

/* Lines that fit on a screen of 24 lines with heading and footers. */
enum { TOP_LAYERS_SCREEN = 20 };

/* The columns of a tree. */
extern const struct cli_column top_layers_columns[];

/* The totals by layer (OCC_TOP_BY_LAYER) as a tree of at most about `args->number` lines: the smallest layers
 * are left out and counted below; layers below 0.5 % of the time need a number above TOP_LAYERS_SCREEN.
 * Returns the number of lines in *ret_lines; 0: no launch has a range. */
int top_layers_print(const struct cli_command *command, const struct occ_top *top,
                     const struct top_layers_args *args, const struct cli_output *output, size_t *ret_lines,
                     struct occ_error *err);
