/*
 * Questions to the cluster's warehouse: what a question needs, added up by ClickHouse, becomes a history in
 * memory, over which the code of store/query answers as over any other. One thread.
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
 * What a question is about: launches; the table `run`; or a table of its own:
 *   rank  a run's launches on a GPU: run, gpu, node, rank, program, user, job, launches, busy_ns,
 *         wasted_warp_s, capacity_warp_s, first_ns, last_ns (to the minute)
 *   idle  runs that go on and launch nothing: the same, without launches and sums, with last_ns (NULL: never)
 *         and idle_ns, until when the node has sent its minutes; GPUs that are a job's without a run: what is
 *         known, and allocated_ns. Silent nodes have none.
 */
enum { OCC_REMOTE_BLOCKS = 20, OCC_REMOTE_SILENT_S = 900 };
enum occ_remote_kind { OCC_REMOTE_LAUNCHES, OCC_REMOTE_RUNS, OCC_REMOTE_RANKS, OCC_REMOTE_IDLE };

/* Bytes of a question's text: longer ones are refused, since a cut one would be another user, job or node. */
enum { OCC_REMOTE_TEXT_MAX = 1022 };

/* Zero-initialised means all of it. */
struct occ_remote_question {
    enum occ_remote_kind kind;
    int64_t since_ns, until_ns; /* minutes that begin in this time; 0: open */
    const char *job;            /* Slurm's, the pod, or the warehouse's own name of a job; NULL: any */
    const char *user, *node;    /* NULL: any */
    /* Of launches what is told apart: USER, JOB, NODE, or MINUTE: at most OCC_REMOTE_BLOCKS blocks of as many
     * minutes each, the oldest is run 1; else nothing. */
    enum occ_top_by by;
    bool histograms; /* of their durations */
    /* Of launches those of the kernels that this chooses (the keys of *ret_kernels) from a history that has
     * the kernels alone; NULL: of all. */
    int (*choose)(struct occ_store *kernels, const void *chooser, struct occ_map *ret_kernels,
                  struct occ_error *err);
    const void *chooser;
    int64_t run, max_runs; /* of runs this one, 0: any; the newest so many */
    int64_t idle_ns;       /* at least */
};

/* How much of the cluster has arrived. */
struct occ_remote_state {
    uint64_t nodes, silent;    /* silent: nothing for OCC_REMOTE_SILENT_S */
    uint64_t lost_minutes;     /* minutes of runs that a node evicted before they were sent */
    int64_t complete_until_ns; /* all nodes that are not silent have sent what is before */
    char silent_names[256];    /* as many as fit, joined by ", " */
    uint64_t left_out_rows;    /* rows that cannot be, which answers leave out, */
    char left_out[256];        /* and whose: "NODE ROWS, ...", as many as fit */
};

/* Fetches the rows that the question needs, and adds the rows that it leaves out to *state. *ret_store is
 * read by the caller's thread and closed with occ_store_close(). OCC_E_INVALID: a text is too long. */
int occ_remote_ask(struct occ_warehouse *w, const struct occ_remote_question *question,
                   struct occ_remote_state *state, struct occ_store **ret_store, struct occ_error *err);

int occ_remote_get_state(struct occ_warehouse *w, struct occ_remote_state *ret_state, struct occ_error *err);

/* Rows of a statement, as texts, in a temporary table of `db`. `names`: of the result columns, joined by
 * ", ". */
int occ_remote_fetch(struct occ_warehouse *w, struct sqlite3 *db, const char *table, const char *names,
                     const char *sql, struct occ_error *err);

/* What any statement that reads gives, in temp.rows. *ret_select: the statement that selects it by the names
 * of its columns; sqlite3_free() also after a failure. */
int occ_remote_select(struct occ_warehouse *w, struct sqlite3 *db, const char *sql, char **ret_select,
                      struct occ_error *err);
