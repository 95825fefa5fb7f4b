/* Kernels, launch configurations and runs of a history: their share of the quota, and the deletion of
 * unreferenced names (write/collect.c). Errors and threads as in store.h. */
#pragma once

#include "store/store.h"

/* Names that stay when launches are evicted, in the order of collection. */
enum occ_name { OCC_NAME_RUN, OCC_NAME_CONFIG, OCC_NAME_KERNEL, OCC_NAME_COUNT };

/* Sets kept[i] if ids[i] (ascending) is in use although the file does not show it. */
struct occ_name_keeper {
    void (*keep)(const void *context, enum occ_name name, const int64_t *ids, size_t n, bool *kept);
    const void *context;
};

/* True if about a thousand rows fit below the quota: a statement that finds the file full rolls back the
 * whole transaction. */
bool occ_store_has_room(struct occ_store *store);

/* Maximum number of bytes of kernels, launch configurations and runs, a share of the quota. Above it, a new
 * kernel or configuration fails with OCC_E_DENIED. */
uint64_t occ_store_names_share(const struct occ_store *store);
/* Deletes some unreferenced names. For the file's only writer, with no pending data. *ret_more: more names
 * are to be checked. */
int occ_store_collect_names(struct occ_store *store, const struct occ_name_keeper *keeper, bool *ret_more,
                            struct occ_error *err);
