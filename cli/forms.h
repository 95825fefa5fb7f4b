/* Forms of a command, and options by their spelling. Pure; any thread. */
#pragma once

#include "options.h"

/* Returns the option with exactly this spelling, the first `length` bytes of `word`: "-d", "--db"; NULL:
 * none. */
const struct cli_option *cli_option_of(const struct cli_option *options, const char *word, size_t length);

/* True if an option without "=" takes the next argument as its value. */
bool cli_takes_value(const struct cli_option *option);

/* True if `argv` (NULL-terminated) gives the option `name`, or --format (see cli_parse()). */
bool cli_argv_has(const struct cli_option *options, char *const *argv, const char *name);

/* Returns the form of `command` that `argv` (NULL-terminated, without the command's name) chooses, else
 * `command`. */
const struct cli_command *cli_form_of(const struct cli_command *command, char *const *argv);
