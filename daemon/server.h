/* The daemon's life: one epoll loop over the listening socket, the connections, the processes behind them,
 * signals, and the timer of the collector's polls. */
#pragma once

#include "histories.h"
#include "metrics/tls.h"
#include "sampler.h"
#include "support/error.h"

struct occ_server_options {
    struct occ_histories_options histories; /* without sampler, context and the collector's functions */
    const char *socket_path;
    uint32_t socket_mode;
    int private_fd; /* of --private; -1: none */
    /* SIGHUP: what is to hold from now on, without the collectors' functions. NULL: ignored. */
    int (*reload)(void *context, struct occ_histories_limits *ret_limits, struct occ_error *err);
    void *context;      /* reload's */
    const char *config; /* file or directory that the settings are from; NULL: none */
    struct occ_sampler_options sampler;
    const char *http_socket; /* of metrics/http.h; NULL or "": none */
    size_t http_max_runs;
    const char *http_tls[OCC_TLS_PARTS]; /* paths; NULL or "": none */
    const char *job_directory;           /* of support/gpu_jobs.h; NULL or "": none */
    const char *root;                    /* before it, for tests; NULL: "" */
};

/*
 * Listens, serves until a signal or the private peer ends it, drains, commits and finishes the histories.
 * Returns 0 after an orderly end with everything committed. Blocks SIGTERM, SIGINT and SIGHUP, ignores
 * SIGPIPE.
 */
int occ_server_run(const struct occ_server_options *options, struct occ_error *err);
