/*
 * The command line of occtrace-ship, and the settings for the warehouse. One thread (getopt).
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "config/config.h"
#include "insert.h"
#include "outbox.h"
#include "cluster/otlp/headers.h"
#include "cluster/otlp/otlp.h"
#include "support/node.h"
#include "support/pseudonym.h"

/* Texts point into argv; NULL: not given. */
struct occ_ship_options {
    const char *config, *dialect, *log_level, *otlp, *nodes, *passwords;
    const char *erase, *retire, *cluster_name, *user_hash;
    bool init, plan, print, accounts, check, once, status, maintain, help, version;
};

/* Parses the command line. OCC_E_INVALID: wrong usage; the message names the option. */
int occ_ship_options_parse(int argc, char **argv, struct occ_ship_options *ret_options,
                           struct occ_error *err);
void occ_ship_options_help(FILE *out);
/* Parses the value of --dialect. */
int occ_ship_dialect(const char *word, enum occ_dialect *ret_dialect, struct occ_error *err);

/* Texts that are not in the settings; the functions below set them. */
struct occ_ship_names {
    char node[OCC_NODE_NAME_BYTES], password[OCC_WAREHOUSE_PASSWORD_BYTES];
    char password_file[OCC_CONFIG_TEXT_BYTES + 64]; /* "": none */
    char otlp_state[OCC_CONFIG_TEXT_BYTES + 8];
    struct occ_otlp_headers headers;
};

/* Returns the path of the daemon's history; the text belongs to `config` or is static. */
const char *occ_ship_history_path(const struct occ_config *config);

/* Returns the path of the state file; the text belongs to `config` or is static. */
const char *occ_ship_state_path(const struct occ_config *config);

/* Sets the options of the warehouse from the settings; reads the password file. config and names must outlive
 * *ret_options. OCC_E_INVALID: ship.url is not set, or other users may read the password file. */
int occ_ship_warehouse(const struct occ_config *config, struct occ_ship_names *names,
                       struct occ_warehouse_options *ret_options, struct occ_error *err);

/* Sets the days of warehouse.*, rounded up. OCC_E_INVALID: warehouse.hours is shorter than another time. */
int occ_ship_keep(const struct occ_config *config, struct occ_warehouse_keep *ret_keep,
                  struct occ_error *err);

/* Sets the form of users in rows from ship.users; reads the key's file. */
int occ_ship_users(const struct occ_config *config, struct occ_pseudonym *ret_users, struct occ_error *err);

/* Sets names->otlp_state, the path of the sums for OpenTelemetry. */
void occ_ship_otlp_state(const struct occ_config *config, struct occ_ship_names *names);
/* Sets the options of the collector from the settings, except origin.version; reads the file of headers.
 * config and names must outlive *ret_settings. */
int occ_ship_otlp(const struct occ_config *config, struct occ_ship_names *names,
                  struct occ_otlp_settings *ret_settings, struct occ_error *err);

/* Reads ship.raw_jobs, ship.raw_until and ship.raw_launches; config must outlive *ret_raw. OCC_E_INVALID:
 * malformed job list or time. */
int occ_ship_raw(const struct occ_config *config, struct occ_raw_options *ret_raw, struct occ_error *err);
