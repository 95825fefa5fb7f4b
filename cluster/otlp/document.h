/*
 * A request of OTLP/HTTP with JSON: the sums, and the means since the last accepted request, as metrics.
 * Names and units: the semantic conventions for hardware (hw.*) and hosts (host.*, k8s.*), the metrics of
 * OpenTelemetry's eBPF instrumentation (gpu.cuda.*), and occtrace.* (docs/cluster.md). One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "busy.h"
#include "resource.h"
#include "sums.h"

/* The node's values that the sums do not have. */
struct occ_otlp_node {
    struct occ_otlp_origin origin;
    struct occ_busy busy;
};

/* Writes a document of the sums, with the time `until_ns` > 0; the caller frees *ret_text. OCC_E_FULL: longer
 * than OCC_OTLP_BODY_MAX. */
int occ_otlp_document(struct occ_sums *sums, const struct occ_otlp_node *node, int64_t until_ns,
                      char **ret_text, size_t *ret_n, struct occ_error *err);
