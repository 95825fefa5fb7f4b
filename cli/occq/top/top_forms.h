/* Other forms of occq top: answers with rows and columns of their own. */
#pragma once

#include "cli/options.h"

extern const struct cli_command cli_top, cli_top_gaps, cli_top_cost, cli_top_on, cli_top_ranks,
    cli_top_allocations, cli_whatif;

/* True if the arguments or the environment choose a warehouse. */
bool top_asks_cluster(char *const *argv);
