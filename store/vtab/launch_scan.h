/*
 * A scan of the virtual table `launch`: its conditions, what it knows of launch configurations, and the
 * chunks that it has open. Nothing in the file is trusted: the codec checks its bytes, everything else is
 * only compared and copied. All functions return SQLite codes; an error's message is the table's. Threads:
 * the connection's. Compiled twice: see vtab.h.
 */
#pragma once

#include "store/codec/columns.h"
#include "store/sql_nouns.h"
#include "support/map.h"
#include "vtab.h"

/* Columns that a scan can be narrowed by, all of them integers. X(NAME, letter of the plan, whether rows are
 * tested) */
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

/* What the launches of a configuration have in common. */
struct occ_launch_config_info {
    int64_t kernel;
    double device_warps, expected_elapsed_low; /* NaN: not known */
    bool known;
    sqlite3_value *values[OCC_LAUNCH_CONFIG_COLUMNS]; /* NULL until needed */
};

struct occ_launch_scan {
    sqlite3_vtab *vtab;
    struct occ_range range[OCC_LAUNCH_KEY_COUNT];
    bool narrowed[OCC_LAUNCH_KEY_COUNT];
    uint32_t columns;   /* to decode of each chunk: those that rows were asked for so far */
    bool wants_configs; /* some column of OCC_SQL_CONFIG is used */
    sqlite3_stmt *data, *configs_stmt, *series, *minute;
    struct occ_columns_decoder *decoder; /* of measured values */
    struct occ_map config_index;         /* config -> index in configs */
    struct occ_launch_config_info *configs;
    uint32_t n_configs;
    size_t configs_allocated;
    uint32_t last_config, last_index;
};

/* `plan`: of occ_vtab_plan(). */
int occ_launch_scan_open(struct occ_launch_scan *scan, sqlite3_vtab *vtab, const char *plan, int argc,
                         sqlite3_value **argv);
void occ_launch_scan_close(struct occ_launch_scan *scan);
/* Whether the conditions exclude each other. */
bool occ_launch_scan_is_empty(const struct occ_launch_scan *scan);
/* The configuration's entry, which lives until the next call. */
int occ_launch_scan_config(struct occ_launch_scan *scan, uint32_t config,
                           const struct occ_launch_config_info **ret);

/* ---- an open chunk ---- */

struct occ_launch_values;

struct occ_launch_chunk {
    int64_t id, run, device, first_ns, last_ns;
    int64_t key;                /* of the next row, in a merge */
    uint32_t rows;              /* in the chunk */
    uint32_t n, at;             /* rows that match, the next one */
    uint32_t decoded;           /* set of columns that are in `columns` */
    struct occ_columns columns; /* the decoder's */
    struct occ_columns_decoder *decoder;
    struct occ_launch_values *values; /* when they were asked for */
    uint32_t *selected;               /* rows that match, if not all do */
    uint32_t selected_capacity;
    const uint32_t *selection; /* `selected`, or NULL when all rows match */
    const uint64_t *rowids;    /* of rows that several chunks gave; NULL: of one chunk */
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

/* Opens the chunk that `list` is on. chunk->n is 0 where no row matches. */
int occ_launch_chunk_open(struct occ_launch_scan *scan, struct occ_launch_chunk *chunk, sqlite3_stmt *list);
/* Makes the set of columns readable, in addition to those that are. */
int occ_launch_chunk_decode(struct occ_launch_scan *scan, struct occ_launch_chunk *chunk, uint32_t columns);
void occ_launch_chunk_close(struct occ_launch_chunk *chunk);

/* The number in the chunk of its i-th row that matches. */
static inline uint32_t occ_launch_chunk_row(const struct occ_launch_chunk *chunk, uint32_t i)
{
    return chunk->selection ? chunk->selection[i] : i;
}

/* The same in every scan: "a OR b" is two scans, and what both find SQLite knows by its rowid. Ids of a
 * hostile file wrap. */
static inline uint64_t occ_launch_chunk_rowid(const struct occ_launch_chunk *chunk, uint32_t row)
{
    return chunk->rowids ? chunk->rowids[row] : (uint64_t)chunk->id * OCC_COLUMNS_MAX_ROWS + row;
}
