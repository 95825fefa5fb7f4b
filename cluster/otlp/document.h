/*
 * A request of OTLP/HTTP with JSON: the sums, and the means since the last accepted request, as metrics.
 * Names and units: the semantic conventions for hardware (hw.*) and hosts (host.*, k8s.*), the metrics of
 * OpenTelemetry's eBPF instrumentation (gpu.cuda.*), and occtrace.* (docs/cluster.md). One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sums.h"

/* Attributes of every resource; "": unknown. */
struct occ_otlp_origin {
    const char *node, *cluster, *version;
    bool is_kubernetes; /* `node` is a node of Kubernetes */
};

/* The largest request: far above the bounds of the series, and an eighth of the specification's limit. */
#define OCC_OTLP_BODY_MAX (8u << 20)

/* Writes a document of the sums, with the time `until_ns` > 0; the caller frees *ret_text. OCC_E_FULL: longer
 * than OCC_OTLP_BODY_MAX. */
int occ_otlp_document(struct occ_sums *sums, const struct occ_otlp_origin *origin, int64_t until_ns,
                      char **ret_text, size_t *ret_n, struct occ_error *err);
