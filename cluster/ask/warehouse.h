/*
 * The warehouse: a ClickHouse server, from 18.16 on, and its database. Its answers become two kinds of
 * errors: temporary errors (OCC_E_IO, OCC_E_BUSY, OCC_E_FULL, OCC_E_NO_MEMORY), and errors that need a person
 * (occ_warehouse_needs_help()). OCC_E_IO: no complete answer of ClickHouse; OCC_E_BUSY: the server refused
 * the request for a reason that may pass. One thread.
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
    const char *cluster, *node; /* values of the columns cluster and node in sent rows */
    const char *password_file;  /* file of http.password, read again if the server refuses it; NULL: none */
};

/* For each table, the number of added columns that it has: the first of OCC_SHIP_RUN_ADDED_COLUMNS or
 * OCC_SHIP_JOB_ADDED_COLUMNS (tables.h). Fewer than all: --init of this version has not run yet. */
struct occ_warehouse_added {
    unsigned int run, launch, minute, hour;
};

#define OCC_WAREHOUSE_PASSWORD_BYTES 1024

struct occ_warehouse {
    struct occ_warehouse_options options;
    char password[OCC_WAREHOUSE_PASSWORD_BYTES]; /* the one that is sent */
    struct occ_http *http;
    struct occ_http_answer answer; /* answer to the last request */
    enum occ_dialect dialect;      /* dialect of the server, after occ_warehouse_meet() */
    char version[32];              /* version of the server, after occ_warehouse_meet() */
    bool has_no_answer;            /* the last request had no complete answer */
    /* set by occ_warehouse_check(): */
    bool has_evidence;           /* the table of minutes has the column evidence */
    bool has_erased, has_scopes; /* the tables of erased users and of readers' scopes are there */
    struct occ_warehouse_added added;
    char unseen[512];        /* names of tables and views that the account may not see, joined by ", " */
    int64_t clock_offset_ms; /* our clock minus the server's, to half a second */
};

/* Makes a client; sends nothing. The options' texts must outlive the warehouse. Errors of occ_http_open(). */
int occ_warehouse_open(const struct occ_warehouse_options *options, struct occ_warehouse **ret_warehouse,
                       struct occ_error *err);
void occ_warehouse_close(struct occ_warehouse *w);

/* Returns true if waiting alone does not remove the error. */
bool occ_warehouse_needs_help(int code);

/* Posts the request with the query that was added before. */
int occ_warehouse_post(struct occ_warehouse *w, const char *data, size_t n, struct occ_error *err);
/* Sends one statement; the result is in w->answer. */
int occ_warehouse_ask(struct occ_warehouse *w, const char *sql, struct occ_error *err);
/* Returns the number of ClickHouse's exception in the answer; 0: none. */
int occ_warehouse_exception(const struct occ_warehouse *w);
/* Sends a statement and reads its answer, one row of `n` numbers. OCC_E_IO: another answer, or a truncated
 * one. */
int occ_warehouse_ask_numbers(struct occ_warehouse *w, const char *sql, uint64_t *ret_numbers, int n,
                              struct occ_error *err);

/* Returns the length of the first `n` names in ", a, b, c". */
size_t occ_warehouse_names_length(const char *names, unsigned int n);

/* Writes the text as a literal of SQL. `size`: twice the text's length + 3; a longer text is cut. */
void occ_warehouse_quote(const char *text, char *out, size_t size);

/* Asks for version and clock, again if the server refuses the password and its file has another one.
 * OCC_E_VERSION: too old, or no ClickHouse. */
int occ_warehouse_meet(struct occ_warehouse *w, struct occ_error *err);
/* Purposes of the tables and views; bits. */
enum { OCC_FOR_QUESTIONS = 1, OCC_FOR_SHIPPING = 2, OCC_FOR_MAINTENANCE = 4 };
/* Checks the tables' version, and the tables and views for the purposes `needs`; then calls
 * occ_warehouse_find_columns(). OCC_E_NOT_FOUND: no tables; OCC_E_VERSION: another version; OCC_E_INVALID:
 * tables are missing, or are another program's. */
int occ_warehouse_check(struct occ_warehouse *w, unsigned int needs, struct occ_error *err);
/* Sets has_evidence, has_erased, has_scopes and added. */
int occ_warehouse_find_columns(struct occ_warehouse *w, struct occ_error *err);
/* Finds the names that the server lists, and the names whose engine is not ours, as bits; the lowest bit is
 * the table schema_version. */
int occ_warehouse_find_tables(struct occ_warehouse *w, uint64_t *ret_there, uint64_t *ret_others,
                              struct occ_error *err);
/* Returns true if `there` has the bits of all names. */
bool occ_warehouse_has_all(uint64_t there);
/* Writes the names without a bit, joined by ", ". */
void occ_warehouse_name_missing(uint64_t there, char *out, size_t size);
/* Fails because these tables are another program's. */
int occ_warehouse_fail_others(const struct occ_warehouse *w, uint64_t others, struct occ_error *err);
/* Reads the version of the tables. OCC_E_NOT_FOUND: there are no tables. */
int occ_warehouse_schema_version(struct occ_warehouse *w, uint64_t *ret_version, struct occ_error *err);

/* Reads the first `size` - 1 bytes of a file and adds a NUL. content: a word for messages ("password").
 * OCC_E_INVALID: the file's mode gives rights to all users. */
int occ_warehouse_read_private(const char *path, const char *content, char *text, size_t size, size_t *ret_n,
                               struct occ_error *err);
/* The same for the first line of a password file. */
int occ_warehouse_read_secret(const char *path, char *secret, size_t size, struct occ_error *err);
