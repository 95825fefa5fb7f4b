/*
 * The text requests of support/control.h, the daemon's side: what a request asks for, and the answer's words. No
 * sockets here. One thread.
 */
#ifndef OCC_DAEMON_CONTROL_H
#define OCC_DAEMON_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector.h"
#include "sampler.h"
#include "support/error.h"

enum occ_request_kind {
    OCC_REQUEST_PING,
    OCC_REQUEST_FLUSH,
    OCC_REQUEST_STATUS,
    OCC_REQUEST_SAMPLER,
    OCC_REQUEST_PAUSE,
    OCC_REQUEST_RESUME,
};

struct occ_request {
    enum occ_request_kind kind;
    char session[33]; /* of flush */
    uint64_t number;  /* of sampler: which GPU; of pause: seconds */
};

/* OCC_E_INVALID: not a request; the message goes to the client. */
int occ_request_parse(const char *text, struct occ_request *ret_request, struct occ_error *err);

/* May a peer of user `uid` tell a daemon of user `own` what to do? */
bool occ_control_may_command(uint32_t uid, uint32_t own);

/* The answer to sampler, at most `size` bytes with its NUL. */
void occ_control_sampler(struct occ_sampler *sampler, uint64_t gpu, char *answer, size_t size);

/* What status says beside the collector's numbers. */
struct occ_control_facts {
    const char *database, *socket;
    int64_t uptime_ns;
    uint64_t refused; /* connections and handshakes */
    size_t clients;
};

/* The answer to status, at most `size` bytes with its NUL. */
void occ_control_status(const struct occ_collector *collector, const struct occ_control_facts *facts,
                        char *answer, size_t size);

#endif
