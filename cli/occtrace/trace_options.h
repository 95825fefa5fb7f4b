/* occtrace's table and its own arguments. */
#ifndef OCC_CLI_TRACE_OPTIONS_H
#define OCC_CLI_TRACE_OPTIONS_H

#include "cli/options.h"

extern const struct cli_command cli_occtrace;

struct trace_options {
    struct cli_args common;
    const char *socket, *label;
    const char *counters;         /* NULL: auto */
    const char *preload;          /* NULL: auto */
    const char *delay, *duration; /* NULL: none; checked */
    int64_t launches;             /* 0: all */
    bool exact;                   /* by --exact or --counters=exact */
    bool quiet;
};

/* Maximum length of a label; the guest accepts no longer one from its environment (injector/env.def). */
#define TRACE_LABEL_MAX_BYTES 255

#define TRACE_WINDOW_MAX_MS (365 * INT64_C(86400000))

/* A duration as the guest's variables have it. */
int trace_options_ms(const char *value, uint64_t *ret_ms, struct occ_error *err);

/* Parses; OCC_E_INVALID as cli_parse(). */
int trace_options_parse(char **argv, struct trace_options *options, struct occ_error *err);

#endif
