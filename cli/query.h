/*
 * What the commands of occq share: options that choose launches and the form of the output, opening the history,
 * the steps before and after a command's own work. One thread.
 */
#ifndef OCC_CLI_QUERY_H
#define OCC_CLI_QUERY_H

#include "options.h"
#include "store/store.h"
#include "table.h"
#include "values.h"

/* Which launches. All zero: all. */
struct cli_filter {
    int64_t since_ns, until_ns, run, device;
    const char *kernel;
    double below_ratio;
};

struct cli_output {
    bool json, csv;
    const char *columns;
};

/* Rows for struct cli_filter `filter` and struct cli_output `output` inside the command's argument type. */
#define CLI_OPTIONS_PERIOD(type)                                                                             \
    {0,                                                                                                      \
     "since",                                                                                                \
     CLI_MOMENT,                                                                                             \
     offsetof(type, filter.since_ns),                                                                        \
     "WHEN",                                                                                                 \
     "only what is from then on: a duration ago (90s, 15m, 2h, 3d), 'YYYY-MM-DD HH:MM' or @SECONDS",         \
     NULL,                                                                                                   \
     NULL,                                                                                                   \
     0,                                                                                                      \
     0},                                                                                                     \
    {                                                                                                        \
        0, "until", CLI_MOMENT, offsetof(type, filter.until_ns), "WHEN", "only what is before then", NULL,   \
            NULL, 0, 0                                                                                       \
    }
#define CLI_OPTION_RUN(type)                                                                                 \
    {                                                                                                        \
        0, "run", CLI_NUMBER, offsetof(type, filter.run), "ID", "only this run ('occq runs' lists them)",    \
            NULL, NULL, 1, INT64_MAX                                                                         \
    }
#define CLI_OPTION_DEVICE(type)                                                                              \
    {                                                                                                        \
        0, "device", CLI_NUMBER, offsetof(type, filter.device), "ID",                                        \
            "only this device, by its number in the history (column device_id)", NULL, NULL, 1, INT64_MAX    \
    }
#define CLI_OPTION_KERNEL(type)                                                                              \
    {                                                                                                        \
        0, "kernel", CLI_REGEX, offsetof(type, filter.kernel), "REGEX",                                      \
            "only kernels whose demangled name matches this POSIX extended regular expression", NULL, NULL,  \
            0, 0                                                                                             \
    }
#define CLI_OPTION_COLUMNS(type)                                                                             \
    {                                                                                                        \
        'o', "columns", CLI_TEXT, offsetof(type, output.columns), "LIST",                                    \
            "columns to show, with commas between; +LIST adds to the default ones", NULL, NULL, 0, 0         \
    }
#define CLI_OPTION_JSON(type)                                                                                \
    {                                                                                                        \
        0, "json", CLI_FLAG, offsetof(type, output.json), NULL,                                              \
            "print JSON: all columns, raw values, null for "                                                 \
            "what is not known",                                                                             \
            NULL, NULL, 0, 0                                                                                 \
    }
#define CLI_OPTION_CSV(type)                                                                                 \
    {                                                                                                        \
        0, "csv", CLI_FLAG, offsetof(type, output.csv), NULL,                                                \
            "print CSV: all columns, raw values, empty for "                                                 \
            "what is not known",                                                                             \
            NULL, NULL, 0, 0                                                                                 \
    }

/* Parses, answers --help. True: go on; false: *ret_status is the exit status. */
bool cli_start(const struct cli_command *command, char **argv, struct cli_args *args, int *ret_status);

/* OCC_E_INVALID: --json and --csv at once. */
int cli_output_format(const struct cli_output *output, enum cli_format *ret_format, struct occ_error *err);

/* The format, and the columns to show: -o, else the defaults (text) or all (JSON, CSV). */
int cli_output_choose(const struct cli_output *output, const struct cli_column *table,
                      enum cli_format *ret_format, struct cli_selection *ret_selection,
                      struct occ_error *err);

/* OCC_E_INVALID: the period is empty. */
int cli_filter_check(const struct cli_filter *filter, struct occ_error *err);
/* As the store wants it; texts are the filter's. */
struct occ_filter cli_filter_store(const struct cli_filter *filter);

/* Opens the history for reading: --db, else the user's. */
int cli_open_history(const struct cli_args *args, struct occ_store **ret_store, struct occ_error *err);
void cli_store_closep(struct occ_store **store);

/* One line on stderr when a period leaves out runs only because their times do not count from 1970. */
void cli_say_timeless(const struct cli_command *command, struct occ_store *store,
                      const struct cli_filter *filter);

/* Says that nothing was found; returns CLI_EXIT_NOTHING. */
int cli_nothing(const struct cli_command *command, const char *what);

/* One line on stderr: some of what was printed was simulated. */
void cli_say_simulated(const struct cli_command *command);

/* Flushes stdout; a write error turns `status` into CLI_EXIT_FAILURE (silently if the reader has gone). */
int cli_close_stdout(const char *program, int status);

/* "simulated, persistent grid": marks of a row for people. `design`: enum occ_by_design bits. */
void cli_set_notes(struct cli_value *value, bool simulated, uint32_t design);
/* "persistent+cluster": marks for programs; "" none. */
void cli_set_design(struct cli_value *value, uint32_t design);

#endif
