/* Steps that commands have in common: arguments, the form of the output, closing lines. One thread. */
#pragma once

#include "gather.h"
#include "options.h"
#include "table.h"
#include "values.h"

struct cli_output {
    bool json, csv;
    const char *columns;
    struct cli_merge merge;    /* of commands whose answers for all owners are one */
    struct cli_gather *gather; /* that the rows go to; NULL: to the output */
};

/* Of commands that print a table; the first member of their arguments. */
struct cli_list_args {
    struct cli_args common;
    struct cli_output output;
    struct cli_selection selection; /* of the command's columns */
};

#define CLI_OPTION_JSON                                                                                      \
    CLI_OPTION(0, "json", CLI_FLAG, struct cli_list_args, output.json, NULL,                                 \
               "print JSON: all columns, raw values, null for what is not known")
#define CLI_OPTION_CSV                                                                                       \
    CLI_OPTION(0, "csv", CLI_FLAG, struct cli_list_args, output.csv, NULL,                                   \
               "print CSV: all columns, raw values, empty for what is not known")
/* The last rows of such a command. */
#define CLI_OPTIONS_LIST                                                                                     \
    CLI_OPTION('o', "columns", CLI_TEXT, struct cli_list_args, output.columns, "LIST",                       \
               "columns to show, separated by commas; +LIST adds to the default ones"),                      \
        CLI_OPTION_JSON, CLI_OPTION_CSV, CLI_OPTIONS_SCREEN, CLI_OPTION_HELP, CLI_OPTION_END

/* Parses `argv` (what follows the command's name, NULL-terminated), answers --help, chooses columns, checks,
 * runs. Returns the exit status. */
int cli_run(const struct cli_command *command, char **argv);

/* OCC_E_INVALID: --json and --csv at once. */
int cli_output_format(const struct cli_output *output, enum cli_format *ret_format, struct occ_error *err);

/* The format and the columns: -o, else the defaults (text) or all (JSON, CSV). */
int cli_output_choose(const struct cli_output *output, const struct cli_column *table,
                      struct cli_selection *ret_selection, struct occ_error *err);

/* "occq top: TEXT" on stderr, made safe to print, after what stdout holds; with the owner where there are
 * several (notes.h). */
void cli_note(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same of an error; returns CLI_EXIT_FAILURE, of OCC_E_USAGE CLI_EXIT_USAGE. */
int cli_failure(const struct cli_command *command, const struct occ_error *err);
/* The same, for an empty answer; returns CLI_EXIT_NOTHING. */
int cli_nothing(const struct cli_command *command, const char *why);
/* One line on stderr, unless a table's legend has it: some of the results are from a simulated device. */
void cli_note_simulated(const struct cli_command *command, const struct cli_selection *selection);
/* A line below a table for people, where there are several with their owner. */
void cli_put_below(const struct cli_selection *selection, const char *line);
/* The same; a note where the output is for programs. Nothing in it is from a traced program. */
void cli_footer(const struct cli_command *command, const struct cli_selection *selection, const char *format,
                ...) __attribute__((format(printf, 3, 4)));

/* Before a result is written to `path`: OCC_E_INVALID, the result would replace a database, or SQLite would
 * take it for the log or journal of one. */
int cli_check_output(const char *path, struct occ_error *err);

/* Flushes stdout; a write error turns `status` into CLI_EXIT_FAILURE (silently if the reader has gone). */
int cli_close_stdout(const char *program, int status);
