/* Parts of the Nsight Systems reader: names.c and facts.c of nsys.c. Internal to import/. One thread. */
#ifndef OCC_IMPORT_NSYS_PARTS_H
#define OCC_IMPORT_NSYS_PARTS_H

#include "nsys_db.h"
#include "sink.h"

/* ---- names: table StringIds, with a cache ---- */

struct occ_nsys_names;

int occ_nsys_names_new(struct occ_nsys_db *d, struct occ_nsys_names **ret_names);
/* NULL is fine. */
void occ_nsys_names_free(struct occ_nsys_names *names);

/* The text of an id; valid until the next call. *ret_bytes 0: none, SIZE_MAX: too long for a name. */
int occ_nsys_names_find(struct occ_nsys_names *names, int64_t id, const char **ret_text, size_t *ret_bytes);

/* ---- facts about the recording ---- */

/* 1: CUDA graphs were recorded whole, without their kernels; 0: not; negative: damaged. */
int occ_nsys_has_whole_graphs(struct occ_nsys_db *d);

/* Fills version, host and times; program and rank where `process` (globalPid) is the only one, 0: not so.
 * Adds what the file lacks to missing_fields. */
int occ_nsys_facts_read(struct occ_nsys_db *d, int64_t process, struct occ_import_recording *recording);

/* Appends to missing_fields. */
void occ_nsys_add_missing(struct occ_import_recording *recording, const char *text);

#endif
