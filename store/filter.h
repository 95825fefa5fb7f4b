/* The launches that a query covers, and the same as SQL conditions. No state; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Selects launches; zero-initialised selects all. */
struct occ_filter {
    int64_t since_ns, until_ns; /* since <= start < until; 0: open */
    int64_t run;                /* 0: any; OCC_RUN_LAST: the newest with launches */
    int64_t first_run;          /* only runs with this number and larger ones; 0: any */
    int64_t last_run;           /* only runs with this number and smaller ones; 0: any */
    /* of the run; NULL: any. label: * and ? are wildcards for any text and any character. job: Slurm's job or
     * the pod. account, partition: of the Slurm job */
    const char *session, *label, *user, *job, *rank, *account, *partition;
    const char *gpu; /* a device's number, or a part of its name; NULL: any */
    int64_t stream;  /* 0: any. Rollups have no streams, so evicted launches are not counted */
    const char
        /* path of a range, or a regular expression for paths; rollups have no ranges; NULL: any */
        *range_regex;
    bool graphs; /* only launches of CUDA graphs; rollups do not contain this either */
    /* a kernel name in any form that commands print, or a POSIX extended regular expression for the demangled
     * name; NULL: any */
    const char *kernel_regex;
    const char *kernel;        /* alternative: a number, or as kernel_regex; NULL: any */
    const char *exclude_regex; /* excluded kernels, as kernel_regex; NULL: none */
    /* only configurations whose achieved occupancy is below this ratio: the measured mean in the filter's
     * runs and time, otherwise the low end of the expected range; 0: any */
    double below_achieved;
};

#define OCC_RUN_LAST (-1)
/* The run of OCC_RUN_LAST in SQL: the newest run with launches, else the newest run. */
#define OCC_FILTER_RUN_LAST                                                                                  \
    "(SELECT coalesce(max(run_id) FILTER (WHERE launches > 0), max(run_id)) FROM stored_run)"

/* The filter's texts about runs as SQL conditions: X(member, text before, text after). GLOB also has sets in
 * brackets, but in a label only * and ? are wildcards: "[[]" matches "[". */
#define OCC_FILTER_RUN_TEXTS(X)                                                                              \
    X(session, "session_id = ", "")                                                                          \
    X(label, "label GLOB replace(", ", '[', '[[]')")                                                         \
    X(user, "user = ", "")                                                                                   \
    X(job, "", " IN (slurm_job, k8s_pod)")                                                                   \
    X(rank, "rank = ", "") X(account, "slurm_account = ", "") X(partition, "slurm_partition = ", "")
/* The conditions, with the texts as parameters; NULL matches any run. */
#define OCC_FILTER_RUN_TEXT(member, before, after)                                                           \
    " AND (:" #member " IS NULL OR " before ":" #member after ")"
#define OCC_FILTER_RUN_SPAN " AND run_id >= :first_run AND (:last_run = 0 OR run_id <= :last_run)"
/* The filter's runs, whatever their times, as a condition on stored_run or the view run. */
#define OCC_FILTER_RUNS                                                                                      \
    "(:run = 0 OR run_id = iif(:run < 0, " OCC_FILTER_RUN_LAST ", :run))" OCC_FILTER_RUN_SPAN                \
    OCC_FILTER_RUN_TEXTS(OCC_FILTER_RUN_TEXT)
/* The same for runs that may have launches in the filter's times; a condition on stored_run. */
#define OCC_FILTER_RUNS_IN_TIME                                                                              \
    "first_start_ns IS NOT NULL AND (:since <= 0 OR last_start_ns >= :since) AND (:until <= 0 OR "           \
    "first_start_ns < :until) AND (:since <= 0 AND :until <= 0 OR time_base IS NOT 'unknown') "              \
    "AND " OCC_FILTER_RUNS
#define OCC_FILTER_RUN_IDS "(SELECT run_id FROM stored_run WHERE " OCC_FILTER_RUNS_IN_TIME ")"
struct sqlite3_stmt;
/* Binds the parameters of these conditions, as far as the statement has them; texts are copied. */
void occ_filter_bind_runs(struct sqlite3_stmt *stmt, const struct occ_filter *filter);

/* Devices that match `gpu`, a text in SQL. Needs a table with device_id and the column of names. A part of a
 * name has no wildcards; ASCII case does not matter. */
#define OCC_FILTER_GPU(gpu, name)                                                                            \
    "iif(" gpu " GLOB '*[^0-9]*', instr(lower(" name "), lower(" gpu ")) > 0, "                              \
    "device_id = CAST(" gpu " AS INTEGER))"
