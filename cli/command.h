/* Steps that commands have in common: arguments, the form of the output, closing lines. One thread. */
#pragma once

#include "gather.h"
#include "options.h"
#include "table.h"
#include "values.h"

struct cli_output {
    bool json, csv;
    const char *columns;
    struct cli_merge merge;    /* for commands that merge the answers of all owners */
    struct cli_gather *gather; /* receives the rows; NULL: rows go to the output */
};

/* Arguments of commands that print a table; the first member of their own arguments. */
struct cli_list_args {
    struct cli_args common;
    struct cli_output output;
    struct cli_selection selection; /* selection of the command's columns */
};

#define CLI_OPTION_JSON                                                                                      \
    CLI_OPTION(0, "json", CLI_FLAG, struct cli_list_args, output.json, NULL,                                 \
               "print JSON: all columns, raw values, null for unknown values")
#define CLI_OPTION_CSV                                                                                       \
    CLI_OPTION(0, "csv", CLI_FLAG, struct cli_list_args, output.csv, NULL,                                   \
               "print CSV: all columns, raw values, empty for unknown values")
/* The last options of a command that prints a table. */
#define CLI_OPTIONS_LIST                                                                                     \
    CLI_OPTION('o', "columns", CLI_TEXT, struct cli_list_args, output.columns, "LIST",                       \
               "columns to show, separated by commas; +LIST adds to the default ones"),                      \
        CLI_OPTION_JSON, CLI_OPTION_CSV, CLI_OPTIONS_SCREEN, CLI_OPTION_HELP, CLI_OPTION_END

/* Parses `argv` (NULL-terminated, without the command's name), answers --help, chooses columns, checks
 * options, runs the command. Returns the exit status. */
int cli_run(const struct cli_command *command, char **argv);

/* Returns OCC_E_INVALID for --json together with --csv. */
int cli_output_format(const struct cli_output *output, enum cli_format *ret_format, struct occ_error *err);

/* Chooses the format, and the columns: from -o, else the default columns (text) or all columns (JSON,
 * CSV). */
int cli_output_choose(const struct cli_output *output, const struct cli_column *table,
                      struct cli_selection *ret_selection, struct occ_error *err);

/* Prints "occq top: TEXT" to cli_err(), sanitised, after flushing cli_out(); with the owner's name if several
 * histories are queried (notes.h). */
void cli_note(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints an error's message like cli_note(). Returns CLI_EXIT_USAGE for OCC_E_USAGE, else
 * CLI_EXIT_FAILURE. */
int cli_failure(const struct cli_command *command, const struct occ_error *err);
/* Prints the reason for an empty answer like cli_note(). Returns CLI_EXIT_NOTHING. */
int cli_nothing(const struct cli_command *command, const char *why);
/* Notes on stderr that some results are from a simulated device, unless the table's legend does. */
void cli_note_simulated(const struct cli_command *command, const struct cli_selection *selection);
/* Prints a line below a table for people, sanitised; with the owner's name if histories of several owners are
 * queried. */
void cli_put_below(const struct cli_selection *selection, const char *line);
/* Prints the line with cli_put_below(), or as a note if the output is JSON or CSV. */
void cli_footer(const struct cli_command *command, const struct cli_selection *selection, const char *format,
                ...) __attribute__((format(printf, 3, 4)));

/* Checks `path` before a result is written there. Returns OCC_E_INVALID if the result would replace a
 * database, or if SQLite would read it as a database's log or journal. */
int cli_check_output(const char *path, struct occ_error *err);

/* Flushes and closes stdout. A write error turns `status` into CLI_EXIT_FAILURE, without a message if the
 * reader has closed its end. */
int cli_close_stdout(const char *program, int status);
