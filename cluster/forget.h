/*
 * Removing from the warehouse: the rows of a user, and nodes that are gone. A row of the table `erased` stays
 * for each erased user: shippers do not send the user's earlier rows again, and maintenance removes the rows
 * that were under way or come from a shipper that does not know the table. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cluster/ask/warehouse.h"

/* Deletes the rows that the condition selects, and waits until they are deleted. Adds their number, over all
 * versions, to *rows. */
int occ_warehouse_delete(struct occ_warehouse *w, const char *table, const char *condition, uint64_t *rows,
                         struct occ_error *err);
/* Removes all rows about the user's launches before the next minute, from the tables minute, rank_minute,
 * launch, hour and run. user: the text in the rows. *ret_rows: number of removed rows, over all versions.
 * Needs the administrator's account. */
int occ_warehouse_erase(struct occ_warehouse *w, const char *cluster, const char *user, uint64_t *ret_rows,
                        struct occ_error *err);
/* Sets *ret_has to true if one of these tables has a row of the user. */
int occ_warehouse_has_user(struct occ_warehouse *w, const char *cluster, const char *user, bool *ret_has,
                           struct occ_error *err);
/* Removes the node from the nodes that answers wait for: its watermark and the allocations of its GPUs. Its
 * minutes stay; a node that sends again is back. *ret_shared: another cluster has a node of that name, with
 * the same account. OCC_E_USAGE: the cluster has no such node. */
int occ_warehouse_retire(struct occ_warehouse *w, const char *cluster, const char *node, bool *ret_shared,
                         struct occ_error *err);
/* Removes rows of erased users that came since `done_s`, by the server's clock. Hours after `summed_s` can be
 * added up again, so the erased part of such an hour is removed, too. Does nothing without the table. */
int occ_warehouse_erase_again(struct occ_warehouse *w, uint64_t done_s, uint64_t summed_s,
                              struct occ_error *err);

/* ---- the shipper's part ---- */

struct sqlite3;
struct sqlite3_stmt;
/* The erased users of a cluster. Zero-initialised: none. */
struct occ_erased {
    struct sqlite3 *db;
    struct sqlite3_stmt *find;
};
/* Reads the erased users of w's cluster; none if the warehouse lacks the table or the account may not read
 * it. Frees the former content. */
int occ_erased_read(struct occ_warehouse *w, struct occ_erased *erased, struct occ_error *err);
void occ_erased_free(struct occ_erased *erased);
/* Returns the second since 1970 before which the user's rows are erased; 0: none are. erased NULL: none. */
int64_t occ_erased_before_s(const struct occ_erased *erased, const char *user);
