/*
 * The warehouse: a ClickHouse server, from 18.16 on, and its database. What it answers becomes one of two
 * kinds of errors: those that go away with time (OCC_E_IO, OCC_E_BUSY, OCC_E_NO_MEMORY), and those that a
 * person must mend (occ_warehouse_needs_help()). OCC_E_IO: no answer came; OCC_E_BUSY: it did not take what
 * was sent. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "http.h"

#define OCC_WAREHOUSE_SCHEMA 2

/* AUTO: by the server's version. OLD: before 21.11. */
enum occ_dialect { OCC_DIALECT_AUTO, OCC_DIALECT_OLD, OCC_DIALECT_NEW };

struct occ_warehouse_options {
    struct occ_http_options http;
    const char *section; /* of the settings that messages name: "ship" */
    const char *url_of;  /* what messages call the URL: "ship.url" */
    const char *database;
    const char *cluster, *node; /* of rows that are sent */
};

struct occ_warehouse {
    struct occ_warehouse_options options;
    struct occ_http *http;
    struct occ_http_answer answer; /* to the last request */
    enum occ_dialect dialect;      /* of the server, after occ_warehouse_meet() */
    char version[32];
    bool has_no_answer;      /* to the last request */
    bool has_evidence;       /* the table of minutes has the column; after occ_warehouse_check() */
    char unseen[512];        /* tables and views that the account may not see; after occ_warehouse_check() */
    int64_t clock_offset_ms; /* our clock minus the server's, to half a second */
};

/* The options' texts must outlive it. */
int occ_warehouse_open(const struct occ_warehouse_options *options, struct occ_warehouse **ret_warehouse,
                       struct occ_error *err);
void occ_warehouse_close(struct occ_warehouse *w);

/* Whether waiting alone does not help. */
bool occ_warehouse_needs_help(int code);

/* Posts the request whose query was added. */
int occ_warehouse_post(struct occ_warehouse *w, const char *data, size_t n, struct occ_error *err);
/* One statement; w->answer has what it gave. */
int occ_warehouse_ask(struct occ_warehouse *w, const char *sql, struct occ_error *err);
/* ClickHouse's exception in the answer; 0: none. */
int occ_warehouse_exception(const struct occ_warehouse *w);
/* One row of `n` numbers, which a statement gives. OCC_E_IO: the answer is another, or was cut. */
int occ_warehouse_ask_numbers(struct occ_warehouse *w, const char *sql, uint64_t *ret_numbers, int n,
                              struct occ_error *err);

/* 'text' as a literal of SQL. `size`: 3 bytes more than twice the text's; a longer text is cut. */
void occ_warehouse_quote(const char *text, char *out, size_t size);

/* Asks for version and clock. OCC_E_VERSION: too old, or no ClickHouse. */
int occ_warehouse_meet(struct occ_warehouse *w, struct occ_error *err);
/* For what the tables and views are needed; bits. */
enum { OCC_FOR_QUESTIONS = 1, OCC_FOR_SHIPPING = 2, OCC_FOR_MAINTENANCE = 4 };
/* Whether the database has our tables and views, as far as `needs` says, in this version. OCC_E_NOT_FOUND: it
 * has none; OCC_E_VERSION: of another version; OCC_E_INVALID: some are missing, or another program's. What
 * the account may not see is in w->unseen. */
int occ_warehouse_check(struct occ_warehouse *w, unsigned int needs, struct occ_error *err);
/* Which of their names the server lists, and which of these are not ours by their engine: bits, the lowest is
 * the table schema_version. */
int occ_warehouse_find_tables(struct occ_warehouse *w, uint64_t *ret_there, uint64_t *ret_others,
                              struct occ_error *err);
/* Fails since these are another program's. */
int occ_warehouse_fail_others(const struct occ_warehouse *w, uint64_t others, struct occ_error *err);
int occ_warehouse_schema_version(struct occ_warehouse *w, uint64_t *ret_version, struct occ_error *err);

/* The first line of a file that not every user may read. */
int occ_warehouse_read_secret(const char *path, char *secret, size_t size, struct occ_error *err);
