/*
 * --node: questions about single launches, which stay on their node, are asked there, by the command of the
 * settings (cluster.command). No shell here; the node's shell gets arguments in quotes where they need any.
 * One thread.
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

/* Before they are parsed: what follows the command. */
void node_keep_arguments(char **argv);

/* Runs that command; returns the exit status. */
int node_run(const struct cli_command *command, const char *node);
