/* Sorts any number of equally sized records in bounded memory: records beyond the limit are kept, sorted, in
 * an unlinked temporary file and merged while reading. One thread. */
#pragma once

#include <stddef.h>

#include "support/error.h"

struct occ_sorter;

/* A comparison as for qsort(); records that compare equal come in any order. */
typedef int occ_sorter_compare(const void *left, const void *right);

/* `run`: number of records that are sorted in memory at a time. Takes no memory before the first record. */
int occ_sorter_new(size_t record_bytes, size_t run, occ_sorter_compare *compare,
                   struct occ_sorter **ret_sorter, struct occ_error *err);
/* NULL is fine. */
void occ_sorter_free(struct occ_sorter *sorter);

/* Not allowed after occ_sorter_next(). */
int occ_sorter_put(struct occ_sorter *sorter, const void *record, struct occ_error *err);

/* The next record, valid until the next call; NULL: no more. */
int occ_sorter_next(struct occ_sorter *sorter, const void **ret_record, struct occ_error *err);
