/* Histories of a bill with their runs, and the unit of its rows. One thread. */
#pragma once

#include "answer/bill.h"
#include "cli/history/history.h"
#include "support/arena.h"

/* Units of a row: SQL expressions of a run's key in a bill of one history, and of all owners' histories,
 * where ids of runs and names of pods may be equal. X(word, expression, expression among owners) */
#define TOP_COST_BY(X)                                                                                       \
    X("user", "user", "user")                                                                                \
    X("job", "coalesce(k8s_pod, slurm_job)",                                                                 \
      "coalesce(k8s_namespace || '/' || k8s_pod, k8s_pod, slurm_job)")                                       \
    X("account", "slurm_account", "slurm_account")                                                           \
    X("partition", "slurm_partition", "slurm_partition")                                                     \
    X("namespace", "k8s_namespace", "k8s_namespace")                                                         \
    X("label", "label", "label")                                                                             \
    X("node", "hostname", "hostname")                                                                        \
    X("run", "CAST(run_id AS TEXT)", ":owner || '/' || run_id")
/* Units inside of a run. X(word, enumerator) */
#define TOP_COST_INSIDE(X)                                                                                   \
    X("kernel", OCC_BILL_BY_KERNEL)                                                                          \
    X("layer", OCC_BILL_BY_LAYER)                                                                            \
    X("range", OCC_BILL_BY_RANGE)

extern const char *const top_cost_words[]; /* NULL-terminated */
/* Returns the kind of the unit, one of top_cost_words. */
enum occ_bill_by top_cost_unit(const char *word);

struct top_cost_runs {
    struct occ_bill_history *list; /* owns stores, runs and names of kernels */
    const char **owners;           /* of each; NULL: the bill is of one history */
    size_t n;
    struct occ_arena texts;
};

struct top_cost_choice {
    const char *by; /* one of top_cost_words */
    const struct occ_filter *filter;
    bool needs_epoch; /* bills only runs with times since 1970 */
};

/* Opens the history of `common` and reads its runs. */
int top_cost_open(const struct cli_args *common, const struct top_cost_choice *choice,
                  struct top_cost_runs *ret_runs, struct occ_error *err);
/* Opens all owners' histories, which outlive `ret_runs`. A history that the daemon has removed since is left
 * out; any other that cannot be opened is an error, since its runs would be missing in the shares of the
 * others. */
int top_cost_open_all(const struct cli_args *common, const struct cli_owners *owners,
                      const struct top_cost_choice *choice, struct top_cost_runs *ret_runs,
                      struct occ_error *err);
void top_cost_runs_free(struct top_cost_runs *runs);
/* Returns the kernel's name from the `names` of a history in the list, for struct occ_bill_question. */
const char *top_cost_kernel_name(const void *names, int64_t kernel);

/* Returns true if the history is of a service that has one for each owner. */
bool top_cost_has_neighbours(struct occ_store *store);
