/*
 * HTTP to the warehouse, by libcurl: one server, one request at a time, the connection kept. No redirects, no
 * proxies, TLS or this machine; answers and times are limited. One thread.
 */
#ifndef OCC_CLUSTER_HTTP_H
#define OCC_CLUSTER_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "support/error.h"

#define OCC_HTTP_ANSWER_BYTES 65536

struct occ_http_options {
    const char *url;                            /* without a query; see occ_http_check_url() */
    const char *user, *password;                /* ClickHouse's headers; "": none */
    const char *ca_file, *cert_file, *key_file; /* ""; the system's authorities; no certificate of ours */
};

struct occ_http_answer {
    long status;
    char text[OCC_HTTP_ANSWER_BYTES]; /* the body, as far as it fits, with a NUL */
};

struct occ_http;

/* OCC_E_INVALID: neither https nor http to 127.0.0.1, [::1] or localhost; a query, a fragment or a user in
 * it. */
int occ_http_check_url(const char *url, struct occ_error *err);

/* The options' texts must outlive it. */
int occ_http_open(const struct occ_http_options *options, struct occ_http **ret_http, struct occ_error *err);
void occ_http_close(struct occ_http *http);

/* "name=value" with the value escaped, added to the next request's query. */
int occ_http_add(struct occ_http *http, const char *name, const char *value, struct occ_error *err);
/* POSTs `n` bytes, compressed. OCC_E_IO: no whole answer came. */
int occ_http_post(struct occ_http *http, const char *data, size_t n, struct occ_http_answer *ret_answer,
                  struct occ_error *err);

/* Bytes of bodies that were sent, compressed. */
uint64_t occ_http_sent_bytes(const struct occ_http *http);

#endif
