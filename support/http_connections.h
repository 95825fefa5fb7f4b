/*
 * Connections of a libmicrohttpd server: their limits, and the age of their requests (connection_ages.h). The
 * program may load the library at run time: no function of the library is called but `get_info`. One thread.
 */
#pragma once

#include <microhttpd.h>
#include <stddef.h>
#include <stdint.h>

#include "connection_ages.h"

enum { OCC_HTTP_CONNECTIONS_MAX = 64, OCC_HTTP_OPTIONS = 7 };

struct occ_http_limits {
    unsigned connections;         /* at most OCC_HTTP_CONNECTIONS_MAX */
    unsigned per_address;         /* connections of one address; 0: no limit */
    unsigned silence_s;           /* longest time without a byte */
    size_t memory_bytes;          /* of a connection: its buffers, and the headers of a request */
    void (*release)(void *state); /* frees the state of a request that has ended; NULL: there is none */
};

struct occ_http_connections {
    struct occ_http_limits limits;
    __typeof__(MHD_get_connection_info) *get_info; /* MHD_get_connection_info() */
    struct occ_connection_age entries[OCC_HTTP_CONNECTIONS_MAX];
};

/* `options` becomes the argument of MHD_OPTION_ARRAY of a server without connections; it limits and watches
 * the connections. `connections` must outlive the server. */
void occ_http_connections_init(struct occ_http_connections *connections, const struct occ_http_limits *limits,
                               __typeof__(MHD_get_connection_info) *get_info,
                               struct MHD_OptionItem options[OCC_HTTP_OPTIONS]);

/* Ends the connections with a request of at least `limit_ns`, since the connection's start or the last
 * answer. Returns milliseconds as occ_connection_ages_end(). */
uint64_t occ_http_connections_end(struct occ_http_connections *connections, int64_t limit_ns);
