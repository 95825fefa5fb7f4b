/*
 * The virtual table `device_sample`. A scan lists the chunks whose times and device can match, unpacks one at a time,
 * and hands out the rows that match. Nothing in the file is trusted. Threads: the connection's.
 */
#include "sample_table.h"

#include <stdlib.h>
#include <string.h>

#include "store/codec/series_codec.h"
#include "support/error.h"
#include "table_range.h"

#ifdef OCC_SQLITE_EXTENSION
SQLITE_EXTENSION_INIT3
#endif

enum column { COLUMN_START, COLUMN_END, COLUMN_DEVICE, COLUMN_DEVICE_ID, COLUMN_NUMBERS };

static const char declaration_sql[] = "CREATE TABLE device_sample(start INTEGER, \"end\" INTEGER, device "
                                      "INTEGER, deviceId INTEGER, "
#define X(name, sql, unit) sql " REAL, "
    OCC_SAMPLE_NUMBERS(X)
#undef X
        "CHECK (1))";

static double (*const read_number[])(uint16_t) = {
#define X(name, sql, unit) occ_series_read_##unit,
    OCC_SAMPLE_NUMBERS(X)
#undef X
};

struct sample_table {
    sqlite3_vtab base;
    sqlite3 *db;
};

struct sample_cursor {
    sqlite3_vtab_cursor base;
    sqlite3 *db;
    struct occ_range start, device;
    sqlite3_stmt *chunks;
    struct occ_series_decoder *decoder;
    const struct occ_series_row *rows; /* of the current chunk */
    uint32_t n, at;
    int64_t chunk, device_now;
    bool done;
};

static int sample_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret,
                          char **message)
{
    (void)aux;
    (void)argc;
    (void)argv;
    (void)message;
    int rc = sqlite3_declare_vtab(db, declaration_sql);
    if (rc != SQLITE_OK)
        return rc;
    (void)sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY); /* as for `launch` */
    struct sample_table *table = sqlite3_malloc(sizeof *table);
    if (!table)
        return SQLITE_NOMEM;
    *table = (struct sample_table){.db = db};
    *ret = &table->base;
    return SQLITE_OK;
}

static int sample_disconnect(sqlite3_vtab *vtab)
{
    sqlite3_free(vtab);
    return SQLITE_OK;
}

/* Which range a column's conditions narrow, as a letter for the scan; 0: none. */
static char key_letter(int column)
{
    return column == COLUMN_START ? 't' : column == COLUMN_DEVICE || column == COLUMN_DEVICE_ID ? 'd' : 0;
}

static int sample_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    (void)vtab;
    char plan[128];
    int n = 0;
    double rows = 1e7;
    for (int i = 0; i < info->nConstraint && n < 30; i++) {
        char key = info->aConstraint[i].usable ? key_letter(info->aConstraint[i].iColumn) : 0;
        char op = occ_range_letter(info->aConstraint[i].op);
        if (key == 0 || op == 0)
            continue;
        plan[2 * n] = key;
        plan[2 * n + 1] = op;
        info->aConstraintUsage[i].argvIndex = ++n;
        info->aConstraintUsage[i].omit = 1;
        rows /= op == '=' ? 100 : 4;
    }
    plan[2 * n] = '\0';
    info->idxStr = sqlite3_mprintf("%s", plan);
    if (!info->idxStr)
        return SQLITE_NOMEM;
    info->needToFreeIdxStr = 1;
    info->estimatedCost = rows * 30 + 1000;
    info->estimatedRows = (sqlite3_int64)rows + 1;
    return SQLITE_OK;
}

