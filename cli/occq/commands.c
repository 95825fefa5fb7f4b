/* The list of occq's commands, and occq's own table. */
#include "commands.h"

const struct cli_command *const cli_commands[] = {
    &cli_top,    &cli_live,  &cli_show,    &cli_diff,    &cli_check,    &cli_runs,       &cli_gaps, &cli_info,
    &cli_rm,     &cli_prune, &cli_history, &cli_report,  &cli_launches, &cli_export,     &cli_sql,  &cli_calc,
    &cli_whatif, &cli_gpus,  &cli_import,  &cli_sampler, &cli_doctor,   &cli_stragglers, &cli_idle, NULL};

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
