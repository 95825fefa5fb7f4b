/* Shared by the files of store/; not for other directories. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/codec/bytes.h"
#include "store/codec/columns.h"
#include "support/map.h"
#include "store/names.h"
#include "sql.h"
#include "store.h"
#include "totals.h"
#include "write/series.h"

#define OCC_STORE_PAGE_BYTES 4096

#define SECOND_NS INT64_C(1000000000)
#define MINUTE_NS INT64_C(60000000000)
#define HOUR_NS   INT64_C(3600000000000)
/* 90 days: the warehouse keeps its rows of minutes for this time (schema/clickhouse/warehouse.sql). */
#define OCC_SENT_MINUTES INT64_C(129600)

/* Maximum length of stored text from other programs. */
#define OCC_STORE_TEXT_BYTES 4096

/* Launches of a run on a device that are not in the file yet, and the numbers of its level-0 chunks
 * (stored_chunk, not is_full) and of their rows. */
struct occ_pending_rows {
    int64_t device;
    struct occ_store_launch *rows;
    size_t n, allocated;
    struct occ_level0 {
        uint64_t chunks, rows;
    } level0, planned; /* committed; in the current transaction */
};

/* Values of occ_run_state.configs. */
enum { OCC_CONFIG_STORED, OCC_CONFIG_NEW };

/* A run that this handle writes. Totals include the file and pending launches. */
struct occ_run_state {
    int64_t id;
    uint64_t launches, gpu_ns;
    int64_t first_ns, last_ns;
    int64_t end_ns; /* pending until the commit, because an end means that all launches are stored; 0: none */
    int64_t rolled_ns;  /* the rollups contain exactly the launches that start earlier: as committed, */
    int64_t planned_ns; /* and in the current transaction */
    int64_t forced_ns;  /* chunks up to here will be evicted, so they are rolled up first */
    bool dirty, ending;
    bool stale; /* minutes must be loaded again */
    /* another handle writes this run: only rolled up to make room; dropped with the transaction */
    bool foreign;
    struct occ_pending_rows *pending;
    uint32_t n_pending;
    struct occ_totals_table
        /* key: minute << 32 | config; launches that are not in the rollups, including pending launches */
        minutes;
    /* configurations of launches -> whether stored_run_config has the configuration */
    struct occ_map configs;
    bool has_new_configs;
};

/* A total, or the position of a ring, that waits for the next commit; the last value of a key counts. */
struct occ_pending_total {
    enum occ_sql statement;
    int64_t run;
    uint8_t uuid[16];
    char word[64];
    int64_t value;
};

/* Working memory: about 16 MB where full chunks are written. Empty between calls. */
struct occ_workspace {
    unsigned int n_stores; /* number of stores that share it */
    struct occ_columns_encoder *encoder;
    struct occ_columns_decoder *decoder;
    struct occ_store_launch *rows; /* buffer for merging */
    size_t allocated;
};

struct occ_store {
    sqlite3 *db;
    char *path;
    struct occ_store_options options;
    sqlite3_stmt *statements[OCC_SQL_COUNT];
    struct occ_workspace *work;
    struct occ_run_state *runs;
    uint32_t n_runs;
    struct occ_pending_total *totals;
    size_t n_totals, totals_allocated;
    struct occ_pending_measured *measured;
    size_t n_measured, measured_allocated;
    struct occ_series series;
    struct occ_writer bytes;
    bool is_alone; /* no other connection may have the file open */
    bool bulk; /* true between occ_store_begin_bulk() and occ_store_end_bulk(), which make one transaction */
    bool has_no_file; /* from occ_store_open_later() until a file is opened */
    bool bulk_failed; /* the bulk transaction was rolled back: further writes fail */
    int64_t page_limit;
    int64_t collected[OCC_NAME_COUNT]; /* ids up to here were checked in this pass */
    dev_t log_dev;                     /* identity of the write-ahead log's file */
    ino_t log_ino;
    uint64_t evicted_chunks; /* since the store was opened */
    uint32_t shrink_steps;   /* since the store was opened */
};

