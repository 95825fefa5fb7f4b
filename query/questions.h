/* The questions of the library: commands of occq, with their operands. Constants. */
#pragma once

#include "cli/options.h"

enum { QUERY_OPERANDS_MAX = 2 };

struct query_question {
    const char *name;
    const struct cli_command *command;
    const char *operands[QUERY_OPERANDS_MAX]; /* their names among the options; NULL: none */
    size_t n_needed; /* operands without which occq would read standard input or refuse */
    /* SQL for the rows of the document ?1 as column `value`; NULL: its first array */
    const char *rows;
};

/* Returns NULL with OCC_E_INVALID for an unknown name. */
const struct query_question *query_find_question(const char *name, struct occ_error *err);
