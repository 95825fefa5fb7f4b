/* What the store's files share. Nothing outside store/ includes this. */
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
/* 90 days: the warehouse keeps its rows of minutes no longer (schema/clickhouse/warehouse.sql). */
#define OCC_SENT_MINUTES INT64_C(129600)

/* Text from other programs: what we keep of it. */
#define OCC_STORE_TEXT_BYTES 4096

/* Launches of one run on one device that are not in the file, and how much of it is in level-0 chunks
 * (stored_chunk, not is_full). */
struct occ_pending_rows {
    int64_t device;
    struct occ_store_launch *rows;
    size_t n, allocated;
    struct occ_level0 {
        uint64_t chunks, rows;
    } level0, planned; /* as committed; in the transaction under way */
};

/* Values of occ_run_state.configs. */
enum { OCC_CONFIG_STORED, OCC_CONFIG_NEW };

/* A run that this handle writes. Totals are those of the file plus what is pending. */
struct occ_run_state {
    int64_t id;
    uint64_t launches, gpu_ns;
    int64_t first_ns, last_ns;
    int64_t end_ns;     /* waits for the commit: an end means that all launches are there; 0: none */
    int64_t rolled_ns;  /* the rollups hold exactly the launches that start before: as committed, */
    int64_t planned_ns; /* and in the transaction under way */
    int64_t forced_ns;  /* chunks up to here are evicted: rolled up first */
    bool dirty, ending;
    bool stale;   /* minutes must be loaded again */
    bool foreign; /* written by another handle: only rolled up to make room, forgotten with the transaction */
    struct occ_pending_rows *pending;
    uint32_t n_pending;
    struct occ_totals_table
        minutes;            /* minute << 32 | config: launches not in the rollups, pending ones too */
    struct occ_map configs; /* launched: config -> whether stored_run_config has it */
    bool has_new_configs;
};

/* A total or a ring's position that waits for the next commit: the last value of a key counts. */
struct occ_pending_total {
    enum occ_sql statement;
    int64_t run;
    uint8_t uuid[16];
    char word[64];
    int64_t value;
};

/* Working memory, some 16 MB where full chunks are written. Holds nothing from one call to the next. */
struct occ_workspace {
    unsigned int n_stores; /* that share it */
    struct occ_columns_encoder *encoder;
    struct occ_columns_decoder *decoder;
    struct occ_store_launch *rows; /* for merging */
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
    bool is_alone;    /* no other connection may have the file open */
    bool bulk;        /* between occ_store_begin_bulk() and occ_store_end_bulk(): one transaction */
    bool has_no_file; /* of occ_store_open_later(), until one is opened */
    bool bulk_failed; /* that transaction was rolled back: nothing more is written */
    int64_t page_limit;
    int64_t collected[OCC_NAME_COUNT]; /* up to this id, in this pass */
    dev_t log_dev;                     /* which file the write-ahead log is */
    ino_t log_ino;
    uint64_t evicted_chunks; /* ever */
    uint32_t shrink_steps;   /* ever */
};

/* sql.c: statements of OCC_SQL_STATEMENTS are prepared once. They are reset after their last row, which
 * whoever steps them must reach. One that cannot be prepared is NULL: it may be bound, and fails when it is
 * stepped. */
/* Ready to be bound. */
struct occ_binder occ_store_statement(struct occ_store *s, enum occ_sql which);
/* With its `n` parameters, which are integers (OCC_INTS). */
sqlite3_stmt *occ_store_query(struct occ_store *s, enum occ_sql which, const int64_t *values, int n);
/* SQLite's result code. */
int occ_store_step(struct occ_store *s, sqlite3_stmt *stmt);
/* Resets a statement whose last step gave `step`, which is to be SQLITE_DONE. */
int occ_store_end(struct occ_store *s, sqlite3_stmt *stmt, int step, const char *what, struct occ_error *err);
/* Steps to the next row. false: *rc was not 0, or there is none (the statement is reset), or it failed (*rc
 * is set). */
bool occ_store_next(struct occ_store *s, sqlite3_stmt *stmt, int *rc, struct occ_error *err);
/* The first number of the only row; OCC_E_NOT_FOUND, without a message: there is none. */
int occ_store_number(struct occ_store *s, sqlite3_stmt *stmt, int64_t *ret_number, struct occ_error *err);
/* Steps a statement that writes to its end. */
int occ_store_run(struct occ_store *s, sqlite3_stmt *stmt, struct occ_error *err);
int occ_store_execute(struct occ_store *s, enum occ_sql which, const int64_t *values, int n,
                      struct occ_error *err);
/* A transaction that writes. */
int occ_store_begin(struct occ_store *s, struct occ_error *err);
/* Its end, with the result so far: commits it where that is 0, else rolls back. Returns the result. */
int occ_store_conclude(struct occ_store *s, int rc, struct occ_error *err);
void occ_store_rollback(struct occ_store *s);
int occ_store_check_writable(const struct occ_store *s, struct occ_error *err);

/* store.c: opens `name` as SQLite does, with our settings and tables. */
int occ_store_connect(struct occ_store *s, const char *name, int flags, struct occ_error *err);
void occ_store_disconnect(struct occ_store *s);

