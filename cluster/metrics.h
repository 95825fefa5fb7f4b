/*
 * The shipper's own metrics, as a file for the textfile collector of Prometheus' node_exporter: the file,
 * with the time of the last success, remains while the shipper does not run. No state; any thread.
 */
#pragma once

#include "state.h"
#include "support/error.h"

/* Replaces the file at `path` ("": no file) atomically. All users may read it: its labels name no user or
 * job. `node` is the label hostname of every series. Needs write access to the directory. */
int occ_ship_metrics_write(const char *path, const char *node, const struct occ_ship_counters *counters,
                           struct occ_error *err);
