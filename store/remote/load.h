/* What the files share that make a history from the warehouse's answers. Nothing else includes this. One
 * thread. */
#pragma once

#include <sqlite3.h>

#include "remote.h"
#include "tables.h"

#define OCC_LOAD_LISTED_MAX 5000 /* ids that a statement lists; more of them are asked for again */

struct occ_load {
    struct occ_warehouse *w;
    const struct occ_remote_question *question;
    struct occ_store *store;
    sqlite3 *db;
    struct occ_error *err;
    const char *table; /* minute or rank_minute: what the question's sums are over, */
    char *where;       /* and the condition on its rows */
    bool has_kernels;  /* in the history */
};

/* A row of the table run is of a run that its node has not removed. */
#define OCC_LOAD_IS_RUN "level != '" OCC_SHIP_REMOVED "'"

/* ", column" for each of a list. */
#define OCC_LOAD_COMMA(column, ...) ", " #column

/* Fetches what a formatted statement (sqlite3_mprintf) gives into a temporary table; frees it. */
int occ_load_fetch(const struct occ_load *l, const char *table, const char *names, char *sql);
/* Runs a formatted statement on the history; frees it. */
int occ_load_run(const struct occ_load *l, char *sql);
/* The number that a statement on the history gives; -1: it fails. */
int64_t occ_load_number(const struct occ_load *l, const char *sql);
/* BEFORE 'text' AFTER; nothing for NULL. */
void occ_load_append_text(sqlite3_str *sql, const char *before, const char *text, const char *after);
/* A job by Slurm's number, its pod or the name that it has here. */
void occ_load_append_job(sqlite3_str *sql, const char *job);

/* Runs of the question: a condition on `run`, to be freed. */
char *occ_load_runs_where(const struct occ_load *l);
/* Buckets in the question's time; of a table with `bucket`. */
void occ_load_append_period(const struct occ_load *l, sqlite3_str *sql);

/* Fetches the table `parts`: in which minute (`at`, in seconds) and part of the table how many rows are. */
int occ_load_parts(const struct occ_load *l);

/* Sums over rows of the question, each in its last version. */
struct occ_load_sums {
    const char *columns; /* of the rows */
    const char *sums;    /* expressions over these, with names */
    const char *names;   /* of them, and "counted" */
    const char *keys;    /* what they are grouped by */
};

/* Fetches them into the table `sums`; after occ_load_parts(). */
int occ_load_sums(const struct occ_load *l, const struct occ_load_sums *sums);

/* "id, id, ..." of a column, or, where there are too many, the statement that selects them (which is freed);
 * without one as many as may be. To be freed. */
char *occ_load_ids(const struct occ_load *l, const char *sql, char *otherwise);
/* Adds (node, n) of what a formatted statement selects to the rows that the answer leaves out. */
int occ_load_leave_out(const struct occ_load *l, char *select);

/* launches.c, dimensions.c (what `sums` refer to), runs.c, ranks.c */
int occ_load_launches(struct occ_load *l);
int occ_load_dimensions(const struct occ_load *l);
/* Kernels, of those that `ids` lists or selects, which it frees. */
int occ_load_kernels(const struct occ_load *l, char *ids);
int occ_load_runs(struct occ_load *l);
int occ_load_ranks(struct occ_load *l);
int occ_load_idle(struct occ_load *l);
