/*
 * HTTP to the warehouse or a collector, with libcurl: one server, one request at a time, the connection kept.
 * No redirects, no proxies; TLS, or only this machine; answers and times are limited. One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "support/error.h"

struct occ_http_options {
    const char *url;                            /* https, or http to this machine; without a query */
    const char *user, *password;                /* values of ClickHouse's headers; "": none */
    const char *ca_file, *cert_file, *key_file; /* "": the system's authorities; no client certificate */
    const char *content_type;                   /* NULL: application/octet-stream */
    const char *const *headers;                 /* more lines, up to a NULL; NULL: none */
    size_t max_answer_bytes;                    /* 0: 64 KiB */
    long timeout_s;                             /* longest time of a request; 0: 30 s */
};

/* All zero at first; the caller frees `text`. */
struct occ_http_answer {
    long status;
    char *text; /* the body, with a NUL */
    size_t n, allocated;
    int64_t retry_after_s; /* value of the header Retry-After, which may be a date; 0: none */
};

struct occ_http;

/* OCC_E_NOT_FOUND: libcurl, which is opened at run time, is missing. OCC_E_INVALID: the URL is neither https
 * nor http to 127.0.0.1, [::1] or localhost, or has a query, a fragment or a user. The options' texts must
 * outlive the connection. */
int occ_http_open(const struct occ_http_options *options, struct occ_http **ret_http, struct occ_error *err);
void occ_http_close(struct occ_http *http);

/* Sends another password from the next request on; the text is copied. */
int occ_http_set_password(struct occ_http *http, const char *password, struct occ_error *err);

/* Adds "name=value", with the value escaped, to the next request's query. */
int occ_http_add(struct occ_http *http, const char *name, const char *value, struct occ_error *err);
/* POSTs `n` bytes, compressed, with the query of occ_http_add(), which is empty afterwards. Returns 0 for
 * every complete answer, whatever its status. OCC_E_IO: no complete answer, or the answer is too long. */
int occ_http_post(struct occ_http *http, const char *data, size_t n, struct occ_http_answer *ret_answer,
                  struct occ_error *err);

/* Returns the compressed size of all bodies that an answer followed. */
uint64_t occ_http_sent_bytes(const struct occ_http *http);
