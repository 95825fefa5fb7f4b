/* The table of occq's commands. Each command is in its own folder, independent of the other commands. */
#pragma once

#include "cli/options.h"

/* The commands in the order of the help, by group. X(name of cli_X) */
#define OCCQ_COMMANDS(X)                                                                                     \
    X(top)                                                                                                   \
    X(show)                                                                                                  \
    X(diff)                                                                                                  \
    X(history)                                                                                               \
    X(launches)                                                                                              \
    X(sql)                                                                                                   \
    X(report)                                                                                                \
    X(export)                                                                                                \
    X(live)                                                                                                  \
    X(runs)                                                                                                  \
    X(import)                                                                                                \
    X(prune)                                                                                                 \
    X(doctor)                                                                                                \
    X(calc)                                                                                                  \
    X(check)                                                                                                 \
    X(mcp)
/* Names that scripts use, and their replacements; --help lists only these. X(name, replacement, name of
 * cli_X) */
#define OCCQ_OLDER_NAMES(X)                                                                                  \
    X("gaps", "top --gaps", top_gaps)                                                                        \
    X("gpus", "calc --list", calc_list)                                                                      \
    X("idle", "top --by allocation", top_allocations)                                                        \
    X("info", "runs --info", runs_info)                                                                      \
    X("rm", "prune RUN...", prune)                                                                           \
    X("sampler", "doctor --counters", doctor_counters)                                                       \
    X("stragglers", "top --by rank", top_ranks)                                                              \
    X("what-if", "top --on GPU", whatif)
#define OCCQ_DECLARE(name)                         extern const struct cli_command cli_##name;
#define OCCQ_DECLARE_OLDER(name, instead, command) OCCQ_DECLARE(command)
OCCQ_COMMANDS(OCCQ_DECLARE)
OCCQ_OLDER_NAMES(OCCQ_DECLARE_OLDER)

extern const struct cli_command cli_occq;

/* Ends with NULL. */
extern const struct cli_command *const cli_commands[];

/* Returns a command by its name, or by the name that it had before another form replaced it: "gaps" for
 * "top --gaps". NULL: unknown. *ret_instead: today's spelling of an older name, else NULL. */
const struct cli_command *occq_find_command(const char *name, const char **ret_instead);
