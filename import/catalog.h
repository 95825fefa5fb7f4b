/*
 * Numbers distinct keys in the order in which they come: 0, 1, ..., and keeps a record of fixed size for each
 * number. Memory is bounded: the first keys are in memory, later ones in a temporary SQLite database that has
 * no name (TMPDIR, else SQLite's default). Internal to import/. One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "support/error.h"

struct occ_catalog;

/* `in_memory`: keys that stay in memory. */
int occ_catalog_new(size_t record_bytes, uint32_t in_memory, struct occ_catalog **ret_catalog,
                    struct occ_error *err);
/* NULL is fine. */
void occ_catalog_free(struct occ_catalog *catalog);

/* A hash of 128 bits: two keys with the same hash are one key. */
struct occ_catalog_key {
    uint64_t low, high;
};

/* 1: the key is new, and its record is zero; 0: it has this number; OCC_E_FULL: no number is left. */
int occ_catalog_find(struct occ_catalog *catalog, struct occ_catalog_key key, uint32_t *ret_number,
                     struct occ_error *err);
uint32_t occ_catalog_count(const struct occ_catalog *catalog);

/* `number` < count. */
int occ_catalog_get(struct occ_catalog *catalog, uint32_t number, void *ret_record, struct occ_error *err);
int occ_catalog_set(struct occ_catalog *catalog, uint32_t number, const void *record, struct occ_error *err);
