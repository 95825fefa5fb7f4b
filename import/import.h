/*
 * Imports recordings of other tools into the history: Nsight Systems' SQLite export, Nsight Compute's
 * reports, the output of ncu with and without --csv, and the Chrome-trace JSON of the PyTorch profiler
 * (Kineto); plain or compressed with gzip or zstd. The content decides the format.
 *
 * A recording becomes a run with the source's times. All or nothing: the history changes only after the whole
 * file was read without an error, in one transaction. Other writers wait for this transaction: about a second
 * for three million launches. Memory is bounded whatever the file's size. One thread.
 */
#pragma once

#include "sink.h"

struct occ_import_options {
    const char *label; /* kept with the run; NULL: none */
    const char *
        gpu; /* name from `occq calc --list`, for recordings that do not describe their devices; NULL: none */
    bool again; /* import the file even if the history has it already */
    /* Called from time to time while the file is read; NULL: no progress reports. */
    void (*progress)(void *context, uint64_t done, uint64_t total);
    /* Opens the history after the file was read, if the caller passes no store: a failure then leaves no new
     * history behind. */
    int (*open)(void *context, struct occ_store **ret_store, struct occ_error *err);
    void *context;
};

struct occ_import_result {
    int64_t run;            /* in the history */
    const char *source;     /* "nsys", "kineto", "ncu" */
    bool known;             /* the file was already imported, as `run`; only its label may have changed */
    bool relabelled;        /* the known run has another label now */
    bool repaired;          /* the file is not strict JSON (repair_json.c) */
    bool time_base_unknown; /* its times do not count from 1970 */
    uint64_t launches, kernels, configs, devices;
    uint64_t skipped[OCC_IMPORT_SKIP_COUNT];
};

/* `store` is open for writing; NULL: options->open() opens it. After a failure it may only be closed.
 * OCC_E_INVALID, OCC_E_CORRUPT: the file, with its name and the position in the message. */
int occ_import_file(struct occ_store *store, const char *path, const struct occ_import_options *options,
                    struct occ_import_result *ret_result, struct occ_error *err);
