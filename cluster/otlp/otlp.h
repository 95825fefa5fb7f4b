/*
 * The node's metrics to an OTLP server, and profiles if wanted. A pass counts the changed minutes of all
 * histories (sums.h, stacks.h), then sends all series. A failure of the server changes nothing but the time
 * of the next request, with the same sums and later minutes. Profiles follow, also if the server refuses the
 * metrics, and have no influence on metrics: a request of profiles is repeated until an answer accepts or
 * refuses the request for good. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cluster/ask/http.h"
#include "document.h"

struct occ_otlp_settings {
    const char *url;     /* base of the server's URL */
    const char *history; /* path of the daemon's history, see struct occ_ship_settings */
    const char *state;   /* path of the file of sums (sums.h) */
    struct occ_otlp_origin origin;
    struct occ_http_options http; /* certificates and headers */
    bool has_profiles;            /* profiles, too */
};

struct occ_otlp;

/* Prepares the requests; opens no file. The settings' texts must outlive *ret_otlp. */
int occ_otlp_open(const struct occ_otlp_settings *settings, struct occ_otlp **ret_otlp,
                  struct occ_error *err);
void occ_otlp_close(struct occ_otlp *otlp);

/* Makes a pass. `all`: also counts minutes that have just ended, and returns a failure of profiles and of a
 * history that cannot be read; else such failures are only logged. */
int occ_otlp_pass(struct occ_otlp *otlp, bool all, struct occ_error *err);
/* Returns the seconds that the server asked us to wait for, in the last pass; 0: none. */
int64_t occ_otlp_retry_after_s(const struct occ_otlp *otlp);
/* Sends a request without metrics, and one without profiles: checks the server, the certificates and the
 * headers. Returns the first failure; the log has the result for profiles then. */
int occ_otlp_check(struct occ_otlp *otlp, struct occ_error *err);
