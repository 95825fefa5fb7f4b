/*
 * --node: commands about single launches run on the node that has these launches, by the command of the
 * settings (cluster.command). No shell runs here; arguments for the node's shell are quoted where needed. One
 * thread.
 */
#pragma once

#include "history.h"

#define CLI_OPTION_NODE                                                                                      \
    CLI_OPTION(0, "node", CLI_TEXT, struct history_args, node, "NAME",                                       \
               "ask this node of the cluster (cluster.command in occtrace.yaml)"),                           \
        CLI_OPTION(0, "cluster", CLI_TEXT, struct history_args, cluster, "URL",                              \
                   "with --node: its warehouse, which has no single launches")

/* For `check` of commands about single launches. */
int node_check(void *history_args, struct occ_error *err);

/* Keeps the arguments from the command's name on, as typed. Call before parsing. */
void node_keep_arguments(char **argv);

/* Runs this command on `node` with the kept arguments. Returns the exit status. */
int node_run(const struct cli_command *command, const char *node);
