/*
 * The command line of occtrace-ship, and what its settings say. One thread (getopt).
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "config/config.h"
#include "insert.h"
#include "outbox.h"

/* Texts are argv's; NULL: not given. */
struct occ_ship_options {
    const char *config, *dialect, *log_level;
    bool init, print, accounts, check, once, status, maintain, help, version;
};

/* OCC_E_INVALID: the message names the option. */
int occ_ship_options_parse(int argc, char **argv, struct occ_ship_options *ret_options,
                           struct occ_error *err);
void occ_ship_options_help(FILE *out);
/* Of --dialect. */
int occ_ship_dialect(const char *word, enum occ_dialect *ret_dialect, struct occ_error *err);

/* Texts that the settings do not hold. */
struct occ_ship_names {
    char node[256], password[1024];
};

/* Where the state is. */
const char *occ_ship_state_path(const struct occ_config *config);

/* The warehouse of the settings; reads the password's file. Both must outlive *ret_options. OCC_E_INVALID:
 * ship.url is not set, or others may read that file. */
int occ_ship_warehouse(const struct occ_config *config, struct occ_ship_names *names,
                       struct occ_warehouse_options *ret_options, struct occ_error *err);

/* ship.raw_jobs and what goes with it, whose texts must outlive it. OCC_E_INVALID: something else than jobs,
 * or no moment. */
int occ_ship_raw(const struct occ_config *config, struct occ_raw_options *ret_raw, struct occ_error *err);
