/*
 * What is written to the warehouse: rows, and its tables. One thread.
 */
#pragma once

#include <stdio.h>

#include "cluster/ask/body.h"
#include "cluster/ask/warehouse.h"
#include "cluster/ask/tables.h"

/* Sends rows: 0 when the server says that it has them. `version` is theirs. */
int occ_warehouse_insert(struct occ_warehouse *w, enum occ_ship_table table, const struct occ_body *rows,
                         uint64_t version, struct occ_error *err);
/* Whether it has at least as many rows of a version as were sent. OCC_E_BUSY: it has not. */
int occ_warehouse_confirm(struct occ_warehouse *w, const struct occ_body rows[OCC_SHIP_TABLE_COUNT],
                          uint64_t version, struct occ_error *err);
/* The highest version that it has of this node; 0: none. */
int occ_warehouse_last_version(struct occ_warehouse *w, uint64_t *ret_version, struct occ_error *err);
/* Whether it has runs of this node's history: then it may have any of its minutes. */
int occ_warehouse_knows(struct occ_warehouse *w, int64_t history, bool *ret_knows, struct occ_error *err);
/* GPUs that are jobs', by the directory of support/gpu_jobs.h. Not confirmed: the next pass sends them again.
 * Those with the watermark's version are so now. */
int occ_warehouse_put_allocations(struct occ_warehouse *w, const char *directory, uint64_t version,
                                  struct occ_error *err);
int occ_warehouse_put_watermark(struct occ_warehouse *w, int64_t complete_until_s, uint64_t lost,
                                uint64_t version, struct occ_error *err);

/* ---- tables.c ---- */

/* Makes the database and its tables, where they are missing. */
int occ_warehouse_init(struct occ_warehouse *w, struct occ_error *err);
/* The statements that do it. */
int occ_warehouse_print_schema(enum occ_dialect dialect, const char *database, FILE *out,
                               struct occ_error *err);
/* Roles and users: SQL, or for old servers XML. Names in capitals are to be replaced. */
void occ_warehouse_print_accounts(enum occ_dialect dialect, const char *database, FILE *out);

/* ---- maintain.c ---- */

/* Sums up hours whose minutes have changed, and drops partitions that are too old, where the server does not
 * by itself. */
int occ_warehouse_maintain(struct occ_warehouse *w, int64_t now_s, uint64_t *ret_hours,
                           struct occ_error *err);