/* sql.c: statements of OCC_SQL_STATEMENTS are prepared once. A statement is reset after its last row, so the
 * caller must step to the end. A statement that cannot be prepared is NULL: it can be bound, and fails when
 * stepped. */
/* Returns the statement, ready to be bound. */
struct occ_binder occ_store_statement(struct occ_store *s, enum occ_sql which);
/* Returns the statement with its `n` integer parameters bound (OCC_INTS). */
sqlite3_stmt *occ_store_query(struct occ_store *s, enum occ_sql which, const int64_t *values, int n);
/* Returns SQLite's result code. */
int occ_store_step(struct occ_store *s, sqlite3_stmt *stmt);
/* Resets a statement after its last step returned `step`; an error unless `step` is SQLITE_DONE. */
int occ_store_end(struct occ_store *s, sqlite3_stmt *stmt, int step, const char *what, struct occ_error *err);
/* Steps to the next row. False: *rc was not 0 before; there are no more rows (the statement is reset); or the
 * step failed (*rc is set). */
bool occ_store_next(struct occ_store *s, sqlite3_stmt *stmt, int *rc, struct occ_error *err);
/* Reads the first number of the only row. OCC_E_NOT_FOUND, without a message: no row. */
int occ_store_number(struct occ_store *s, sqlite3_stmt *stmt, int64_t *ret_number, struct occ_error *err);
/* Steps a writing statement to its end. */
int occ_store_run(struct occ_store *s, sqlite3_stmt *stmt, struct occ_error *err);
int occ_store_execute(struct occ_store *s, enum occ_sql which, const int64_t *values, int n,
                      struct occ_error *err);
/* Begins a write transaction. */
int occ_store_begin(struct occ_store *s, struct occ_error *err);
/* Ends the transaction: commits if `rc`, the result so far, is 0; otherwise rolls back. Returns the
 * result. */
int occ_store_conclude(struct occ_store *s, int rc, struct occ_error *err);
void occ_store_rollback(struct occ_store *s);
int occ_store_check_writable(const struct occ_store *s, struct occ_error *err);

/* store.c: opens `name` like sqlite3_open(), with our settings and tables. */
int occ_store_connect(struct occ_store *s, const char *name, int flags, struct occ_error *err);
void occ_store_disconnect(struct occ_store *s);

/* migrate.c */
/* Reads the version of the file, and checks that it is a history. Reads only. An empty file is version 0. */
int occ_store_file_version(struct occ_store *s, int64_t *ret_version, struct occ_error *err);
int occ_store_migrate(struct occ_store *s, struct occ_error *err);
/* Applies the migrations after a version. */
int occ_store_make_tables(struct occ_store *s, int64_t version, struct occ_error *err);

/* write/identity.c */
/* Steps a bound statement that adds a row and returns its id. If the file is full, makes room and tries once
 * more. */
int occ_store_insert(struct occ_store *s, sqlite3_stmt *stmt, int64_t *ret_id, struct occ_error *err);
int occ_store_device_limits(struct occ_store *s, int64_t device, struct occ_device *ret_limits,
                            struct occ_error *err);

/* write/runs.c: state of the runs that this handle writes, loaded when first needed */
int occ_store_run_state(struct occ_store *s, int64_t run, struct occ_run_state **ret, struct occ_error *err);
/* Reads the run's watermark again, and marks the totals stale if the watermark has moved: another writer may
 * have rolled up the run to make room. Call inside a transaction, before occ_run_write(). */
int occ_run_follow_watermark(struct occ_store *s, struct occ_run_state *r, struct occ_error *err);
/* Call inside a transaction: writes all pending data of a run. Call occ_run_written() after the commit. */
int occ_run_write(struct occ_store *s, struct occ_run_state *r, struct occ_error *err);
void occ_run_written(struct occ_run_state *r);
void occ_runs_forget(struct occ_store *s, bool (*drop)(const struct occ_run_state *r));
void occ_runs_forget_foreign(struct occ_store *s);

/* write/pending_totals.c. Call inside a transaction; the caller drops the pending totals after the commit. */
int occ_pending_totals_write(struct occ_store *s, struct occ_error *err);

