/*
 * Writing to the warehouse: rows, and its tables. One thread.
 */
#pragma once

#include <stdio.h>

#include "cluster/ask/body.h"
#include "cluster/ask/warehouse.h"
#include "cluster/ask/tables.h"

/* Sends rows, all of the given version. 0: the server reports that it stored them. */
int occ_warehouse_insert(struct occ_warehouse *w, enum occ_ship_table table, const struct occ_body *rows,
                         uint64_t version, struct occ_error *err);
/* Checks the number of stored rows of a version. OCC_E_BUSY: the server stored fewer rows than were sent. */
int occ_warehouse_confirm(struct occ_warehouse *w, const struct occ_body rows[OCC_SHIP_TABLE_COUNT],
                          uint64_t version, struct occ_error *err);
/* The highest version of this node's rows in the warehouse; 0: none. */
int occ_warehouse_last_version(struct occ_warehouse *w, uint64_t *ret_version, struct occ_error *err);
/* *ret_knows is true if the warehouse has runs of this node's history; it may then have any minute of the
 * history. */
int occ_warehouse_knows(struct occ_warehouse *w, int64_t history, bool *ret_knows, struct occ_error *err);
/* Sends the GPUs allocated to jobs, from the directory of support/gpu_jobs.h, without confirmation: every
 * pass sends them again. Allocations with the watermark's version are current. */
int occ_warehouse_put_allocations(struct occ_warehouse *w, const char *directory, uint64_t version,
                                  struct occ_error *err);
int occ_warehouse_put_watermark(struct occ_warehouse *w, int64_t complete_until_s, uint64_t lost,
                                uint64_t version, struct occ_error *err);

/* Days that the warehouse keeps rows: of the tables launch, minute and rank_minute, and of all others. */
struct occ_warehouse_keep {
    unsigned int launches, minutes, ranks, hours;
};
/* Changes of hours are kept so many days longer than minutes. */
#define OCC_WAREHOUSE_CHANGES_MORE_DAYS 30

/* ---- tables.c ---- */

/* Makes missing tables and the database, applies the migrations that the warehouse lacks, in their order, and
 * `keep`; another call may run at the same time. */
int occ_warehouse_init(struct occ_warehouse *w, const struct occ_warehouse_keep *keep, struct occ_error *err);
/* False for tables without a column that this version sends, before its --init; after occ_warehouse_check().
 */
bool occ_warehouse_has_sent_columns(const struct occ_warehouse *w);
/* Prints the tables and the migrations that occ_warehouse_init() would make and apply, the times of rows that
 * it would set, and a last line that counts the migrations: SQL and comments. Changes nothing. */
int occ_warehouse_print_plan(struct occ_warehouse *w, const struct occ_warehouse_keep *keep, FILE *out,
                             struct occ_error *err);
/* Prints the statements of occ_warehouse_init() for an empty server. */
int occ_warehouse_print_schema(enum occ_dialect dialect, const char *database,
                               const struct occ_warehouse_keep *keep, FILE *out, struct occ_error *err);

/* ---- maintain.c ---- */

/* Adds up changed hours, and deletes old rows if the server does not do so itself. */
int occ_warehouse_maintain(struct occ_warehouse *w, const struct occ_warehouse_keep *keep, int64_t now_s,
                           uint64_t *ret_hours, struct occ_error *err);
