/* What the files share that make a history from the warehouse's answers. Nothing else includes this. One
 * thread. */
#ifndef OCC_STORE_REMOTE_LOAD_H
#define OCC_STORE_REMOTE_LOAD_H

#include <sqlite3.h>

#include "remote.h"
#include "tables.h"

struct occ_load {
    struct occ_warehouse *w;
    const struct occ_remote_question *question;
    sqlite3 *db;
    struct occ_error *err;
    char *where; /* condition on minutes */
};

/* ", column" for each of a list. */
#define OCC_LOAD_COMMA(column, ...) ", " #column

int occ_load_no_memory(struct occ_error *err);
/* Fetches what a formatted statement (sqlite3_mprintf) gives into a temporary table; frees it. */
int occ_load_fetch(const struct occ_load *l, const char *table, const char *names, char *sql);
/* Runs a formatted statement on the history; frees it. */
int occ_load_run(const struct occ_load *l, char *sql);
/* BEFORE 'text' AFTER; nothing for NULL. */
void occ_load_append_text(sqlite3_str *sql, const char *before, const char *text, const char *after);
/* A job by Slurm's number, its pod or the name that it has here. */
void occ_load_append_job(sqlite3_str *sql, const char *job);

/* Buckets in the question's time; of a table with `bucket`. */
void occ_load_append_period(const struct occ_load *l, sqlite3_str *sql);

/* launches.c, dimensions.c (what `sums` refer to), runs.c, ranks.c */
int occ_load_launches(struct occ_load *l);
int occ_load_dimensions(const struct occ_load *l);
int occ_load_runs(struct occ_load *l);
int occ_load_ranks(struct occ_load *l);
int occ_load_idle(struct occ_load *l);

#endif
