/* Prints tables of columns over SQL: a column table gives both the statement's result columns and the output.
 * One thread. */
#pragma once

#include "cli/table.h"
#include "history.h"

struct sqlite3;
struct sqlite3_stmt;

/* A result column of the statement. `sql`: its expression; NULL: `key`. */
#define SQL_COLUMN(name, key, unit, flags, sql, help)                                                        \
    {                                                                                                        \
        name, key, unit, flags, help, sql_get_value, 0, sql, NULL                                            \
    }
/* A result column with 0 or 1: no or yes. */
#define SQL_FLAG(name, key, flags, help)                                                                     \
    {                                                                                                        \
        name, key, CLI_PLAIN, flags, help, sql_get_flag, 0, NULL, NULL                                       \
    }
cli_getter sql_get_value, sql_get_flag;

struct sql_answer {
    size_t rows;
    bool has_more;  /* rows beyond `number` exist */
    bool simulated; /* column `simulated` is 1 in a row */
};

/* Conditions on rows of `launch`, for struct sql_list. */
#define SQL_KNOWN_TIME   "run_id NOT IN (SELECT run_id FROM run WHERE time_base = 'unknown')"
#define SQL_LAUNCH_SINCE "start_ns >= %lld AND " SQL_KNOWN_TIME
#define SQL_LAUNCH_UNTIL "start_ns < %lld AND " SQL_KNOWN_TIME
#define SQL_LAUNCH_BELOW "coalesce(achieved, expected_achieved_low) < %!.15g"
/* Conditions on rows of `run`. A run lasts until its end or its last launch, the later of both. */
#define SQL_RUN_SINCE                                                                                        \
    "max(coalesce(end_ns, 0), coalesce(last_start_ns, 0), start_ns) >= %lld AND time_base = 'epoch'"
#define SQL_RUN_UNTIL "start_ns < %lld AND time_base = 'epoch'"

/* A list that a command prints. */
struct sql_list {
    const char *name;                      /* name of the JSON array */
    const struct cli_column *table;        /* columns without selection are not computed */
    const struct cli_selection *selection; /* NULL: all columns */
    const char *from, *order;
    /* Conditions, added if the filter has the value: sqlite3_mprintf() formats with %lld, %Q for texts, or
     * %!.15g. `below` NULL: rows have no occupancy, and the filter's limit is ignored */
    const char *since, *until, *below;
    bool has_launches; /* rows have a kernel, a device and a stream */
    const struct occ_filter *filter;
    int64_t number;      /* maximum number of rows; 0: all */
    const char *nothing; /* note on an empty answer */
    void (*note_more)(const struct cli_command *command, struct occ_store *store,
                      const struct sql_list *list);
};
/* Prints the list and its notes. Returns the exit status. */
int sql_list(const struct cli_command *command, struct occ_store *store, const struct sql_list *list);

/* Prepares the list's statement, with one row more than `number`. The caller finalizes it. Result column i is
 * table[i]. */
int sql_prepare_list(struct occ_store *store, const struct sql_list *list,
                     struct sqlite3_stmt **ret_statement, struct occ_error *err);

struct sql_visitor {
    int (*row)(void *context, const void *row, struct occ_error *err); /* `row`: for the columns' getters */
    void *context;
};
/* Visits the rows of the list's statement; columns without selection are NULL. */
int sql_visit_list(struct occ_store *store, const struct sql_list *list, const struct sql_visitor *visitor,
                   struct occ_error *err);

/* Prints the rows of a prepared statement; uses name, table, selection and number (0: all) of `list`. Result
 * column i is table[i]. */
int sql_print(struct sqlite3_stmt *statement, const struct sql_list *list, struct sql_answer *ret_answer,
              struct occ_error *err);

/* Returns the first integer of the result of `sql`; 0: no rows. */
int64_t sql_number(struct sqlite3 *db, const char *sql);

/* Calls cli_nothing() with the reason: the filter's run does not exist, else `why`. */
int sql_no_launches(const struct cli_command *command, struct occ_store *store,
                    const struct occ_filter *filter, const char *why);

/* Excludes runs with unknown times, with a line on stderr, unless the filter has a run or a period, or no
 * other runs exist. For commands that print absolute times. */
void sql_leave_unknown_times_out(const struct cli_command *command, struct occ_store *store,
                                 struct occ_filter *filter);

/* Counts the runs of the filter's run options and period that lost launches or were recorded in part; filters
 * of launches are ignored. 0: none, or the history is not readable. */
struct sql_partial {
    int64_t runs, lost; /* lost: number of launches */
};
struct sql_partial sql_count_partial(struct occ_store *store, const struct occ_filter *filter);
/* Prints one line on stderr if there are any. */
void sql_note_partial(const struct cli_command *command, struct occ_store *store,
                      const struct occ_filter *filter);

/* Adds "x REGEXP pattern" to SQL, with POSIX extended regular expressions. */
int sql_add_regexp(struct sqlite3 *db, struct occ_error *err);
