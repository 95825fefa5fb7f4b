/* Shared by the files that make a history from the warehouse's answers; not for other files. One thread. */
#pragma once

#include <sqlite3.h>

#include "remote.h"
#include "tables.h"

/* maximum number of ids in a statement; for more, the statement repeats their query */
#define OCC_LOAD_LISTED_MAX 5000

struct occ_load {
    struct occ_warehouse *w;
    const struct occ_remote_question *question;
    struct occ_store *store;
    sqlite3 *db;
    struct occ_error *err;
    const char *table; /* minute or rank_minute: the table that the question's sums use */
    char *where;       /* condition on the table's rows */
    bool has_kernels;  /* the history has the kernels */
};

/* SQL condition: the node has not marked the row of the table run as removed. */
#define OCC_LOAD_IS_RUN "level != '" OCC_SHIP_REMOVED "'"

/* ", column" for each column of a list. */
#define OCC_LOAD_COMMA(column, ...) ", " #column

/* Fetches the rows of a formatted statement (sqlite3_mprintf) into a temporary table; frees the statement. */
int occ_load_fetch(const struct occ_load *l, const char *table, const char *names, char *sql);
/* Runs a formatted statement on the history; frees it. */
int occ_load_run(const struct occ_load *l, char *sql);
/* Returns the number that a statement on the history gives; -1: it failed. */
int64_t occ_load_number(const struct occ_load *l, const char *sql);
/* Appends BEFORE 'text' AFTER; nothing for NULL. */
void occ_load_append_text(sqlite3_str *sql, const char *before, const char *text, const char *after);
/* Appends the condition on the cluster, from AND on. */
void occ_load_append_cluster(const struct occ_load *l, sqlite3_str *sql);
/* Appends a condition on a job: Slurm's number, the pod, or the job's name in the warehouse. */
void occ_load_append_job(sqlite3_str *sql, const char *job);

/* Returns a condition on `run` for the runs of the question; the caller frees it. */
char *occ_load_runs_where(const struct occ_load *l);
/* Appends a condition on `bucket`: within the question's time. */
void occ_load_append_period(const struct occ_load *l, sqlite3_str *sql);

/* Fetches the table `parts`: the number of rows in each minute (`at`, in seconds) and part of the table. */
int occ_load_parts(const struct occ_load *l);

/* Sums over rows of the question; each row counts in its last version. */
struct occ_load_sums {
    const char *columns; /* columns of the rows */
    const char *sums;    /* expressions over the columns, with names */
    const char *names;   /* names of the sums, and "counted" */
    const char *keys;    /* columns of the grouping */
};

/* Fetches the sums into the table `sums`; call after occ_load_parts(). */
int occ_load_sums(const struct occ_load *l, const struct occ_load_sums *sums);

/* Returns "id, id, ...", the ids that `sql` selects. If there are too many: the statement `otherwise`, which
 * selects them too, or, if that is NULL, as many ids as possible. Frees `otherwise`; the caller frees the
 * result. */
char *occ_load_ids(const struct occ_load *l, const char *sql, char *otherwise);
/* Adds the rows (node, n) that a formatted statement selects to the rows that the answer excludes. */
int occ_load_leave_out(const struct occ_load *l, char *select);

/* hours.c. Adds the SQL function pack_histogram('([bins],[counts])') to the history; the function gives NULL
 * for any other text. */
int occ_load_pack_histograms(const struct occ_load *l);
/* Writes the table `sums` into the history: for each group a run, with an hour. */
int occ_load_put_hours(const struct occ_load *l);

/* launches.c, dimensions.c (kernels, devices and configurations of `sums`), runs.c, ranks.c */
int occ_load_launches(struct occ_load *l);
int occ_load_dimensions(const struct occ_load *l);
/* Loads the kernels that `ids` lists or selects; frees `ids`. */
int occ_load_kernels(const struct occ_load *l, char *ids);
int occ_load_runs(struct occ_load *l);
int occ_load_ranks(struct occ_load *l);
int occ_load_idle(struct occ_load *l);
