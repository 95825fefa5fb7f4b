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
/* Reads the highest version of this node's rows in the warehouse; 0: none. OCC_E_INVALID: a version that no
 * shipper makes. */
int occ_warehouse_last_version(struct occ_warehouse *w, uint64_t *ret_version, struct occ_error *err);
/* Sends a row of the table batch that belongs to no batch, and reads it back. OCC_E_DENIED: the account may
 * not do one of these, so that no batch would ever be confirmed. */
int occ_warehouse_try_sending(struct occ_warehouse *w, struct occ_error *err);
/* Sets *ret_knows to true if the warehouse has runs of this node's history; then it may have any minute of
 * the history. */
int occ_warehouse_knows(struct occ_warehouse *w, int64_t history, bool *ret_knows, struct occ_error *err);
/* Sends the GPUs that are allocated to jobs, from the directory of support/gpu_jobs.h, without confirmation:
 * every pass sends them again. Allocations with the watermark's version are current. */
int occ_warehouse_put_allocations(struct occ_warehouse *w, const char *directory, uint64_t version,
                                  struct occ_error *err);
/* Sends the node's watermark: earlier minutes than `complete_until_s` (since 1970) are in the warehouse;
 * `lost` minutes were evicted before they were sent. Also w->clock_offset_ms. Without confirmation. */
int occ_warehouse_put_watermark(struct occ_warehouse *w, int64_t complete_until_s, uint64_t lost,
                                uint64_t version, struct occ_error *err);

/* Days that the warehouse keeps rows of the tables launch, minute and rank_minute; `hours`: of the others. */
struct occ_warehouse_keep {
    unsigned int launches, minutes, ranks, hours;
};
/* Changes of hours are kept so many days longer than minutes. */
#define OCC_WAREHOUSE_CHANGES_MORE_DAYS 30

/* ---- tables.c ---- */

/* Makes the database and missing tables, applies the migrations that the warehouse lacks, in their order, and
 * sets the times of `keep`. Another call may run at the same time. */
int occ_warehouse_init(struct occ_warehouse *w, const struct occ_warehouse_keep *keep, struct occ_error *err);
/* Returns false if a table lacks a column that this version sends, because its --init has not run yet. Call
 * it after occ_warehouse_check(). */
bool occ_warehouse_has_sent_columns(const struct occ_warehouse *w);
/* Prints the tables and the migrations that occ_warehouse_init() would make and apply, the times of rows that
 * it would set, and a last line that counts the migrations: SQL and comments. Changes nothing. */
int occ_warehouse_print_plan(struct occ_warehouse *w, const struct occ_warehouse_keep *keep, FILE *out,
                             struct occ_error *err);
/* Prints the statements of occ_warehouse_init() for an empty server. */
int occ_warehouse_print_schema(enum occ_dialect dialect, const char *database,
                               const struct occ_warehouse_keep *keep, FILE *out, struct occ_error *err);

/* ---- maintain.c ---- */

/* Removes again rows of erased users, adds up changed hours (*ret_hours: their number), and deletes old rows
 * if the server does not do so itself. now_s: seconds since 1970. */
int occ_warehouse_maintain(struct occ_warehouse *w, const struct occ_warehouse_keep *keep, int64_t now_s,
                           uint64_t *ret_hours, struct occ_error *err);
