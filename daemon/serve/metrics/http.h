/*
 * The daemon's HTTP server (libmicrohttpd, no thread): GET /metrics, /healthz, /readyz and /livez on a Unix
 * socket, at an address of the settings, and on the sockets that systemd passes (LISTEN_FDS). /livez answers
 * as long as the daemon's loop turns, /readyz as /healthz. A client of the Unix socket is trusted by file
 * access and may_see_names(), a TCP client by its certificate if the server has TLS; other clients get no
 * series with names of users, jobs or kernels.
 *
 * A socket that cannot be opened is logged, and the others are served. TCP sockets that are to have TLS wait
 * until its files can be used; they are tried every 10 s, and by occ_http_reload().
 *
 * Limits: 32 connections per socket, 8 per address at a TCP socket, 16 KiB of request, 10 s for a request
 * (from accept or the previous answer), 10 s of silence; the text of a page is cached for half a second.
 * Changed TLS files are read before the next connection is accepted; connections with the old certificate
 * have 10 s to end. One thread. Logs.
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
    const char *listen;                   /* address of a TCP socket for support/address.h; "": none */
    const char *tls_paths[OCC_TLS_PARTS]; /* for TCP; see tls.h */
    void (*write_metrics)(void *context, FILE *out, bool has_identity, bool is_openmetrics);
    /* false: not healthy. `out` gets the reasons, or "ok". */
    bool (*write_health)(void *context, FILE *out);
    /* true if the process at the other end of this Unix connection, made at since_ns, may get names; NULL:
     * always true. A connection has one request. */
    bool (*may_see_names)(void *context, int connection, int64_t since_ns);
    void *context;
    int64_t request_ns; /* time limit of a request; 0: 10 s */
    int64_t reload_ns;  /* interval of tries to use valid files after a failure; 0: 10 s */
};

/* *ret_http is NULL if there is no socket to listen at. Fails if none of the sockets can be opened. */
int occ_http_open(const struct occ_http_options *options, struct occ_http **ret_http, struct occ_error *err);
/* NULL is allowed. */
void occ_http_close(struct occ_http *http);

/* Reads the TLS files again, even if unchanged. Unusable files change nothing. No effect without TLS. */
void occ_http_reload(struct occ_http *http);
/* Earliest expiry of the certificates in this file, since the epoch; 0: none. */
int64_t occ_http_expiry_s(const struct occ_http *http, enum occ_tls_part part);

/* Readable when occ_http_serve() has work; the function never blocks. */
int occ_http_fd(const struct occ_http *http);
void occ_http_serve(struct occ_http *http);
