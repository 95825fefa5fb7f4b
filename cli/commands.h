/* The commands of occq, one cmd_*.c each, and the programs' own tables. */
#ifndef OCC_CLI_COMMANDS_H
#define OCC_CLI_COMMANDS_H

#include "cli/options.h"

extern const struct cli_command cli_occtrace;
extern const struct cli_command cli_occq;

extern const struct cli_command cli_top, cli_show, cli_runs, cli_launches, cli_sql, cli_calc, cli_whatif,
    cli_gpus, cli_import, cli_sampler;

/* In the order of the help; NULL ends it. */
extern const struct cli_command *const cli_commands[];

#endif
