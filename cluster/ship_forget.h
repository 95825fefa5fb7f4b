/* The options --erase and --retire of occtrace-ship. */
#pragma once

#include "cluster/ask/warehouse.h"
#include "options.h"

/* Erases the user of options->erase, or retires the node of options->retire, in the cluster that the options
 * or the settings name, and prints the result. Needs the administrator's account, and a warehouse after
 * occ_warehouse_meet(). */
int occ_ship_forget(const struct occ_ship_options *options, const struct occ_config *config,
                    struct occ_warehouse *w, struct occ_error *err);
