/*
 * The warehouse: a ClickHouse server, from 18.16 on, and its database. What it answers becomes one of two
 * kinds of errors: those that go away with time (OCC_E_IO, OCC_E_BUSY, OCC_E_NO_MEMORY), and those that a
 * person must mend (occ_warehouse_needs_help()). One thread.
 */
#ifndef OCC_CLUSTER_WAREHOUSE_H
#define OCC_CLUSTER_WAREHOUSE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "body.h"
#include "http.h"
#include "tables.h"

#define OCC_WAREHOUSE_SCHEMA 1

/* AUTO: by the server's version. OLD: before 21.11. */
enum occ_dialect { OCC_DIALECT_AUTO, OCC_DIALECT_OLD, OCC_DIALECT_NEW };

struct occ_warehouse_options {
    struct occ_http_options http;
    const char *database, *cluster, *node;
};

struct occ_warehouse {
    struct occ_warehouse_options options;
    struct occ_http *http;
    struct occ_http_answer answer; /* to the last request */
    enum occ_dialect dialect;      /* of the server, after occ_warehouse_meet() */
    char version[32];
    int64_t clock_offset_ms; /* our clock minus the server's, to half a second */
};

/* The options' texts must outlive it. */
int occ_warehouse_open(const struct occ_warehouse_options *options, struct occ_warehouse **ret_warehouse,
                       struct occ_error *err);
void occ_warehouse_close(struct occ_warehouse *w);

/* Whether waiting alone does not help. */
bool occ_warehouse_needs_help(int code);

/* One statement; w->answer has what it gave. */
int occ_warehouse_ask(struct occ_warehouse *w, const char *sql, struct occ_error *err);
/* The next number of an answer's row; 0 where there is none. */
uint64_t occ_warehouse_next_number(char **at);

/* Asks for version and clock. OCC_E_VERSION: too old, or no ClickHouse. */
int occ_warehouse_meet(struct occ_warehouse *w, struct occ_error *err);
/* Sends rows: 0 when the server says that it has them. `version` is theirs. */
int occ_warehouse_insert(struct occ_warehouse *w, enum occ_ship_table table, const struct occ_body *rows,
                         uint64_t version, struct occ_error *err);
/* Whether it has at least as many rows of a version as were sent. OCC_E_IO: it has not. */
int occ_warehouse_confirm(struct occ_warehouse *w, const struct occ_body rows[OCC_SHIP_TABLE_COUNT],
                          uint64_t version, struct occ_error *err);
/* The highest version that it has of this node; 0: none. */
int occ_warehouse_last_version(struct occ_warehouse *w, uint64_t *ret_version, struct occ_error *err);
int occ_warehouse_put_watermark(struct occ_warehouse *w, int64_t complete_until_s, uint64_t lost,
                                uint64_t version, struct occ_error *err);

/* ---- tables.c ---- */

/* Whether the database has our tables, in this version. OCC_E_NOT_FOUND: it has none; OCC_E_VERSION: of
 * another version; OCC_E_INVALID: those of another program. */
int occ_warehouse_check(struct occ_warehouse *w, struct occ_error *err);

/* Makes the database and its tables, where they are missing. */
int occ_warehouse_init(struct occ_warehouse *w, struct occ_error *err);
/* The statements that do it. */
int occ_warehouse_print_schema(enum occ_dialect dialect, const char *database, FILE *out,
                               struct occ_error *err);
/* Drops partitions that are too old, where the server does not by itself. */
int occ_warehouse_maintain(struct occ_warehouse *w, int64_t now_s, struct occ_error *err);

#endif
