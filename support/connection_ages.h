/*
 * Connections of a libmicrohttpd server and the age of their requests. The library limits silence only, so a
 * client that sends a byte now and then could hold a connection for ever: the server ends old requests.
 *
 * Times: CLOCK_MONOTONIC. One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* An entry of a connection. */
struct occ_connection_age {
    int fd;           /* owned by the library; -1: the entry is free */
    int64_t since_ns; /* start of the connection, or the last answer */
};

struct occ_connection_ages {
    struct occ_connection_age *entries; /* the caller's */
    size_t n;
};

/* Frees all entries. */
void occ_connection_ages_clear(struct occ_connection_ages ages);
/* Takes a free entry; NULL: there is none. The caller sets fd to -1 when the connection is closed. */
struct occ_connection_age *occ_connection_ages_add(struct occ_connection_ages ages, int fd, int64_t now_ns);
/* Shuts down each connection with a request of at least `limit_ns`; the library then closes its descriptor.
 * Returns the time until the next connection reaches the limit, in ms, at least 1; UINT64_MAX: no connection
 * is below the limit. */
uint64_t occ_connection_ages_end(struct occ_connection_ages ages, int64_t limit_ns, int64_t now_ns);
