/* --cluster: answers from the cluster's warehouse. One thread. */
#pragma once

#include "config/config.h"
#include "history.h"
#include "cluster/ask/remote.h"

#define CLI_OPTION_CLUSTER                                                                                   \
    CLI_OPTION(0, "cluster", CLI_TEXT, struct history_args, cluster, "URL",                                  \
               "ask the cluster's warehouse (default: $OCCTRACE_CLUSTER, without --db)")
#define CLI_OPTIONS_CLUSTER                                                                                  \
    CLI_OPTION_CLUSTER,                                                                                      \
        CLI_OPTION(0, "cluster-name", CLI_TEXT, struct history_args, cluster_name, "NAME",                   \
                   "with it: only this cluster; needed if the warehouse has rows of several"),               \
        CLI_OPTION(0, "node", CLI_TEXT, struct history_args, node, "NAME", "with it: only this node")

/* The data that a command needs from the warehouse. */
enum cluster_need { CLUSTER_SUMS, CLUSTER_HISTOGRAMS, CLUSTER_RUNS };

/* Returns the warehouse's URL; NULL: the command reads a history. */
const char *cluster_url(const struct history_args *args);

/* Checks the arguments (for `check`). Copies the filters to args->asked, and clears the filters that the
 * warehouse applies. OCC_E_INVALID: a filter that the warehouse cannot apply: streams, ranges, graphs, GPU
 * numbers, runs. `need`: the command's need. */
int cluster_check(struct history_args *args, enum cluster_need need, struct occ_error *err);

/* Reads the system's settings, then the user's, which override them. */
int cluster_settings(struct occ_config *ret_config, struct occ_error *err);

/* Connects with the account of the settings and checks the warehouse's tables. The settings live as long as
 * the process. */
int cluster_connect(const char *url, struct occ_warehouse **ret_warehouse, struct occ_error *err);
OCC_CLEANUP(occ_warehouse, occ_warehouse_close)

/* Begins an answer, whose completeness is not reported yet. For a process with more than one answer. */
void cluster_begin(void);

/* Reports how complete the answer is, once for each answer: a line on stderr, or the member "cluster" of
 * JSON. name: of the cluster; NULL: the answer is about all. */
int cluster_report(const struct cli_command *command, struct occ_warehouse *w, const char *name, bool in_json,
                   struct occ_error *err);

/* Asks the warehouse `question` with the arguments' filters. Returns the answer as a store in *ret_store. */
int cluster_ask(const struct cli_command *command, const struct history_args *args,
                struct occ_remote_question *question, struct occ_store **ret_store, struct occ_error *err);

/* Reads an answer about ranks: a row for each GPU. The warehouse has only time and waste of GPUs. */
int cluster_top_gpus(struct occ_store *store, struct occ_top *ret_top, struct occ_error *err);

/* Opens the store for the command: a history by cli_open_history(), or the warehouse's answer. */
int cluster_open(const struct cli_command *command, const struct history_args *args, enum cluster_need need,
                 enum occ_top_by by, struct occ_store **ret_store, struct occ_error *err);