static int sample_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret)
{
    struct sample_cursor *c = calloc(1, sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    c->db = ((struct sample_table *)vtab)->db;
    *ret = &c->base;
    return SQLITE_OK;
}

static int sample_close(sqlite3_vtab_cursor *cursor)
{
    struct sample_cursor *c = (struct sample_cursor *)cursor;
    (void)sqlite3_finalize(c->chunks);
    occ_series_decoder_free(c->decoder);
    free(c);
    return SQLITE_OK;
}

static int fail(struct sample_cursor *c, int rc, const char *text)
{
    sqlite3_free(c->base.pVtab->zErrMsg);
    c->base.pVtab->zErrMsg = sqlite3_mprintf("device_sample: %s", text);
    return rc;
}

static int unpack(struct sample_cursor *c)
{
    int rc = occ_series_decode(c->decoder, OCC_SERIES_SAMPLES, sqlite3_column_blob(c->chunks, 2),
                               (size_t)sqlite3_column_bytes(c->chunks, 2), &c->rows, &c->n);
    if (rc == OCC_E_NO_MEMORY)
        return SQLITE_NOMEM;
    if (rc != 0)
        return fail(c, SQLITE_CORRUPT,
                    rc == OCC_E_VERSION ? "a chunk is from a newer version" : "a chunk is damaged");
    c->chunk = sqlite3_column_int64(c->chunks, 0);
    c->device_now = sqlite3_column_int64(c->chunks, 1);
    return SQLITE_OK;
}

/* To the next row that matches, from c->at on. */
static int settle(struct sample_cursor *c)
{
    for (;;) {
        while (c->at < c->n && !occ_in_range(&c->start, c->rows[c->at].start_ns))
            c->at++;
        if (c->at < c->n)
            return SQLITE_OK;
        int rc = sqlite3_step(c->chunks);
        c->at = c->n = 0;
        if (rc != SQLITE_ROW) {
            c->done = true;
            return rc == SQLITE_DONE ? SQLITE_OK : fail(c, rc, sqlite3_errmsg(c->db));
        }
        rc = unpack(c);
        if (rc != SQLITE_OK)
            return rc;
    }
}

static int list_chunks(struct sample_cursor *c)
{
    static const char sql[] = "SELECT id, device, data FROM main.series_chunk WHERE kind = 2 AND run = 0 AND "
                              "device BETWEEN ?1 AND ?2 AND last_ns >= ?3 AND first_ns <= ?4";
    (void)sqlite3_finalize(c->chunks);
    c->chunks = NULL;
    int rc = sqlite3_prepare_v2(c->db, sql, -1, &c->chunks, NULL);
    if (rc != SQLITE_OK)
        return fail(c, rc, sqlite3_errmsg(c->db));
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
    c->start = c->device = (struct occ_range){INT64_MIN, INT64_MAX};
    for (int i = 0; i < argc; i++)
        occ_range_narrow(plan[2 * i] == 't' ? &c->start : &c->device, plan[2 * i + 1], argv[i]);
    c->at = c->n = 0;
    c->done = c->start.low > c->start.high || c->device.low > c->device.high;
    if (c->done)
        return SQLITE_OK;
    if (!c->decoder)
        c->decoder = occ_series_decoder_new();
    if (!c->decoder)
        return SQLITE_NOMEM;
    int rc = list_chunks(c);
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
    *ret = (sqlite3_int64)((uint64_t)c->chunk * OCC_SERIES_MAX_ROWS + c->at);
    return SQLITE_OK;
}

static int sample_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
    const struct sample_cursor *c = (const struct sample_cursor *)cursor;
    const struct occ_series_row *row = &c->rows[c->at];
    if (column == COLUMN_START)
        sqlite3_result_int64(context, row->start_ns);
    else if (column == COLUMN_END)
        sqlite3_result_int64(context, row->start_ns + (int64_t)row->wide[OCC_SAMPLE_DURATION]);
    else if (column < COLUMN_NUMBERS)
        sqlite3_result_int64(context, c->device_now);
    else /* SQLite makes NaN NULL */
        sqlite3_result_double(context,
                              read_number[column - COLUMN_NUMBERS](row->narrow[column - COLUMN_NUMBERS]));
    return SQLITE_OK;
}

int occ_sample_table_register(struct sqlite3 *db)
{
    static const sqlite3_module module = {
        .iVersion = 0,
        .xConnect = sample_connect, /* no xCreate: the table is there without being made */
        .xBestIndex = sample_best_index,
        .xDisconnect = sample_disconnect,
        .xOpen = sample_open,
        .xClose = sample_close,
        .xFilter = sample_filter,
        .xNext = sample_next,
        .xEof = sample_eof,
        .xColumn = sample_column,
        .xRowid = sample_rowid,
    };
    return sqlite3_create_module_v2(db, "device_sample", &module, NULL, NULL);
}
