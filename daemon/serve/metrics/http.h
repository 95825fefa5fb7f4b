/*
 * The daemon's HTTP server (libmicrohttpd, no thread): GET /metrics and /healthz on a Unix socket, and on the
 * sockets that systemd passes (LISTEN_FDS). A client of the Unix socket is known by the access to it, one of
 * TCP by its certificate, where the server has one too; who is not known gets no series that name anybody.
 *
 * Bounded: 32 connections at each socket, 8 of one address at a TCP socket, 16 KiB of request, 10 s for a
 * request (from accept, or from the answer before it), 10 s of silence; the text of a page is at most half a
 * second old and shared by all that ask meanwhile. Files of TLS that have changed are read before the next
 * connection is accepted; connections with the old certificate have 10 s to end. One thread. Logs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "support/error.h"
#include "tls.h"

struct occ_http;

struct occ_http_options {
    const char *socket_path;              /* "": none */
    const char *tls_paths[OCC_TLS_PARTS]; /* of tls.h, for TCP */
    void (*write_metrics)(void *context, FILE *out, bool has_identity, bool is_openmetrics);
    /* false: not healthy. `out` gets the reasons, or "ok". */
    bool (*write_health)(void *context, FILE *out);
    void *context;
    int64_t request_ns; /* for a request; 0: 10 s */
    int64_t reload_ns;  /* between two tries of good files that could not be used; 0: 10 s */
};

/* *ret_http is NULL where there is nothing to listen at. */
int occ_http_open(const struct occ_http_options *options, struct occ_http **ret_http, struct occ_error *err);
/* NULL is fine. */
void occ_http_close(struct occ_http *http);

/* Reads the files of TLS anew, also such as have not changed. Files that cannot be used change nothing. */
void occ_http_reload(struct occ_http *http);
/* When the first certificate of this file expires, since the epoch; 0: there is none. */
int64_t occ_http_expiry_s(const struct occ_http *http, enum occ_tls_part part);

/* Readable when occ_http_serve() has something to do; it never waits. */
int occ_http_fd(const struct occ_http *http);
void occ_http_serve(struct occ_http *http);
