/* occq and its commands, one cmd_*.c each (calc: a library of its own). */
#pragma once

#include "cli/options.h"
#include "calc/calc.h"

extern const struct cli_command cli_occq;

extern const struct cli_command cli_top, cli_show, cli_runs, cli_launches, cli_sql, cli_whatif, cli_gpus,
    cli_gaps, cli_import, cli_sampler, cli_doctor, cli_info, cli_rm, cli_prune, cli_diff, cli_check,
    cli_export, cli_history, cli_report, cli_live, cli_stragglers, cli_idle;

/* In the order of the help; NULL ends it. */
extern const struct cli_command *const cli_commands[];
