/*
 * Reads a history for the warehouse: minutes, merged over the ranks of each job, and the runs, kernels and
 * configurations they refer to. Reads the history's storage (schema/0001_history.sql) of this version and the
 * one before. One thread.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/measured.h"
#include "cluster/ask/body.h"
#include "cluster/ask/tables.h"
#include "cluster/ask/warehouse.h"
#include "support/error.h"
#include "support/map.h"
#include "user_forms.h"

struct occ_store;
struct occ_erased;

/* A launch configuration. Its id is a hash of its content. */
struct occ_outbox_config {
    uint64_t id;
    double warps;            /* maximum warps of the whole GPU; 0 if the model refuses the configuration */
    double expected_elapsed; /* low end of expected elapsed occupancy */
    int cause;               /* enum occ_cause, or OCC_CAUSE_COUNT: unknown */
    char gpu[40];            /* UUID of the GPU; zeros: unknown */
};

struct occ_outbox_run {
    int64_t id;
    uint64_t group; /* hash of job and user: rows with the same hash are merged */
    char *job;
    struct occ_user_texts users;
    uint64_t earlier_groups[OCC_USER_FORMS_MAX]; /* the group of each earlier text of the user */
    int64_t last_s;                              /* start of the last launch, or of the run */
    int64_t erased_before_s;                     /* see occ_erased_before_s() */
    struct occ_body added; /* the columns of OCC_SHIP_JOB_ADDED_COLUMNS in its job's rows */
    char uuid[40];
};

/* Ids whose rows were sent today and need not be sent again. */
struct occ_sent {
    struct occ_map ids;
    int64_t day;
};

/* Indices in the column evidence of the table minute. */
enum { OCC_EVIDENCE_SPREAD, OCC_EVIDENCE_SHIFT, OCC_EVIDENCE_ERROR, OCC_EVIDENCE_REST, OCC_EVIDENCE_COUNT };

/* The last sent measured values of a row, for any minute. */
struct occ_kept_values {
    double means[OCC_MEASURED_VALUE_COUNT], shares[OCC_MEASURED_VALUE_COUNT], evidence[OCC_EVIDENCE_COUNT];
};
struct occ_kept {
    struct occ_map index;
    struct occ_kept_values *values;
    size_t n, allocated;
};
void occ_kept_free(struct occ_kept *kept);

/* Jobs with raw launches: only minutes before until_s, at most max_launches per run and minute. jobs: ids as
 * in their rows, or Slurm's numbers; "": none. */
struct occ_raw_options {
    const char *jobs;
    int64_t until_s;
    uint64_t max_launches;
};
#define OCC_RAW_SEPARATORS ", "

/* The origin of the rows, and limits of a batch. */
struct occ_batch_options {
    const char *cluster, *node;
    uint64_t version;                 /* version of the rows */
    uint64_t max_configs;             /* maximum number per job and minute */
    int64_t first_change;             /* evicted minutes with a later number of change count as lost */
    bool has_evidence;                /* the warehouse's table `minute` has the column `evidence` */
    struct occ_warehouse_added added; /* the warehouse's added columns */
    int64_t newest_minute;            /* rows of this and earlier minutes may have been sent */
    /* minutes that ended less than OCC_CHANGES_WAIT_S before this time wait; 0: none waits */
    int64_t now_s;
    const struct occ_sent *sent;
    const struct occ_erased *erased;
    const struct occ_user_forms *users; /* forms of users in this history; NULL: names */
    struct occ_kept *kept;
    struct occ_raw_options raw;
};

struct occ_batch {
    struct occ_batch_options options;
    struct occ_body rows[OCC_SHIP_TABLE_COUNT];
    struct occ_map ids, runs, minutes; /* sets: ids, runs and minutes with rows in the batch */
    int64_t last_change;               /* last change in the batch; 0: none */
    int64_t newest_minute;
    uint64_t lost;            /* number of run minutes that were evicted */
    uint64_t unsent_launches; /* launches of jobs in `raw` beyond the limit or evicted */
    bool is_full;             /* further changes may follow */
};
void occ_batch_free(struct occ_batch *batch);

/* The run_id that now has the rows of the removed run `x`: of the stored run with its uuid, else of the last
 * removed run with its uuid. A process that offers its launches again gets a new run_id. NULL: the join found
 * no removed run `x`. */
#define OCC_OUTBOX_RUN_OF(x)                                                                                 \
    "coalesce((SELECT s.run_id FROM stored_run s WHERE s.uuid = " x ".uuid), (SELECT max(y.run_id) FROM "    \
    "stored_removed_run y WHERE y.uuid = " x ".uuid))"

