/*
 * Questions to the cluster's warehouse. ClickHouse adds up the rows that a question needs; the sums become a
 * history in memory, from which the code of store/query answers as from any other history. One thread.
 *
 * In that history a run stands for all runs of a job, user or node, with one hour that holds all its
 * launches: times of launches are known to the minute. Numbers of kernels and configurations are parts of
 * their ids in the warehouse: the same in every answer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"
#include "warehouse.h"

/*
 * The subject of a question: launches; the table `run`; or a table of its own:
 *   rank  a run's launches on a GPU: run, gpu, node, rank, program, user, job, launches, busy_ns,
 *         wasted_warp_s, capacity_warp_s, first_ns, last_ns (to the minute)
 *   idle  active runs without launches: the same columns, without launches and sums, with last_ns (NULL:
 *         never), lost (lost launches, at any time) and idle_ns, up to the last minute that the node sent;
 *         and GPUs that a job has without a run: the known columns, and allocated_ns. Silent nodes have no
 *         rows.
 */
enum { OCC_REMOTE_BLOCKS = 20, OCC_REMOTE_SILENT_S = 900 };
enum occ_remote_kind { OCC_REMOTE_LAUNCHES, OCC_REMOTE_RUNS, OCC_REMOTE_RANKS, OCC_REMOTE_IDLE };

/* Maximum bytes of a text in a question. Longer texts are refused, because a cut text would be another user,
 * job or node. */
enum { OCC_REMOTE_TEXT_MAX = 1022 };

/* Zero-initialised selects everything. */
struct occ_remote_question {
    enum occ_remote_kind kind;
    int64_t since_ns, until_ns; /* minutes that begin in this time; 0: open */
    const char *job;            /* Slurm's number, the pod, or the warehouse's own name of a job; NULL: any */
    const char *user, *node;    /* NULL: any */
    const char *cluster;        /* name from occ_remote_choose_cluster(); NULL: the warehouse has none */
    const char *account, *partition; /* texts of the Slurm job; NULL: any */
    /* Groups launches by USER, JOB, ACCOUNT, PARTITION, NODE, or MINUTE (at most OCC_REMOTE_BLOCKS blocks of
     * equally many minutes, the oldest is run 1); other values: one group. */
    enum occ_top_by by;
    bool histograms; /* also fetch histograms of the launches' durations */
    /* Selects the kernels of launches (the keys of *ret_kernels), from a history that has only kernels; NULL:
     * all. */
    int (*choose)(struct occ_store *kernels, const void *chooser, struct occ_map *ret_kernels,
                  struct occ_error *err);
    const void *chooser;
    /* OCC_REMOTE_RUNS: only this run, 0: any; and only the newest max_runs runs */
    int64_t run, max_runs;
    int64_t idle_ns; /* OCC_REMOTE_IDLE: minimum idle time */
};

/* State of the cluster's data in the warehouse. */
struct occ_remote_state {
    uint64_t nodes, silent;    /* silent: sent no rows for OCC_REMOTE_SILENT_S */
    uint64_t lost_minutes;     /* minutes of runs that a node evicted before sending */
    int64_t complete_until_ns; /* all nodes except silent nodes have sent earlier minutes */
    char silent_names[256];    /* as many names as fit, joined by ", " */
    uint64_t left_out_rows;    /* impossible rows, which answers exclude, */
    char left_out[256];        /* and their nodes: "NODE ROWS, ...", as many as fit */
};

/* Fetches the rows that the question needs, and adds the excluded rows to *state. *ret_store is for the
 * caller's thread and closed with occ_store_close(). OCC_E_INVALID: a text is too long. */
int occ_remote_ask(struct occ_warehouse *w, const struct occ_remote_question *question,
                   struct occ_remote_state *state, struct occ_store **ret_store, struct occ_error *err);

/* Chooses the cluster of an answer: `wanted`, or, if that is NULL, the only cluster with runs that the
 * account sees. Clusters are never added up: two of them may have nodes, jobs and users of the same name.
 * *ret_name: free with free(); NULL: the account sees no rows. OCC_E_USAGE: several clusters and none wanted,
 * or no cluster has the wanted name; the message lists the clusters. */
int occ_remote_choose_cluster(struct occ_warehouse *w, const char *wanted, char **ret_name,
                              struct occ_error *err);
/* Reads the state of a cluster's data; `cluster` NULL: of the data of all nodes of the warehouse. */
int occ_remote_get_state(struct occ_warehouse *w, const char *cluster, struct occ_remote_state *ret_state,
                         struct occ_error *err);

/* Fetches rows of a statement, as texts, into a temporary table of `db`. `names`: names of the result
 * columns, joined by ", ". */
int occ_remote_fetch(struct occ_warehouse *w, struct sqlite3 *db, const char *table, const char *names,
                     const char *sql, struct occ_error *err);

/* Runs any reading statement and puts its rows into temp.rows. *ret_select: a statement that selects the rows
 * with their original column names; free with sqlite3_free() also after a failure. */
int occ_remote_select(struct occ_warehouse *w, struct sqlite3 *db, const char *sql, char **ret_select,
                      struct occ_error *err);
