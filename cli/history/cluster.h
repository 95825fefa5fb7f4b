/* --cluster: commands answer from the cluster's warehouse. One thread. */
#pragma once

#include "config/config.h"
#include "history.h"
#include "cluster/ask/remote.h"

#define CLI_OPTION_CLUSTER                                                                                   \
    CLI_OPTION(0, "cluster", CLI_TEXT, struct history_args, cluster, "URL",                                  \
               "ask the cluster's warehouse (default: $OCCTRACE_CLUSTER, without --db)")
#define CLI_OPTIONS_CLUSTER                                                                                  \
    CLI_OPTION_CLUSTER,                                                                                      \
        CLI_OPTION(0, "node", CLI_TEXT, struct history_args, node, "NAME", "with it: only this node")

/* What a command needs of the warehouse. */
enum cluster_need { CLUSTER_SUMS, CLUSTER_HISTOGRAMS, CLUSTER_RUNS };

/* The warehouse to ask; NULL: none, the command is about a history. */
const char *cluster_url(const struct history_args *args);

/* For `check`: OCC_E_INVALID, a filter that only launches or runs know. `need`: of the command. */
int cluster_check(struct history_args *args, enum cluster_need need, struct occ_error *err);

/* The system's settings, and the user's over them. */
int cluster_settings(struct occ_config *ret_config, struct occ_error *err);

/* Connects, with the settings' account, and looks at its tables. The settings live as long as the process. */
int cluster_connect(const char *url, struct occ_warehouse **ret_warehouse, struct occ_error *err);
OCC_CLEANUP(occ_warehouse, occ_warehouse_close)

/* How complete the answer is: a line on stderr, or the member "cluster" of JSON. */
int cluster_report(const struct cli_command *command, struct occ_warehouse *w, bool in_json,
                   struct occ_error *err);

/* What the warehouse answers to the question, which gets the arguments' filters. */
int cluster_ask(const struct cli_command *command, const struct history_args *args,
                struct occ_remote_question *question, struct occ_store **ret_store, struct occ_error *err);

/* Of an answer about ranks: a row for each GPU, of which the warehouse knows time and waste alone. */
int cluster_top_gpus(struct occ_store *store, struct occ_top *ret_top, struct occ_error *err);

/* The history to answer from: cli_open_history(), or what the warehouse has for it. */
int cluster_open(const struct cli_command *command, const struct history_args *args, enum cluster_need need,
                 enum occ_top_by by, struct occ_store **ret_store, struct occ_error *err);
