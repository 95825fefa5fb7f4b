/* The user's settings of occq: $XDG_CONFIG_HOME/occtrace/occq.yaml, else ~/.config/occtrace/occq.yaml. They
 * stand for options that the command line omits.
 *
 *   history: /data/history.db     # --db, unless OCCTRACE_DB or a warehouse is chosen
 *   exclude: nccl                 # --exclude; a note names it
 *   columns:
 *     top: +launches,waves        # -o of a command, in text only
 *   prices:
 *     H100: 2.50 EUR              # of a GPU-hour, for GPUs with this text in their name (answer/bill.h)
 *
 * Unknown keys, keys given twice, aliases, a second document, relative paths and a file over
 * OCC_CONFIG_MAX_BYTES are errors. One thread. */
#pragma once

#include "answer/bill.h"
#include "cli/options.h"
#include "config/config.h"

enum { SETTINGS_COMMANDS_MAX = 16, SETTINGS_NAME_BYTES = 16 };

struct occq_settings {
    occ_config_text history, exclude; /* "": not set */
    struct occq_columns {
        char command[SETTINGS_NAME_BYTES];
        occ_config_text list;
    } columns[SETTINGS_COMMANDS_MAX];
    size_t n_columns;
    struct occ_prices prices;
};

/* Reads settings from text; `name` replaces the path in messages. Returns OCC_E_INVALID: "FILE:LINE:COLUMN:
 * MISTAKE". */
int settings_parse(const char *name, const char *text, size_t length, struct occq_settings *ret_settings,
                   struct occ_error *err);

/* Reads the user's file. A missing file gives no settings. */
int settings_load(struct occq_settings *ret_settings, struct occ_error *err);

/* Returns the arguments with an option for each setting that applies to `command` and that `argv` omits. The
 * array is malloc'ed; its texts are those of argv and of `settings`. NULL: no memory. */
char **settings_apply(struct occq_settings *settings, const struct cli_command *command, char *const *argv);
