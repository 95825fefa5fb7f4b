/* Options of a daemon (daemon/server.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/histories/histories.h"
#include "metrics/tls.h"
#include "daemon/sampling/sampler.h"
#include "support/error.h"
#include "support/pseudonym.h"

struct occ_server_options {
    struct occ_histories_options histories; /* without sampler, context and the collector's functions */
    const char *socket_path;
    uint32_t socket_mode;
    int private_fd; /* descriptor of --private; -1: none */
    /* SIGHUP: returns the new limits, without the collectors' functions. NULL: the signal has no effect. */
    int (*reload)(void *context, struct occ_histories_limits *ret_limits, struct occ_error *err);
    void *context;      /* argument of reload */
    const char *config; /* file or directory of the settings; NULL: none */
    struct occ_sampler_options sampler;
    const char *http_socket; /* for metrics/http.h; NULL or "": none */
    const char *http_listen; /* address for support/address.h; NULL or "": none */
    size_t http_max_runs;
    const struct occ_pseudonym *users;   /* form of users in series; NULL: names */
    const char *http_tls[OCC_TLS_PARTS]; /* paths; NULL or "": none */
    bool is_covering;                    /* compares GPU processes with programs (daemon/coverage) */
    const char *nvml_path;               /* for daemon/coverage; NULL: libnvidia-ml.so.1 */
    int64_t coverage_interval_ns;        /* for daemon/coverage; 0: the default */
    const char *job_directory;           /* for support/gpu_jobs.h; NULL or "": none */
    const char *root;                    /* prefix of system paths, for tests; NULL: "" */
};
