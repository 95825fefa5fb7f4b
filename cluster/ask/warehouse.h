/*
 * The warehouse: a ClickHouse server, from 18.16 on, and its database. Its answers become two kinds of
 * errors: temporary errors (OCC_E_IO, OCC_E_BUSY, OCC_E_NO_MEMORY), and errors that need a person
 * (occ_warehouse_needs_help()). OCC_E_IO: no answer; OCC_E_BUSY: the server did not accept the data. One
 * thread.
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
    const char *section; /* section of the settings, for messages: "ship" */
    const char *url_of;  /* name of the URL's setting, for messages: "ship.url" */
    const char *database;
    const char *cluster, *node; /* values in sent rows */
};

/* For each table, the number of added columns that it has: the first of OCC_SHIP_RUN_ADDED_COLUMNS or
 * OCC_SHIP_JOB_ADDED_COLUMNS (tables.h). Fewer than all: --init of this version has not run yet. */
struct occ_warehouse_added {
    unsigned int run, launch, minute, hour;
};

struct occ_warehouse {
    struct occ_warehouse_options options;
    struct occ_http *http;
    struct occ_http_answer answer; /* answer to the last request */
    enum occ_dialect dialect;      /* dialect of the server, after occ_warehouse_meet() */
    char version[32];
    bool has_no_answer;          /* the last request had no answer */
    bool has_evidence;           /* the table of minutes has the column; after occ_warehouse_check() */
    bool has_erased, has_scopes; /* the tables of erased users and of readers' scopes are there; likewise */
    struct occ_warehouse_added added; /* likewise */
    char unseen[512];        /* tables and views that the account may not see; after occ_warehouse_check() */
    int64_t clock_offset_ms; /* our clock minus the server's, to half a second */
};

/* The options' texts must outlive the warehouse. */
int occ_warehouse_open(const struct occ_warehouse_options *options, struct occ_warehouse **ret_warehouse,
                       struct occ_error *err);
void occ_warehouse_close(struct occ_warehouse *w);

/* True if waiting alone does not remove the error. */
bool occ_warehouse_needs_help(int code);

/* Posts the request with the query that was added before. */
int occ_warehouse_post(struct occ_warehouse *w, const char *data, size_t n, struct occ_error *err);
/* Sends one statement; the result is in w->answer. */
int occ_warehouse_ask(struct occ_warehouse *w, const char *sql, struct occ_error *err);
/* ClickHouse's exception in the answer; 0: none. */
int occ_warehouse_exception(const struct occ_warehouse *w);
/* Reads one row of `n` numbers from a statement. OCC_E_IO: another answer, or a truncated one. */
int occ_warehouse_ask_numbers(struct occ_warehouse *w, const char *sql, uint64_t *ret_numbers, int n,
                              struct occ_error *err);

/* The length of the first `n` names of ", a, b, c". */
size_t occ_warehouse_names_length(const char *names, unsigned int n);

/* Writes 'text' as a literal of SQL. `size`: twice the text's length + 3; a longer text is cut. */
void occ_warehouse_quote(const char *text, char *out, size_t size);

/* Asks for version and clock. OCC_E_VERSION: too old, or no ClickHouse. */
int occ_warehouse_meet(struct occ_warehouse *w, struct occ_error *err);
/* Purposes of the tables and views; bits. */
enum { OCC_FOR_QUESTIONS = 1, OCC_FOR_SHIPPING = 2, OCC_FOR_MAINTENANCE = 4 };
/* Checks the tables and views for the purposes `needs`, and their version. OCC_E_NOT_FOUND: no tables;
 * OCC_E_VERSION: another version; OCC_E_INVALID: some are missing, or another program's. w->unseen gets the
 * names that the account may not see. */
int occ_warehouse_check(struct occ_warehouse *w, unsigned int needs, struct occ_error *err);
/* Sets w->has_evidence and w->added. */
int occ_warehouse_find_columns(struct occ_warehouse *w, struct occ_error *err);
/* Finds the names that the server lists, and the names whose engine is not ours, as bits; the lowest bit is
 * the table schema_version. */
int occ_warehouse_find_tables(struct occ_warehouse *w, uint64_t *ret_there, uint64_t *ret_others,
                              struct occ_error *err);
/* True if these bits are all names; the other function writes the names that are missing, with commas. */
bool occ_warehouse_has_all(uint64_t there);
void occ_warehouse_name_missing(uint64_t there, char *out, size_t size);
/* Fails because these tables are another program's. */
int occ_warehouse_fail_others(const struct occ_warehouse *w, uint64_t others, struct occ_error *err);
int occ_warehouse_schema_version(struct occ_warehouse *w, uint64_t *ret_version, struct occ_error *err);

/* Reads the first `size` - 1 bytes of a file that is not readable by every user, and adds a NUL. content:
 * a word for messages ("password"). */
int occ_warehouse_read_private(const char *path, const char *content, char *text, size_t size, size_t *ret_n,
                               struct occ_error *err);
/* Reads the first line of a file that not every user may read. */
int occ_warehouse_read_secret(const char *path, char *secret, size_t size, struct occ_error *err);
