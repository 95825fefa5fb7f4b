/* The list of occq's commands, and occq's own table. */
#include "commands.h"

#include <string.h>

#define ADDRESS(name) &cli_##name,
const struct cli_command *const cli_commands[] = {OCCQ_COMMANDS(ADDRESS) NULL};

#define OLDER_NAME(name, instead, command) {name, instead, &cli_##command},
static const struct {
    const char *name, *instead;
    const struct cli_command *command;
} older_names[] = {OCCQ_OLDER_NAMES(OLDER_NAME)};

const struct cli_command *occq_find_command(const char *name, const char **ret_instead)
{
    *ret_instead = NULL;
    for (const struct cli_command *const *c = cli_commands; *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    for (size_t i = 0; i < sizeof older_names / sizeof *older_names; i++) {
        if (strcmp(older_names[i].name, name) != 0)
            continue;
        *ret_instead = older_names[i].instead;
        return older_names[i].command;
    }
    return NULL;
}

static const struct cli_option options[] = {CLI_OPTION_HELP, CLI_OPTION_VERSION, CLI_OPTION_END};

const struct cli_command cli_occq = {
    .program = "occq",
    .name = NULL,
    .max_operands = 0,
    .stops_at_operand = true,
    .description =
        "Queries the history that occtrace and occtraced keep, at any time, also while it grows. \"occq "
        "COMMAND --help\", or \"occq help COMMAND\", describes a command.\n\n"
        "-d, --cluster, --node, --color and --no-pager may also stand before the command. Spellings of other "
        "tools work: --limit N for -n N, --format json, csv or text for --json, --csv or neither, -k NAME "
        "for "
        "--kernel NAME.",
    .options = options,
    .examples = {{"occq top", "where GPU time is lost, and why"},
                 {"occq show 1", "one kernel: the cause of its losses, and the change that helps"},
                 {"occq diff label:old label:new", "whether a change helped"}},
};