/* migrate.c */
/* Whose file is this, and of which version? Reads only. An empty file is version 0. */
int occ_store_file_version(struct occ_store *s, int64_t *ret_version, struct occ_error *err);
int occ_store_migrate(struct occ_store *s, struct occ_error *err);
/* The migrations that follow a version. */
int occ_store_make_tables(struct occ_store *s, int64_t version, struct occ_error *err);

/* write/identity.c */
/* Steps a bound statement that adds a row and returns its id; where the file is full, once more after making
 * room. */
int occ_store_insert(struct occ_store *s, sqlite3_stmt *stmt, int64_t *ret_id, struct occ_error *err);
int occ_store_device_limits(struct occ_store *s, int64_t device, struct occ_device *ret_limits,
                            struct occ_error *err);

/* write/runs.c: state of the runs that this handle writes, loaded when first needed */
int occ_store_run_state(struct occ_store *s, int64_t run, struct occ_run_state **ret, struct occ_error *err);
/* Inside a transaction, before occ_run_write(): another writer may have rolled up the run to make room. */
int occ_run_follow_watermark(struct occ_store *s, struct occ_run_state *r, struct occ_error *err);
/* Inside a transaction: everything of a run that is pending. occ_run_written() when it is committed. */
int occ_run_write(struct occ_store *s, struct occ_run_state *r, struct occ_error *err);
void occ_run_written(struct occ_run_state *r);
void occ_runs_forget(struct occ_store *s, bool (*drop)(const struct occ_run_state *r));
void occ_runs_forget_foreign(struct occ_store *s);

/* write/pending_totals.c: inside a transaction; what waits is dropped when it is committed */
int occ_pending_totals_write(struct occ_store *s, struct occ_error *err);

/* write/pending_rows.c */
struct occ_pending_rows *occ_run_pending_rows(struct occ_run_state *r, int64_t device); /* NULL: no memory */
/* All of them or, without memory, none. */
bool occ_pending_rows_add(struct occ_pending_rows *p, const struct occ_store_launch *rows, size_t n);
/* Inside a transaction; occ_pending_rows_written() when it is committed. */
int occ_pending_rows_write(struct occ_store *s, const struct occ_run_state *r, struct occ_pending_rows *p,
                           struct occ_error *err);
/* Also frees them when they are given up. */
void occ_pending_rows_written(struct occ_pending_rows *p);
void occ_scratch_trim(struct occ_store *s);

/* write/chunk.c, inside a transaction */
struct occ_chunk {
    int64_t run, device;
    const struct occ_store_launch *rows; /* sorted */
    uint32_t n;
    bool full, compress; /* level-0 chunks are compressed only where they stay small */
};
int occ_chunk_add(struct occ_store *s, const struct occ_chunk *c, struct occ_error *err);

/* write/rollup.c */
/* Gives the connection the SQL function that the rollups' statements use. SQLite's result code. */
int occ_rollup_register(sqlite3 *db);
int occ_rollup_add(struct occ_run_state *r, const struct occ_store_launch *rows, size_t n);
/* Adds up from the file what its rollups do not hold; before anything of a transaction is written. */
int occ_rollup_load(struct occ_store *s, struct occ_run_state *r, struct occ_error *err);
/* Whether launches that start before this whole minute are in memory only: the next commit writes them. */
bool occ_rollup_force(struct occ_run_state *r, int64_t before_ns);
/* Inside a transaction; occ_rollup_written() when it is committed. */
int occ_rollup_write(struct occ_store *s, struct occ_run_state *r, struct occ_error *err);
void occ_rollup_written(struct occ_run_state *r);

/* write/pending_measured.c: inside a transaction; what waits is dropped when it is committed */
int occ_measured_write(struct occ_store *s, struct occ_error *err);

/* write/series.c: inside a transaction; occ_series_written() when it is committed */
int occ_series_write(struct occ_store *s, struct occ_error *err);
void occ_series_written(struct occ_series *q);
bool occ_series_is_pending(const struct occ_series *q);
void occ_series_free(struct occ_series *q);

/* write/collect.c. OCC_E_DENIED: a new kernel or configuration would exceed the share of names. */
int occ_names_check(struct occ_store *s, struct occ_error *err);

/* write/quota.c */
int occ_quota_open(struct occ_store *s, struct occ_error *err);
/* Inside a transaction: evicts about `share` times the smallest part of the history, oldest first. *ret_some:
 * there was something to evict. */
int occ_quota_evict(struct occ_store *s, uint32_t share, bool committing, bool *ret_some,
                    struct occ_error *err);
/* The same in a transaction of its own, for a statement that found the file full, or too large. */
int occ_quota_make_room(struct occ_store *s, struct occ_error *err);
/* Inside a transaction: evicts `max` chunks whose launches all start before `before_ns`. */
int occ_quota_evict_before(struct occ_store *s, int64_t before_ns, uint32_t max, uint32_t *ret_evicted,
                           struct occ_error *err);
/* The log, which grows while somebody reads, counts to the quota, with some allowance. OCC_E_FULL: it
 * is too large, and a reader keeps it from being emptied. */
int occ_quota_check_log(struct occ_store *s, struct occ_error *err);
/* The file is full: empties the log and sets anew how far the file may grow. true: further than before. */
bool occ_quota_relieve(struct occ_store *s);
