/* `occq top --by layer`: ranges as a tree with folded siblings. One thread. */
#pragma once

#include "answer/answer.h"
#include "cli/command.h"
#include "store/store.h"

/* Arguments of --depth, --operators and --unfold. */
struct top_layers_args {
    int64_t depth; /* 0: all */
    bool operators;
    const char *unfold;
    size_t number; /* approximate maximum number of lines */
    const struct occ_overview *overview;
};

/* Lines that fit on a screen of 24 lines with heading and footers. */
enum { TOP_LAYERS_SCREEN = 20 };

/* The columns of a tree. */
extern const struct cli_column top_layers_columns[];

/* Prints the totals by layer (OCC_TOP_BY_LAYER) as a tree of at most about `args->number` lines: the smallest
 * layers are left out and counted below the tree; layers below 0.5 % of the time need a number above
 * TOP_LAYERS_SCREEN. *ret_lines: number of lines; 0: no launch has a range. */
int top_layers_print(const struct cli_command *command, const struct occ_top *top,
                     const struct top_layers_args *args, const struct cli_output *output, size_t *ret_lines,
                     struct occ_error *err);
