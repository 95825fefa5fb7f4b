/* The virtual table `device_sample`. A scan lists the chunks whose times and device allow a match, unpacks
 * one at a time, and returns the matching rows. The file is untrusted. Threads: the connection's. */

#include <stdlib.h>

#include "store/codec/codes.h"
#include "store/codec/columns.h"
#include "support/error.h"
#include "store/sql_nouns.h"
#include "vtab.h"

enum column { COLUMN_START, COLUMN_END, COLUMN_DEVICE, COLUMN_NUMBERS };

static const char declaration[] =
    "CREATE TABLE device_sample(start_ns INTEGER, end_ns INTEGER, device_id INTEGER"
#define NUMBER_COLUMN(name, scale, unit, help) ", " #name " REAL"
    OCC_SQL_COUNTERS(NUMBER_COLUMN) ")";

static const enum occ_unit units[] = {
#define NUMBER_UNIT(name, unit) OCC_UNIT_##unit,
    OCC_SAMPLE_NUMBERS(NUMBER_UNIT)};

struct sample_cursor {
    sqlite3_vtab_cursor base;
    struct occ_range start, device;
    sqlite3_stmt *chunks;
    struct occ_columns_decoder *decoder;
    struct occ_columns rows; /* rows of the current chunk */
    uint32_t at;
    int64_t chunk, device_now;
    bool done;
};

static const struct occ_vtab_key keys[] = {{COLUMN_START, 't', false}, {COLUMN_DEVICE, 'd', false}};
static const char statistics[] =
    "SELECT n, n, (SELECT max(device_id) FROM \"%w\".stored_device) FROM "
    "(SELECT total(rows) AS n FROM \"%w\".stored_series_chunk WHERE kind = 'device_sample')";

static int sample_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    return occ_vtab_plan(vtab, info, keys, sizeof keys / sizeof *keys, statistics);
}

static int sample_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret)
{
    (void)vtab;
    struct sample_cursor *c = calloc(1, sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    *ret = &c->base;
    return SQLITE_OK;
}

static int sample_close(sqlite3_vtab_cursor *cursor)
{
    struct sample_cursor *c = (struct sample_cursor *)cursor;
    (void)sqlite3_finalize(c->chunks);
    occ_columns_decoder_free(c->decoder);
    free(c);
    return SQLITE_OK;
}

static int unpack(struct sample_cursor *c)
{
    int rc = occ_columns_decode(c->decoder, sqlite3_column_blob(c->chunks, 2),
                                (size_t)sqlite3_column_bytes(c->chunks, 2), OCC_SAMPLE_COLUMNS, &c->rows);
    if (rc == OCC_E_NO_MEMORY)
        return SQLITE_NOMEM;
    if (rc != 0)
        return occ_vtab_fail(c->base.pVtab, SQLITE_CORRUPT,
                             rc == OCC_E_VERSION ? "device_sample: a chunk is from a newer version"
                                                 : "device_sample: a chunk is damaged");
    c->chunk = sqlite3_column_int64(c->chunks, 0);
    c->device_now = sqlite3_column_int64(c->chunks, 1);
    return SQLITE_OK;
}

/* Moves to the next matching row, from c->at on. */
static int settle(struct sample_cursor *c)
{
    for (;;) {
        while (c->at < c->rows.n && !occ_in_range(&c->start, (int64_t)c->rows.start_ns[c->at]))
            c->at++;
        if (c->at < c->rows.n)
            return SQLITE_OK;
        int rc = occ_vtab_step(c->base.pVtab, c->chunks);
        c->at = c->rows.n = 0;
        if (rc != SQLITE_ROW) {
            c->done = true;
            return rc == SQLITE_DONE ? SQLITE_OK : rc;
        }
        rc = unpack(c);
        if (rc != SQLITE_OK)
            return rc;
    }
}

static int list_chunks(struct sample_cursor *c)
{
    static const char sql[] = "SELECT chunk_id, device_id, data FROM \"%w\".stored_series_chunk WHERE "
                              "kind = 'device_sample' AND run_id IS NULL AND device_id BETWEEN ?1 AND ?2 AND "
                              "last_start_ns >= ?3 AND first_start_ns <= ?4";
    int rc = occ_vtab_prepare(c->base.pVtab, &c->chunks, sql);
    if (rc != SQLITE_OK)
        return rc;
    (void)sqlite3_reset(c->chunks);
    const int64_t limits[] = {c->device.low, c->device.high, c->start.low, c->start.high};
    for (int i = 0; i < 4; i++)
        (void)sqlite3_bind_int64(c->chunks, i + 1, limits[i]);
    return SQLITE_OK;
}

static int sample_filter(sqlite3_vtab_cursor *cursor, int idx_num, const char *plan, int argc,
                         sqlite3_value **argv)
{
    (void)idx_num;
    struct sample_cursor *c = (struct sample_cursor *)cursor;
    int rc = occ_vtab_enter(cursor->pVtab);
    c->start = c->device = (struct occ_range){INT64_MIN, INT64_MAX};
    for (int i = 0; i < argc; i++)
        occ_range_narrow(plan[2 * i] == 't' ? &c->start : &c->device, plan[2 * i + 1], argv[i]);
    c->at = c->rows.n = 0;
    c->done = c->start.low > c->start.high || c->device.low > c->device.high;
    if (rc != SQLITE_OK || c->done)
        return rc;
    if (!c->decoder)
        c->decoder = occ_columns_decoder_new();
    if (!c->decoder)
        return SQLITE_NOMEM;
    rc = list_chunks(c);
    return rc != SQLITE_OK ? rc : settle(c);
}

static int sample_next(sqlite3_vtab_cursor *cursor)
{
    struct sample_cursor *c = (struct sample_cursor *)cursor;
    c->at++;
    return settle(c);
}

static int sample_eof(sqlite3_vtab_cursor *cursor)
{
    return ((struct sample_cursor *)cursor)->done;
}

static int sample_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret)
{
    const struct sample_cursor *c = (const struct sample_cursor *)cursor;
    *ret = (sqlite3_int64)((uint64_t)c->chunk * OCC_COLUMNS_MAX_ROWS + c->at);
    return SQLITE_OK;
}

static int sample_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
    const struct sample_cursor *c = (const struct sample_cursor *)cursor;
    const struct occ_columns *rows = &c->rows;
    if (column == COLUMN_START)
        sqlite3_result_int64(context, (int64_t)rows->start_ns[c->at]);
    else if (column == COLUMN_END)
        sqlite3_result_int64(context, (int64_t)(rows->start_ns[c->at] + rows->duration_ns[c->at]));
    else if (column < COLUMN_NUMBERS)
        sqlite3_result_int64(context, c->device_now);
    else /* SQLite stores NaN as NULL */
        sqlite3_result_double(
            context,
            occ_code_read(units[column - COLUMN_NUMBERS],
                          (uint16_t)rows->column[OCC_COLUMN_number0 + column - COLUMN_NUMBERS][c->at]));
    return SQLITE_OK;
}

int occ_sample_table_register(sqlite3 *db)
{
    static const sqlite3_module module = OCC_VTAB_MODULE(sample);
    return sqlite3_create_module_v2(db, OCC_SQL_MODULE("device_sample"), &module,
                                    (void *)(uintptr_t)declaration, NULL);
}
