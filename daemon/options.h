/*
 * The command line of occtraced: one table for parsing, --help and the man page's check. One thread (getopt).
 */
#ifndef OCC_DAEMON_OPTIONS_H
#define OCC_DAEMON_OPTIONS_H

#include <stdio.h>

#include "support/error.h"

struct occ_options {
    const char *config;   /* NULL: the default file, if it is there and we are root */
    const char *database; /* NULL: the configuration's */
    const char *socket;
    const char *log_level;
    const char *counters;
    int private_fd;    /* -1: none */
    int help, version; /* asked for */
};

/* Strings stay argv's. OCC_E_INVALID: the message names the option. */
int occ_options_parse(int argc, char **argv, struct occ_options *ret_options, struct occ_error *err);
void occ_options_help(FILE *out);

#endif
