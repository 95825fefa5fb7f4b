/* The command line of a program, as a table: parsing and --help. Main thread only, because getopt_long()
 * keeps global state. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "error.h"

#define OCC_OPTIONS_MAX 32
/* Begins a further line of an option's help. */
#define OCC_OPTION_INDENT "\n                          "

struct occ_option {
    char letter; /* 0: none */
    const char *name;
    const char *argument; /* NULL: takes none */
    /* offset in the program's struct: of a const char *, or of a bool for an option without argument */
    size_t offset;
    const char *help;
};

/* Sets the member of each option on the command line; texts point into argv. The table has at most
 * OCC_OPTIONS_MAX rows. OCC_E_INVALID: an unknown option, a missing argument, or an argument of no option;
 * the message names it. */
int occ_options_read(const struct occ_option *options, size_t n, int argc, char **argv, void *values,
                     struct occ_error *err);
void occ_options_print(const struct occ_option *options, size_t n, FILE *out);
