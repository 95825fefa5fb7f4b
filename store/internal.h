/*
 * What the store's files share. Nothing outside store/ includes this.
 */
#ifndef OCC_STORE_INTERNAL_H
#define OCC_STORE_INTERNAL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/codec/bytes.h"
#include "store/codec/columns.h"
#include "support/map.h"
#include "sql.h"
#include "store.h"
#include "totals.h"

#define SECOND_NS INT64_C(1000000000)
#define MINUTE_NS INT64_C(60000000000)
#define HOUR_NS   INT64_C(3600000000000)

/* Text from other programs: what we keep of it. */
#define OCC_STORE_TEXT_BYTES 4096

/* A packed chunk that waits for the next commit. */
struct occ_sealed {
    int64_t device;
    uint32_t n;
    int64_t first_ns, last_ns, end_ns;
    uint32_t min_correlation, max_correlation;
    uint8_t *data, *totals;
    size_t data_bytes, totals_bytes;
};

/* The launches of one run on one device that are in no full chunk, in this order: `dropped` launches in the file's level-0
 * chunks small_ids[0 .. n_small_dropped), rows[0 .. committed) in the level-0 chunks after those, and
 * rows[committed .. n), which are only here. Rows that are in the file are kept for merging while memory allows. */
struct occ_lane {
    int64_t device;
    struct occ_store_launch *rows;
    uint32_t n, capacity, committed, dropped;
    int64_t *small_ids;
    uint32_t n_small, small_capacity, n_small_dropped;
    uint32_t
        obsolete;    /* small_ids[0 .. obsolete) are covered by sealed chunks: deleted with the next commit */
    int64_t written; /* the last of n_written level-0 chunks of the transaction under way */
    uint32_t n_written;
    bool merged; /* and they replace all of small_ids */
};

/* A run that this handle writes. Totals and watermarks are those of the file plus what is pending. */
struct occ_run_state {
    int64_t id;
    uint64_t launches, gpu_ns;
    int64_t first_ns, last_ns;
    int64_t rolled_minute_ns, rolled_hour_ns; /* as committed */
    int64_t retired_ns;
    int64_t want_minute_ns, want_hour_ns; /* in the transaction under way */
    int64_t force_minute_ns;              /* chunks up to here go to make room: rolled up first */
    bool dirty, ending, stale;            /* stale: minutes and hours must be loaded again */
    bool
        foreign; /* not written by this handle: only rolled up to make room, forgotten with the transaction */
    struct occ_lane *lanes;
    uint32_t n_lanes;
    struct occ_totals_table
        minutes; /* bucket << 32 | configuration: launches not in rollup_minute, pending ones too */
    struct occ_totals_table hours; /* launches in rollup_minute, not in rollup_hour */
    struct occ_map configs;        /* seen: configuration -> 0 */
    uint32_t *new_configs;         /* of those, not in run_config yet */
    uint32_t n_new_configs, new_configs_capacity;
    struct occ_sealed *sealed;
    uint32_t n_sealed;
};

/* A total or a ring's position that waits for the next commit: the last value of a key counts. */
struct occ_pending_total {
    enum occ_sql statement;
    int64_t run;
    uint8_t uuid[16];
    char word[64];
    int64_t value;
};

#define OCC_DEVICES_KEPT 64u

struct occ_device_entry {
    int64_t id;
    struct occ_device limits;
};

struct occ_store {
    sqlite3 *db;
    char *path;
    struct occ_store_options options;
    sqlite3_stmt *statements[OCC_SQL_COUNT];
    sqlite3_stmt *add_kernel, *put_config;
    struct occ_columns_encoder *encoder;
    struct occ_columns_decoder *decoder;
    struct occ_run_state *runs;
    uint32_t n_runs;
    struct occ_pending_total *totals;
    uint32_t n_totals;
    struct occ_measured_pending *measured;
    uint32_t n_measured, measured_allocated;
    struct occ_series *series; /* made when first needed */
    struct occ_device_entry
        devices[OCC_DEVICES_KEPT];    /* those asked for last: programs may make up any number */
    uint32_t n_devices;               /* ever */
    struct occ_store_launch *scratch; /* for merging */
    uint32_t scratch_capacity;
    struct occ_writer bytes;
    bool bulk;        /* between occ_store_begin_bulk() and occ_store_end_bulk(): one transaction */
    bool bulk_failed; /* that transaction was rolled back: nothing more is written */
    int64_t page_limit;
};

/* sql.c */
int occ_store_statement(struct occ_store *s, enum occ_sql which, sqlite3_stmt **ret, struct occ_error *err);
/* Runs a bound statement that gives no rows, and resets it. */
int occ_store_run(struct occ_store *s, sqlite3_stmt *stmt, struct occ_error *err, const char *what);
/* Runs a statement without parameters. */
int occ_store_do(struct occ_store *s, enum occ_sql which, struct occ_error *err);
void occ_store_rollback(struct occ_store *s);
int occ_store_no_memory(struct occ_error *err);
/* Prepares a statement for one question; the caller finalises it. */
int occ_ask_prepare(struct occ_store *s, const char *sql, sqlite3_stmt **ret, struct occ_error *err);
/* After the last sqlite3_step(): finalises; 0 if that was SQLITE_DONE. */
int occ_ask_end(struct occ_store *s, sqlite3_stmt *stmt, int step, struct occ_error *err);

