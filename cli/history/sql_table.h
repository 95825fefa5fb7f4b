/* Tables of columns over SQL: a statement is built from a column table, its rows are printed by the same
 * table. One thread. */
#pragma once

#include "cli/table.h"
#include "history.h"

struct sqlite3;
struct sqlite3_stmt;

/* A column that is a result column of the statement. `sql`: its expression; NULL: `key`. */
#define SQL_COLUMN(name, key, unit, flags, sql, help)                                                        \
    {                                                                                                        \
        name, key, unit, flags, help, sql_get_value, 0, sql                                                  \
    }
/* The same for 0 and 1: no and yes. */
#define SQL_FLAG(name, key, flags, help)                                                                     \
    {                                                                                                        \
        name, key, CLI_PLAIN, flags, help, sql_get_flag, 0, NULL                                             \
    }
cli_getter sql_get_value, sql_get_flag;

struct sql_answer {
    size_t rows;
    bool has_more;  /* than were asked for */
    bool simulated; /* column `simulated` of some row is 1 */
};

/* Conditions on rows of `launch`, for struct sql_list. */
#define SQL_KNOWN_TIME   "run_id NOT IN (SELECT run_id FROM run WHERE time_base = 'unknown')"
#define SQL_LAUNCH_SINCE "start_ns >= %lld AND " SQL_KNOWN_TIME
#define SQL_LAUNCH_UNTIL "start_ns < %lld AND " SQL_KNOWN_TIME
#define SQL_LAUNCH_BELOW "coalesce(achieved, expected_achieved_low) < %!.15g"
/* Conditions on rows of `run`. A run lasts until its end or its last launch, whichever is later. */
#define SQL_RUN_SINCE                                                                                        \
    "max(coalesce(end_ns, 0), coalesce(last_start_ns, 0), start_ns) >= %lld AND time_base = 'epoch'"
#define SQL_RUN_UNTIL "start_ns < %lld AND time_base = 'epoch'"

/* What a listing command asks. */
struct sql_list {
    const char *name;                      /* of the JSON array */
    const struct cli_column *table;        /* columns that are not selected are not computed */
    const struct cli_selection *selection; /* NULL: all */
    const char *from, *order;
    /* Conditions that count if the filter has the value: sqlite3_mprintf() formats, %lld, %Q for texts,
     * %!.15g. `below` NULL: rows have no occupancy of their own, all count */
    const char *since, *until, *below;
    bool has_launches; /* rows have a kernel, a device and a stream */
    const struct occ_filter *filter;
    int64_t number;      /* of rows at most; 0: all */
    const char *nothing; /* the note on an empty answer */
    void (*note_more)(const struct cli_command *command, struct occ_store *store,
                      const struct sql_list *list);
};
/* Prints the list and its notes; returns the exit status. */
int sql_list(const struct cli_command *command, struct occ_store *store, const struct sql_list *list);

/* Its statement, which ends one row behind `number`, to be finalized; result column i is table[i]. */
int sql_prepare_list(struct occ_store *store, const struct sql_list *list,
                     struct sqlite3_stmt **ret_statement, struct occ_error *err);

struct sql_visitor {
    int (*row)(void *context, const void *row, struct occ_error *err); /* `row` is for the columns' getters */
    void *context;
};
/* Visits the rows of the list's statement; columns that are not selected are NULL. */
int sql_visit_list(struct occ_store *store, const struct sql_list *list, const struct sql_visitor *visitor,
                   struct occ_error *err);

/* Prints the rows of a statement that is ready: name, table, selection and number (0: all) of `list`; result
 * column i is table[i]. */
int sql_print(struct sqlite3_stmt *statement, const struct sql_list *list, struct sql_answer *ret_answer,
              struct occ_error *err);

/* The first integer that `sql` returns; 0: none. */
int64_t sql_number(struct sqlite3 *db, const char *sql);

/* As cli_nothing(): that the filter's run is not there, else `why`. */
int sql_no_launches(const struct cli_command *command, struct occ_store *store,
                    const struct occ_filter *filter, const char *why);

/* Where times matter, and neither a run nor a period is asked for: runs without known times are left out
 * beside those with, which a line on stderr reports. */
void sql_leave_unknown_times_out(const struct cli_command *command, struct occ_store *store,
                                 struct occ_filter *filter);

/* Runs of the filter and its period, which have any kernels, that lost launches or were not recorded all the
 * time; 0: none, or it cannot be read. */
struct sql_partial {
    int64_t runs, lost; /* lost: launches */
};
struct sql_partial sql_count_partial(struct occ_store *store, const struct occ_filter *filter);
/* One line on stderr when there are any. */
void sql_note_partial(const struct cli_command *command, struct occ_store *store,
                      const struct occ_filter *filter);

/* "x REGEXP pattern": POSIX extended regular expressions. */
int sql_add_regexp(struct sqlite3 *db, struct occ_error *err);
