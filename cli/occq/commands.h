/* The table of occq's commands. Each lies in a folder of its own, which no other command knows. */
#pragma once

#include "cli/options.h"

/* In the order of the help. X(what cli_X is called) */
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
    X(sql) X(calc) X(whatif) X(gpus) X(import) X(sampler) X(doctor) X(stragglers) X(idle)
#define OCCQ_DECLARE(name) extern const struct cli_command cli_##name;
OCCQ_COMMANDS(OCCQ_DECLARE)

extern const struct cli_command cli_occq;

/* NULL ends it. */
extern const struct cli_command *const cli_commands[];
