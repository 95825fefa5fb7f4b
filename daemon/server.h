/* The daemon's life: one epoll loop over the listening socket, the connections, the processes behind them,
 * signals, and the timer of the collector's polls. */
#pragma once

#include "daemon/serve/server_options.h"
#include "support/error.h"

/*
 * Listens, serves until a signal or the private peer ends it, drains, commits and finishes the histories.
 * Returns 0 if everything was committed. Blocks SIGTERM, SIGINT, SIGHUP,
 * SIGUSR1 and SIGUSR2, ignores SIGPIPE.
 */
int occ_server_run(const struct occ_server_options *options, struct occ_error *err);
