/*
 * The webhook's HTTPS server, by libmicrohttpd: POST /mutate and POST /annotate take an AdmissionReview, GET
 * /healthz is for probes. Bodies, connections and the time of a request are limited. Certificate and key are
 * read again when their files change; requests that run keep the old certificate. One thread.
 */
#pragma once

#include <signal.h>
#include <stdint.h>

#include "admission.h"

#define OCC_WEBHOOK_BODY_BYTES ((size_t)4 << 20) /* Kubernetes' API server accepts objects of 3 MiB */

struct occ_webhook_options {
    const char *listen; /* "[ADDRESS]:PORT" of support/address.h */
    const char *certificate_file, *key_file;
    struct occ_admission_options admission; /* options of /mutate; forbids_host_paths is false */
    int64_t request_ns;                     /* longest time of a request */
};

struct occ_webhook;

/* Reads certificate and key, and listens. `options` must outlive the server. OCC_E_INVALID: wrong address,
 * certificate or key. */
int occ_webhook_open(const struct occ_webhook_options *options, struct occ_webhook **ret_webhook,
                     struct occ_error *err);
void occ_webhook_close(struct occ_webhook *webhook);
OCC_CLEANUP(occ_webhook, occ_webhook_close)

/* Returns the port that the server listens on. */
uint16_t occ_webhook_port(const struct occ_webhook *webhook);

/* Serves until *is_over; a signal handler may set it. `signals`: the mask while the server waits. */
void occ_webhook_serve(struct occ_webhook *webhook, const volatile sig_atomic_t *is_over,
                       const sigset_t *signals);
