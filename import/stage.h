/*
 * A recording until it was read whole: an unlinked temporary file (in TMPDIR, else /tmp) of records, written
 * once, then read once. One thread.
 */
#ifndef OCC_IMPORT_STAGE_H
#define OCC_IMPORT_STAGE_H

#include <stddef.h>
#include <stdint.h>

#include "support/error.h"

struct occ_stage;

enum occ_stage_kind { OCC_STAGE_KERNEL = 1, OCC_STAGE_CONFIG, OCC_STAGE_LAUNCH };

#define OCC_STAGE_RECORD_MAX (64u * 1024u)

int occ_stage_new(struct occ_stage **ret_stage, struct occ_error *err);
/* NULL is fine. */
void occ_stage_free(struct occ_stage *stage);

/* `size` at most OCC_STAGE_RECORD_MAX. */
int occ_stage_put(struct occ_stage *stage, enum occ_stage_kind kind, const void *data, size_t size,
                  struct occ_error *err);

/* To the first record, for reading. */
int occ_stage_rewind(struct occ_stage *stage, struct occ_error *err);

/* The next record, valid until the next call. *ret_size SIZE_MAX: no more. */
int occ_stage_next(struct occ_stage *stage, enum occ_stage_kind *ret_kind, const void **ret_data,
                   size_t *ret_size, struct occ_error *err);

#endif