/* write/pending_rows.c */
struct occ_pending_rows *occ_run_pending_rows(struct occ_run_state *r, int64_t device); /* NULL: no memory */
/* Adds all rows or, without memory, none. */
bool occ_pending_rows_add(struct occ_pending_rows *p, const struct occ_store_launch *rows, size_t n);
/* Call inside a transaction; call occ_pending_rows_written() after the commit. */
int occ_pending_rows_write(struct occ_store *s, const struct occ_run_state *r, struct occ_pending_rows *p,
                           struct occ_error *err);
/* Frees the rows of an abandoned run too. */
void occ_pending_rows_written(struct occ_pending_rows *p);
void occ_scratch_trim(struct occ_store *s);

/* write/chunk.c; call inside a transaction */
struct occ_chunk {
    int64_t run, device;
    const struct occ_store_launch *rows; /* sorted by start */
    uint32_t n;
    bool full;     /* false: a level-0 chunk */
    bool compress; /* always if full; a level-0 chunk only if merged from others */
};
int occ_chunk_add(struct occ_store *s, const struct occ_chunk *c, struct occ_error *err);

/* write/rollup.c */
/* Registers the SQL function that the rollups' statements use. SQLite's result code. */
int occ_rollup_register(sqlite3 *db);
int occ_rollup_add(struct occ_run_state *r, const struct occ_store_launch *rows, size_t n);
/* Adds up launches in the file that its rollups do not contain; call before the first write of a
 * transaction. */
int occ_rollup_load(struct occ_store *s, struct occ_run_state *r, struct occ_error *err);
/* True if launches that start before this whole minute are only in memory; then the next commit writes their
 * totals. */
bool occ_rollup_force(struct occ_run_state *r, int64_t before_ns);
/* Call inside a transaction; call occ_rollup_written() after the commit. */
int occ_rollup_write(struct occ_store *s, struct occ_run_state *r, struct occ_error *err);
void occ_rollup_written(struct occ_run_state *r);

/* write/pending_measured.c. Call inside a transaction; the caller drops the pending sums after the commit. */
int occ_measured_write(struct occ_store *s, struct occ_error *err);

/* write/series.c. Call inside a transaction; call occ_series_written() after the commit. */
int occ_series_write(struct occ_store *s, struct occ_error *err);
void occ_series_written(struct occ_series *q);
bool occ_series_is_pending(const struct occ_series *q);
void occ_series_free(struct occ_series *q);

/* write/collect.c. OCC_E_DENIED: a new kernel or configuration would exceed the share of names. */
int occ_names_check(struct occ_store *s, struct occ_error *err);

/* write/quota.c */
int occ_quota_open(struct occ_store *s, struct occ_error *err);
/* Call inside a transaction: evicts data, oldest first. `amount` is a multiple (1, 2, 4, ...) of the smallest
 * eviction. committing: chunks of runs that this handle writes may be evicted, too; their launches get into
 * the rollups in this transaction. *ret_some, false before, becomes true if data was evicted. */
int occ_quota_evict(struct occ_store *s, uint32_t amount, bool committing, bool *ret_some,
                    struct occ_error *err);
/* Evicts a small amount in a separate transaction, for a statement that failed because the file is full or
 * too large. OCC_E_FULL: the disk is full, or nothing is old enough. */
int occ_quota_make_room(struct occ_store *s, struct occ_error *err);
/* Call inside a transaction: evicts up to `max` chunks whose launches all start before `before_ns`. */
int occ_quota_evict_before(struct occ_store *s, int64_t before_ns, uint32_t max, uint32_t *ret_evicted,
                           struct occ_error *err);
/* The write-ahead log grows while another process reads; it counts to the quota, with some allowance.
 * OCC_E_FULL: the log is too large, and a reader prevents emptying it. */
int occ_quota_check_log(struct occ_store *s, struct occ_error *err);
/* Call when the file is full: empties the log and sets the maximum size of the file again. True: the maximum
 * grew. */
bool occ_quota_relieve(struct occ_store *s);
