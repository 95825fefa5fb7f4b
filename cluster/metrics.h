/*
 * The shipper's own metrics, as a file for the textfile collector of Prometheus' node_exporter: it is there
 * also while the shipper is not, with the time of the last success in it. No state; any thread.
 */
#pragma once

#include "state.h"
#include "support/error.h"

/* Replaces the file at `path` ("": none), whole; readable by all: it names nobody. `node` is the label
 * hostname of every series. Needs to write its directory. */
int occ_ship_metrics_write(const char *path, const char *node, const struct occ_ship_counters *counters,
                           struct occ_error *err);
