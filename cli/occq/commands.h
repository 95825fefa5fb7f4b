/* The table of occq's commands. Each command is in its own folder, independent of the other commands. */
#pragma once

#include "cli/options.h"

/* The commands in the order of the help. X(name of cli_X) */
#define OCCQ_COMMANDS(X)                                                                                     \
    X(top)                                                                                                   \
    X(live)                                                                                                  \
    X(show)                                                                                                  \
    X(diff)                                                                                                  \
    X(check)                                                                                                 \
    X(runs)                                                                                                  \
    X(gaps)                                                                                                  \
    X(info)                                                                                                  \
    X(rm)                                                                                                    \
    X(prune)                                                                                                 \
    X(history)                                                                                               \
    X(report)                                                                                                \
    X(launches)                                                                                              \
    X(export)                                                                                                \
    X(sql) X(calc) X(whatif) X(gpus) X(import) X(sampler) X(doctor) X(mcp) X(stragglers) X(idle)
#define OCCQ_DECLARE(name) extern const struct cli_command cli_##name;
OCCQ_COMMANDS(OCCQ_DECLARE)

extern const struct cli_command cli_occq;

/* Ends with NULL. */
extern const struct cli_command *const cli_commands[];
