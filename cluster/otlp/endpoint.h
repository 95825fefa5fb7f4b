/*
 * Requests to an OTLP server, by the rules of the protocol: no retry of a request that was accepted in part
 * or refused for good, a retry of other requests no earlier than the server says. One thread.
 */
#pragma once

#include <stdint.h>

#include "cluster/ask/http.h"

struct occ_otlp_endpoint;

enum occ_otlp_signal { OCC_OTLP_METRICS, OCC_OTLP_PROFILES };

/* `url`: the base of the server's URL; requests go to its path for the signal. OCC_E_INVALID: see
 * occ_http_open(). The options' texts must outlive the endpoint. */
int occ_otlp_endpoint_open(const char *url, enum occ_otlp_signal signal,
                           const struct occ_http_options *options, struct occ_otlp_endpoint **ret_endpoint,
                           struct occ_error *err);
void occ_otlp_endpoint_close(struct occ_otlp_endpoint *endpoint);

/* The result of a request. */
struct occ_otlp_outcome {
    long status;           /* HTTP status; 0: no answer */
    uint64_t rejected;     /* points or profiles that the server did not accept */
    uint64_t sent_bytes;   /* compressed size of the request's body */
    int64_t retry_after_s; /* 0: the server does not say */
};

/* Sends a document. 0: accepted; a server's warning is in err->message then, else "". OCC_E_IO, OCC_E_BUSY:
 * try again. OCC_E_DENIED, OCC_E_NOT_FOUND: a person has to repair the settings or the server. Any other
 * failure is final for this document. */
int occ_otlp_endpoint_send(struct occ_otlp_endpoint *endpoint, const char *document, size_t n,
                           struct occ_otlp_outcome *ret_outcome, struct occ_error *err);
