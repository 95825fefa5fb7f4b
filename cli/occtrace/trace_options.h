/* The table of occtrace's options, and their values. */
#pragma once

#include "cli/options.h"

extern const struct cli_command cli_occtrace;

struct trace_options {
    struct cli_args common;
    const char *socket, *label;
    const char *counters;          /* NULL: auto */
    const char *preload;           /* NULL: auto */
    int64_t delay_ns, duration_ns; /* 0: none */
    int64_t launches;              /* 0: all */
    bool exact;                    /* by --exact or --counters=exact */
    bool nvtx;
    bool quiet;
};

/* Maximum length of a label; the guest accepts no longer label from its environment (injector/env.def). */
#define TRACE_LABEL_MAX_BYTES 255

/* Parses the command line. Returns OCC_E_INVALID like cli_parse(). */
int trace_options_parse(char **argv, struct trace_options *options, struct occ_error *err);