struct occ_outbox {
    struct occ_store *store;
    sqlite3 *db;
    int64_t identity, first_minute, last_change;
    const struct occ_user_forms *users; /* forms of users in the batch that is read; NULL: names */
    sqlite3_stmt *read_changes, *read_config, *read_run, *read_minute, *read_run_row, *read_launches;
    struct occ_map config_index, run_index;
    struct occ_outbox_config *configs;
    struct occ_outbox_run *runs;
    size_t n_configs, allocated_configs, n_runs, allocated_runs;
};

int occ_outbox_open(const char *path, struct occ_outbox *ret_outbox, struct occ_error *err);
void occ_outbox_close(struct occ_outbox *outbox);

/* OCC_E_CORRUPT is an error of this history, also if another process locks it. Other errors are errors of the
 * state (user_forms.h), or OCC_E_NO_MEMORY. */

/* Reads changes after number `after`, at most up to `until`, in their order, until the batch is full or a
 * minute must wait. Free the batch with occ_batch_free(), also after an error. */
int occ_outbox_read(struct occ_outbox *outbox, int64_t after, int64_t until,
                    const struct occ_batch_options *options, struct occ_batch *ret_batch,
                    struct occ_error *err);

/* ---- outbox_ids.c: rows of kernels, configurations and runs, added to the batch on first use ---- */

/* Fails with SQLite's last error: OCC_E_CORRUPT or OCC_E_NO_MEMORY. */
int occ_outbox_fail(const struct occ_outbox *outbox, struct occ_error *err);
int occ_outbox_no_memory(struct occ_error *err);
/* Reads the number that a statement with these `n` parameters returns. */
int occ_outbox_number(struct occ_outbox *outbox, const char *sql, const int64_t *values, int n,
                      int64_t *ret_number, struct occ_error *err);
/* Makes the SQL functions shipped_user() and shipped_uid(), which statements on runs use. */
int occ_outbox_make_functions(struct occ_outbox *outbox, struct occ_error *err);
int occ_outbox_prepare_ids(struct occ_outbox *outbox, struct occ_error *err);
/* Find a configuration or a run of the history by its number; on first use add its rows to the batch. The
 * result is valid until the next call of the function. OCC_E_CORRUPT: it is missing. */
int occ_outbox_config(struct occ_outbox *outbox, struct occ_batch *batch, int64_t id,
                      const struct occ_outbox_config **ret_config, struct occ_error *err);
int occ_outbox_run(struct occ_outbox *outbox, struct occ_batch *batch, int64_t id,
                   const struct occ_outbox_run **ret_run, struct occ_error *err);
/* Returns true if the user's text in this earlier form differs from the present text, and may be in rows of
 * the minute. */
bool occ_outbox_is_earlier(const struct occ_outbox *outbox, const struct occ_outbox_run *run, size_t form,
                           int64_t minute);
/* Returns true if rows of the run's minute are erased in the warehouse, and must not be sent. */
bool occ_outbox_is_erased(const struct occ_outbox_run *run, int64_t minute);
/* Writes the first `n` added columns of a row of the run's job. */
void occ_outbox_put_added(struct occ_body *rows, const struct occ_outbox_run *run, unsigned int n);
/* Adds the configuration "(other)" for configurations with this main cause, on first use. Returns its id. */
uint64_t occ_batch_add_other(struct occ_batch *batch, int cause);

/* ---- outbox_measured.c ---- */

struct occ_measured_row {
    const struct occ_measured_sums *sums;
    uint64_t key; /* key of the row in struct occ_kept, for any minute */
    uint64_t total_ns;
    double expected_elapsed;
};
/* Adds sums; saturates counts. */
void occ_outbox_add_measured(struct occ_measured_sums *sums, const struct occ_measured_sums *more);
/* Reads sums from column `at` on; all are 0 if a number is impossible. */
void occ_outbox_read_measured(sqlite3_stmt *stmt, int at, struct occ_measured_sums *ret_sums);
/* Writes the columns sources, means and shares. */
void occ_outbox_put_measured(struct occ_body *rows, const struct occ_measured_row *row,
                             struct occ_kept *kept);
/* Writes the column evidence of the same row, after its measured values. */
void occ_outbox_put_evidence(struct occ_body *rows, const struct occ_measured_row *row,
                             struct occ_kept *kept);

/* ---- outbox_minutes.c ---- */

int occ_outbox_prepare_minutes(struct occ_outbox *outbox, struct occ_error *err);
/* Adds the rows of the minute: for each job, user and configuration, and for each run and GPU. */
int occ_outbox_add_minute(struct occ_outbox *outbox, struct occ_batch *batch, int64_t minute,
                          struct occ_error *err);

/* ---- outbox_launches.c ---- */

int occ_outbox_prepare_launches(struct occ_outbox *outbox, struct occ_error *err);
/* Adds the first launches of a run's minute, if the batch's options include its job. */
int occ_outbox_add_launches(struct occ_outbox *outbox, struct occ_batch *batch, int64_t minute, int64_t run,
                            struct occ_error *err);
