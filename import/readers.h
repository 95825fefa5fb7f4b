/* The readers of recordings, from a file or from memory (tests and fuzzers), into the sink. Messages contain
 * the position (byte of the uncompressed JSON, row of the table); readers of files add the path. */
#pragma once

#include <stdio.h>

#include "sink.h"

struct sqlite3;

/* Chrome-trace JSON of the PyTorch profiler (Kineto), plain or gzip. */
int occ_import_read_kineto(const char *path, struct occ_import_sink *sink, struct occ_error *err);

struct occ_kineto_input {
    /* Reads at most `size` bytes; *ret_n 0: the end. */
    int (*read)(struct occ_kineto_input *input, unsigned char *data, size_t size, size_t *ret_n,
                struct occ_error *err);
    int (*rewind)(struct occ_kineto_input *input, struct occ_error *err);
    uint64_t done, total; /* for the progress bar */
};
int occ_kineto_read(struct occ_kineto_input *input, struct occ_import_sink *sink, struct occ_error *err);

/* An input that repairs invalid JSON from another input (repair_json.c), which must outlive it. Reads must
 * have at least 64 bytes. */
struct occ_repair {
    struct occ_kineto_input input; /* must be the first member */
    struct occ_kineto_input *from;
    enum { OCC_REPAIR_OUTSIDE, OCC_REPAIR_TEXT, OCC_REPAIR_ESCAPE } state;
    bool begun;
    char held[16]; /* undecided text: a word, or the beginning of an escape */
    size_t n_held;
    char *out;
    size_t n;
};
struct occ_repair occ_repair(struct occ_kineto_input *from);
/* Reads a file with repair, if occ_import_read_kineto() reports it as invalid. */
int occ_import_repair_kineto(const char *path, struct occ_import_sink *sink, struct occ_error *err);

/* SQLite export of Nsight Systems. */
int occ_import_read_nsys(const char *path, struct occ_import_sink *sink, struct occ_error *err);

/* `db` stays the caller's and is restricted to reading: no code of its schema runs. */
int occ_nsys_read(struct sqlite3 *db, struct occ_import_sink *sink, struct occ_error *err);

/* Nsight Compute: a report (.ncu-rep), and the output of ncu with and without --csv. `file` can seek and
 * stays the caller's. */
/* Checks only the beginning, so that a file that cannot be a report is refused before it is read. */
int occ_ncu_check_report(FILE *file, struct occ_error *err);
int occ_ncu_read_report(FILE *file, struct occ_import_sink *sink, struct occ_error *err);
/* OCC_E_CORRUPT: no result. */
int occ_ncu_read_print(FILE *file, struct occ_import_sink *sink, struct occ_error *err);
/* True if the file contains output of ncu, after at most 64 MiB of other output. */
bool occ_ncu_has_print(FILE *file);
