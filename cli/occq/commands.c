/* The list of occq's commands, and occq's own table. */
#include "commands.h"

#define ADDRESS(name) &cli_##name,
const struct cli_command *const cli_commands[] = {OCCQ_COMMANDS(ADDRESS) NULL};

static const struct cli_option options[] = {CLI_OPTION_HELP, CLI_OPTION_VERSION, CLI_OPTION_END};

const struct cli_command cli_occq = {
    .program = "occq",
    .name = NULL,
    .max_operands = 0,
    .stops_at_operand = true,
    .description = "Queries the history that occtrace and occtraced keep, any time, also while it grows. "
                   "\"occq COMMAND --help\", or \"occq help COMMAND\", describes a command.",
    .options = options,
    .examples = {{"occq top --low-occupancy", "the most wasteful kernels"},
                 {"occq show 1", "why, and what to do"}},
};
