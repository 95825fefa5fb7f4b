/* The command line of a program by a table: parsing and --help. getopt_long() keeps state of its own, so: the
 * main thread. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "error.h"

#define OCC_OPTIONS_MAX 32
/* Begins another line of an option's help. */
#define OCC_OPTION_INDENT "\n                          "

struct occ_option {
    char letter; /* 0: none */
    const char *name;
    const char *argument; /* NULL: takes none */
    size_t offset; /* in the program's struct: of a const char *, or a bool where there is no argument */
    const char *help;
};

/* Sets what is given; texts are argv's. At most OCC_OPTIONS_MAX options, nothing beside them. OCC_E_INVALID:
 * the message names the option. */
int occ_options_read(const struct occ_option *options, size_t n, int argc, char **argv, void *values,
                     struct occ_error *err);
void occ_options_print(const struct occ_option *options, size_t n, FILE *out);