/* migrate.c */
int occ_store_migrate(struct occ_store *s, struct occ_error *err);

/* write/identity.c */
int occ_store_device_limits(struct occ_store *s, int64_t device, struct occ_device *ret_limits,
                            struct occ_error *err);

/* write/runs.c: state of the runs that this handle writes, loaded when first needed */
int occ_store_run_state(struct occ_store *s, int64_t run, struct occ_run_state **ret, struct occ_error *err);
void occ_run_state_free(struct occ_run_state *r);
/* Inside a transaction, before occ_run_write(): another writer may have rolled the run up to make room. */
int occ_run_follow_watermarks(struct occ_store *s, struct occ_run_state *r, struct occ_error *err);
/* Inside a transaction: everything of a run that is pending. occ_run_written() when it is committed. */
int occ_run_write(struct occ_store *s, struct occ_run_state *r, struct occ_error *err);
void occ_run_written(struct occ_run_state *r);
void occ_runs_forget(struct occ_store *s, bool (*drop)(const struct occ_run_state *r));
void occ_runs_forget_foreign(struct occ_store *s);

/* write/pending_totals.c: inside a transaction; what waits is dropped when it is committed */
int occ_pending_totals_write(struct occ_store *s, struct occ_error *err);

/* write/pending_rows.c: rows -> chunks */
struct occ_lane *occ_run_lane(struct occ_run_state *r,
                              int64_t device); /* made when missing; NULL: no memory */
bool occ_lane_add_small(struct occ_lane *lane, int64_t id);
/* Room for n more rows, and for as many as `most` in all to come. */
bool occ_lane_reserve(struct occ_lane *lane, uint32_t n, uint32_t most);
int occ_lane_seal(struct occ_store *s, struct occ_run_state *r, struct occ_lane *lane, struct occ_error *err);
/* Inside a transaction; occ_lane_written() when it is committed. */
int occ_lane_write(struct occ_store *s, struct occ_run_state *r, struct occ_lane *lane,
                   struct occ_error *err);
void occ_lane_written(struct occ_lane *lane);
void occ_lane_drop_rows(struct occ_lane *lane);
int occ_sealed_write(struct occ_store *s, struct occ_run_state *r, struct occ_error *err);
void occ_sealed_free(struct occ_run_state *r, uint32_t from);
/* write/sort.c: orders launches by start, stable; `scratch` holds as many */
void occ_launches_sort(struct occ_store_launch *rows, struct occ_store_launch *scratch, uint32_t n);
/* write/chunk.c: `n` launches, sorted by start, as bytes, which belong to the encoder until its next call. `compress` as
 * in occ_columns_encode(). Totals are those of each configuration. OCC_E_NO_MEMORY, OCC_E_INVALID. */
int occ_chunk_encode(struct occ_columns_encoder *encoder, const struct occ_store_launch *rows, uint32_t n,
                     bool compress, const uint8_t **ret_data, size_t *ret_bytes);
int occ_chunk_encode_totals(struct occ_columns_encoder *encoder, const struct occ_store_launch *rows,
                            uint32_t n, const uint8_t **ret_data, size_t *ret_bytes);

int occ_chunk_drop(struct occ_store *s, int64_t id, struct occ_error *err);

/* write/bulk.c: fails once a write of the bulk transaction has failed */
int occ_bulk_check(struct occ_store *s, struct occ_error *err);

/* write/rollup.c */
int occ_rollup_add(struct occ_run_state *r, const struct occ_store_launch *rows, size_t n);
/* Adds up from the file what its rollups do not hold; before anything of a transaction is written. */
int occ_rollup_load(struct occ_store *s, struct occ_run_state *r, struct occ_error *err);
/* Inside a transaction; occ_rollup_written() when it is committed. */
int occ_rollup_write(struct occ_store *s, struct occ_run_state *r, struct occ_error *err);
void occ_rollup_written(struct occ_run_state *r);

/* measured.c: inside a transaction; occ_measured_written() when it is committed */
int occ_measured_write(struct occ_store *s, struct occ_error *err);
void occ_measured_written(struct occ_store *s);

/* write/series.c: values of launches and samples of devices. Inside a transaction; occ_series_written() when it is committed. */
int occ_series_write(struct occ_store *s, struct occ_error *err);
void occ_series_written(struct occ_store *s);
bool occ_series_waits(const struct occ_store *s);
void occ_series_free(struct occ_store *s);

/* write/quota.c */
int occ_quota_open(struct occ_store *s, struct occ_error *err);
/* Inside a transaction: evicts about `share` times the smallest part of the history, oldest first. *ret_some: there
 * was something to evict. */
int occ_quota_evict(struct occ_store *s, uint32_t share, bool *ret_some, struct occ_error *err);
/* The same in a transaction of its own, for a statement that found the file full. */
int occ_quota_make_room(struct occ_store *s, struct occ_error *err);
/* The file is full: empties the log and sets anew how far the file may grow. true: further than before. */
bool occ_quota_relieve(struct occ_store *s);

#endif
