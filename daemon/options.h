/*
 * The command line of occtraced: one table for parsing, --help and the man page's check. One thread (getopt).
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "support/error.h"

/* Texts point into argv; NULL: not given. */
struct occ_options {
    const char *config, *database, *socket, *log_level, *counters;
    const char *probe;   /* root directory to examine; see probe.h */
    const char *migrate; /* a history or a directory of histories; see upgrade.h */
    const char *private; /* text of the descriptor's number */
    int private_fd;      /* descriptor's number; -1: not given */
    bool status, alive, json, verbose, backup, foreground, check_config, print_config, help, version;
};

/* OCC_E_INVALID: the message names the option. */
int occ_options_parse(int argc, char **argv, struct occ_options *ret_options, struct occ_error *err);
void occ_options_help(FILE *out);
