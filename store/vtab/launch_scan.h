/*
 * A scan of the virtual table `launch`: its conditions, a cache of launch configurations, and the open
 * chunks. The file is untrusted: the codec checks its bytes, all other values are only compared and copied.
 * All functions return SQLite codes; the table has an error's message. Threads: the connection's. Compiled
 * twice: see vtab.h.
 */
#pragma once

#include "store/codec/columns.h"
#include "store/sql_nouns.h"
#include "support/map.h"
#include "vtab.h"

/* Integer columns with conditions that narrow a scan. X(NAME, letter of the plan, true if rows are tested) */
#define OCC_LAUNCH_KEYS(X)                                                                                   \
    X(START, 't', false)                                                                                     \
    X(RUN, 'r', false)                                                                                       \
    X(DEVICE, 'd', false)                                                                                    \
    X(CONFIG, 's', true)                                                                                     \
    X(KERNEL, 'k', true)                                                                                     \
    X(CORRELATION, 'c', true)

#define OCC_LAUNCH_KEY_ID(NAME, letter, of_rows)                       OCC_LAUNCH_KEY_##NAME,
#define OCC_LAUNCH_CONFIG_COLUMN(column, type, expression, unit, help) +1

enum occ_launch_key { OCC_LAUNCH_KEYS(OCC_LAUNCH_KEY_ID) OCC_LAUNCH_KEY_COUNT };
enum { OCC_LAUNCH_CONFIG_COLUMNS = 0 OCC_SQL_CONFIG(OCC_LAUNCH_CONFIG_COLUMN) };

/* Values common to the launches of a configuration. */
struct occ_launch_config_info {
    int64_t kernel;
    double device_warps, expected_elapsed_low; /* NaN: unknown */
    bool known;
    sqlite3_value *values[OCC_LAUNCH_CONFIG_COLUMNS]; /* NULL until needed */
};

struct occ_launch_scan {
    sqlite3_vtab *vtab;
    struct occ_range range[OCC_LAUNCH_KEY_COUNT];
    bool narrowed[OCC_LAUNCH_KEY_COUNT];
    uint32_t columns;   /* columns to decode in each chunk: all columns requested from any row until now */
    bool wants_configs; /* some column of OCC_SQL_CONFIG is used */
    sqlite3_stmt *data, *configs_stmt, *series, *minute;
    struct occ_columns_decoder *decoder; /* decoder of measured values */
    struct occ_map config_index;         /* config -> index in configs */
    struct occ_launch_config_info *configs;
    uint32_t n_configs;
    size_t configs_allocated;
    uint32_t last_config, last_index;
};

/* `plan`: made by occ_vtab_plan(). */
int occ_launch_scan_open(struct occ_launch_scan *scan, sqlite3_vtab *vtab, const char *plan, int argc,
                         sqlite3_value **argv);
void occ_launch_scan_close(struct occ_launch_scan *scan);
/* True if the conditions exclude each other. */
bool occ_launch_scan_is_empty(const struct occ_launch_scan *scan);
/* Finds the configuration's entry, which is valid until the next call. */
int occ_launch_scan_config(struct occ_launch_scan *scan, uint32_t config,
                           const struct occ_launch_config_info **ret);

/* ---- an open chunk ---- */

struct occ_launch_values;

struct occ_launch_chunk {
    int64_t id, run, device, first_ns, last_ns;
    int64_t key;                /* key of the next row, in a merge */
    uint32_t rows;              /* number of rows in the chunk */
    uint32_t n, at;             /* matching rows; the next one */
    uint32_t decoded;           /* set of the decoded columns in `columns` */
    struct occ_columns columns; /* owned by the decoder */
    struct occ_columns_decoder *decoder;
    struct occ_launch_values *values; /* NULL until first requested */
    uint32_t *selected;               /* matching rows, unless all match */
    uint32_t selected_capacity;
    const uint32_t *selection; /* `selected`, or NULL when all rows match */
    const uint64_t *rowids;    /* for rows gathered from several chunks; NULL: from one chunk */
};

/* A statement that lists chunks; %s: the database's name. */
#define OCC_LAUNCH_LIST_SQL                                                                                  \
    "SELECT c.chunk_id, c.run_id, c.device_id, c.launches, c.first_start_ns, c.last_start_ns "               \
    "FROM \"%s\".stored_chunk c "
enum {
    OCC_LAUNCH_LIST_ID,
    OCC_LAUNCH_LIST_RUN,
    OCC_LAUNCH_LIST_DEVICE,
    OCC_LAUNCH_LIST_ROWS,
    OCC_LAUNCH_LIST_FIRST,
    OCC_LAUNCH_LIST_LAST
};

/* Opens the current chunk of `list`. chunk->n is 0 if no row matches. */
int occ_launch_chunk_open(struct occ_launch_scan *scan, struct occ_launch_chunk *chunk, sqlite3_stmt *list);
/* Decodes the columns of the set that are not decoded yet. */
int occ_launch_chunk_decode(struct occ_launch_scan *scan, struct occ_launch_chunk *chunk, uint32_t columns);
void occ_launch_chunk_close(struct occ_launch_chunk *chunk);

/* The number in the chunk of the i-th matching row. */
static inline uint32_t occ_launch_chunk_row(const struct occ_launch_chunk *chunk, uint32_t i)
{
    return chunk->selection ? chunk->selection[i] : i;
}

/* A rowid that is the same in every scan: "a OR b" makes two scans, and SQLite recognizes common rows by
 * rowid. Ids of a hostile file wrap around. */
static inline uint64_t occ_launch_chunk_rowid(const struct occ_launch_chunk *chunk, uint32_t row)
{
    return chunk->rowids ? chunk->rowids[row] : (uint64_t)chunk->id * OCC_COLUMNS_MAX_ROWS + row;
}
