/* Kernels, launch configurations and runs of a history: their share of the quota, and how those that nothing
 * refers to are deleted (write/collect.c). Errors and threads as in store.h. */
#pragma once

#include "store/store.h"

/* What stays when launches are evicted, in the order in which it is collected. */
enum occ_name { OCC_NAME_RUN, OCC_NAME_CONFIG, OCC_NAME_KERNEL, OCC_NAME_COUNT };

/* Sets kept[i] where ids[i] (ascending) is in use although the file does not show it. */
struct occ_name_keeper {
    void (*keep)(const void *context, enum occ_name name, const int64_t *ids, size_t n, bool *kept);
    const void *context;
};

/* Whether some thousand rows fit below the quota: a statement that finds the file full rolls back the whole
 * transaction. */
bool occ_store_has_room(struct occ_store *store);

/* How many bytes of the quota kernels, launch configurations and runs may take: above it, putting a new
 * kernel or configuration fails with OCC_E_DENIED. */
uint64_t occ_store_names_share(const struct occ_store *store);
/* A step of deleting those that nothing refers to, for the file's only writer; *ret_more: there are more to
 * look at. Nothing is pending. */
int occ_store_collect_names(struct occ_store *store, const struct occ_name_keeper *keeper, bool *ret_more,
                            struct occ_error *err);
