/* Measured occupancy: pending sums, and the table `measured`. One thread. */
#include "measured.h"

#include <stdlib.h>

#include "store/query/sum_by_config.h"

#define PENDING_MOST 65536u /* 16 MB; one commit a second never comes near */

struct occ_measured_pending {
    int64_t minute, run;
    uint32_t config;
    struct occ_measured_sums sums;
};

static void add(struct occ_measured_sums *to, const struct occ_measured_sums *from)
{
    for (int i = 0; i < OCC_MEASURED_VALUE_COUNT; i++) {
        to->sum[i] += from->sum[i];
        to->ns[i] += from->ns[i];
    }
#define X(name, text) to->name += from->name;
    OCC_MEASURED_SOURCES(X)
#undef X
    to->overlapped += from->overlapped;
}

static int make_room(struct occ_store *s, struct occ_error *err)
{
    if (s->n_measured < s->measured_allocated)
        return 0;
    if (s->n_measured >= PENDING_MOST)
        return occ_fail(err, OCC_E_FULL, "%s: too many measured values wait for a commit", s->path);
    uint32_t more = s->measured_allocated ? s->measured_allocated * 2 : 64;
    struct occ_measured_pending *rows = realloc(s->measured, more * sizeof *rows);
    if (!rows)
        return occ_store_no_memory(err);
    s->measured = rows;
    s->measured_allocated = more;
    return 0;
}

int occ_store_add_measured(struct occ_store *s, int64_t minute, int64_t run, uint32_t config,
                           const struct occ_measured_sums *sums, struct occ_error *err)
{
    int rc = make_room(s, err);
    if (rc == 0)
        s->measured[s->n_measured++] =
            (struct occ_measured_pending){.minute = minute, .run = run, .config = config, .sums = *sums};
    return rc;
}

int occ_measured_write(struct occ_store *s, struct occ_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < s->n_measured && rc == 0; i++) {
        const struct occ_measured_pending *row = &s->measured[i];
        sqlite3_stmt *stmt = NULL;
        rc = occ_store_statement(s, OCC_SQL_ADD_MEASURED, &stmt, err);
        if (rc != 0)
            break;
        struct occ_binder b = {.stmt = stmt};
        occ_bind_int(&b, row->config);
        occ_bind_int(&b, row->run);
        occ_bind_int(&b, row->minute);
#define X(name, text) occ_bind_int(&b, (int64_t)row->sums.name);
        OCC_MEASURED_SOURCES(X)
#undef X
        occ_bind_int(&b, (int64_t)row->sums.overlapped);
        for (int k = 0; k < OCC_MEASURED_VALUE_COUNT; k++) {
            occ_bind_real(&b, row->sums.sum[k]);
            occ_bind_real(&b, row->sums.ns[k]);
        }
        rc = occ_store_run(s, stmt, err, "cannot add measured values");
    }
    return rc;
}

void occ_measured_written(struct occ_store *s)
{
    s->n_measured = 0;
}

/* total(), since sum() fails when integers overflow, and one row that a program lied into would keep the history from being read. */
static const char read_sql[] = "SELECT run_id, total(overlapped)"
#define X(name, text) ", total(" #name ")"
    OCC_MEASURED_SOURCES(X)
#undef X
#define X(name) ", sum(" #name "_sum), sum(" #name "_ns)"
        OCC_MEASURED_VALUES(X)
#undef X
            " FROM stored_measured_minute WHERE config_id = ?1 AND minute >= ?2 AND minute < ?3 GROUP BY "
            "run_id";

static void add_row(sqlite3_stmt *stmt, struct occ_measured_sums *sums)
{
    struct occ_measured_sums row = {0};
    int at = 1;
    row.overlapped = (uint64_t)sqlite3_column_int64(stmt, at++);
#define X(name, text) row.name = (uint64_t)sqlite3_column_int64(stmt, at++);
    OCC_MEASURED_SOURCES(X)
#undef X
    for (int k = 0; k < OCC_MEASURED_VALUE_COUNT; k++) {
        row.sum[k] = sqlite3_column_double(stmt, at++);
        row.ns[k] = sqlite3_column_double(stmt, at++);
    }
    add(sums, &row);
}

int occ_measured_prepare(struct occ_store *s, sqlite3_stmt **ret_stmt, struct occ_error *err)
{
    return occ_ask_prepare(s, read_sql, ret_stmt, err);
}

int occ_measured_read(struct occ_store *s, const struct occ_scope *scope, int64_t config, sqlite3_stmt *stmt,
                      struct occ_measured_sums *ret_sums, struct occ_error *err)
{
    struct occ_binder b = {.stmt = stmt};
    int step;
    *ret_sums = (struct occ_measured_sums){0};
    occ_bind_int(&b, config);
    occ_bind_int(&b, scope->since_ns / MINUTE_NS);
    occ_bind_int(&b, scope->until_ns / MINUTE_NS + (scope->until_ns % MINUTE_NS != 0));
    while ((step = sqlite3_step(stmt)) == SQLITE_ROW)
        if (occ_map_get(&scope->run_index, (uint64_t)sqlite3_column_int64(stmt, 0)) != OCC_MAP_NONE)
            add_row(stmt, ret_sums);
    (void)sqlite3_reset(stmt);
    return step == SQLITE_DONE ? 0 : occ_sql_fail(s->db, s->path, step, err, "cannot read measured values");
}

int occ_store_config_model(struct occ_store *s, int64_t config, struct occ_result *ret_result,
                           struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_CONFIG_MODEL, &stmt, err);
    if (rc != 0)
        return rc;
    (void)sqlite3_bind_int64(stmt, 1, config);
    int step = sqlite3_step(stmt);
    if (step == SQLITE_ROW)
        *ret_result = (struct occ_result){.theoretical = sqlite3_column_double(stmt, 0),
                                          .grid_blocks = (uint64_t)sqlite3_column_int64(stmt, 1),
                                          .wave_blocks = (uint64_t)sqlite3_column_int64(stmt, 2),
                                          .warps_per_block = (uint32_t)sqlite3_column_int64(stmt, 3),
                                          .blocks_per_sm = (uint32_t)sqlite3_column_int64(stmt, 4)};
    else if (step == SQLITE_DONE)
        rc = occ_fail(err, OCC_E_NOT_FOUND, "no model of launch configuration %lld", (long long)config);
    else
        rc = occ_sql_fail(s->db, s->path, step, err, "cannot read a launch configuration");
    (void)sqlite3_reset(stmt);
    return rc;
}
