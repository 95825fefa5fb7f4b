/* An empty history as a file's bytes, packed by zstd at build time (gen_packed_history.c): SQLite takes
 * several milliseconds to make the tables and views, and a program under occtrace waits for them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define OCC_IDENTITY_BYTES 8

struct occ_packed_history {
    const unsigned char *packed;
    size_t packed_bytes, bytes;
    size_t identity_at; /* where the file has its 8 bytes of identity, which are random in each new file */
};

/* The history that this version makes. A program that writes histories names it in occ_store_options. */
extern const struct occ_packed_history occ_packed_history;

/* Creates the missing file `path`, synchronised, whole or not at all. Returns false if the file exists or
 * cannot be created in this way: then SQLite makes the tables. */
bool occ_packed_history_write(const struct occ_packed_history *history, const char *path);
