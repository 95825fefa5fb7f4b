/* An empty history as a file's bytes without its long runs of zeros, made at build time
 * (gen_packed_history.c): SQLite takes several milliseconds to make the tables and views, and a program under
 * occtrace waits for them. The bytes are not compressed, since they are then written from where the program's
 * file is mapped: memory for the whole file costs more than the zeros save. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCC_IDENTITY_BYTES 8

/* A part of the file that is not zero. */
struct occ_packed_run {
    uint32_t at, bytes;
};

struct occ_packed_history {
    const unsigned char *packed; /* the bytes of all runs, one run after the other */
    const struct occ_packed_run *runs;
    size_t n_runs, bytes; /* bytes: of the file */
    size_t identity_at;   /* where the file has its 8 bytes of identity, which are random in each new file */
};

/* The history that this version makes. A program that writes histories names it in occ_store_options. */
extern const struct occ_packed_history occ_packed_history;

/* Creates the missing file `path`, synchronised, whole or not at all. Returns false if the file exists or
 * cannot be created in this way: then SQLite makes the tables. */
bool occ_packed_history_write(const struct occ_packed_history *history, const char *path);
