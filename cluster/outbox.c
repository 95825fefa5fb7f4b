/* Opening a history, and its changes in batches: see outbox.h. */
#include "outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/seen/changes.h"
#include "store/store.h"
#include "support/cleanup.h"
#include "support/text.h"

#define BATCH_BYTES   (8u << 20)
#define BATCH_ROWS    50000u
#define BATCH_DAYS    31       /* a server refuses an insert with rows of too many partitions */
#define FIRST_MINUTE  16666667 /* since this minute seconds have ten digits */
#define LAST_MINUTE   71582787 /* up to this minute seconds fit 32 bits */
#define MINUTES_A_DAY 1440

static const char read_changes[] = "SELECT c.change, c.minute, coalesce(" OCC_OUTBOX_RUN_OF(
    "x") ", c.run_id), r.source_hash IS NOT NULL OR "
         "r.time_base IS 'unknown', NOT EXISTS(SELECT 1 FROM stored_minute m WHERE m.minute = c.minute AND "
         "m.run_id = "
         "c.run_id), r.run_id IS NULL AND NOT EXISTS(SELECT 1 FROM stored_run s WHERE s.uuid = x.uuid), "
         "x.run_id IS "
         "NOT NULL FROM stored_minute_change c LEFT JOIN stored_run r USING(run_id) LEFT JOIN "
         "stored_removed_run x "
         "USING(run_id) WHERE c.change > ?1 AND c.change <= ?2 ORDER BY c.change";
enum { CHANGE, CHANGED_MINUTE, CHANGED_RUN, IS_RECORDING, IS_EMPTY, HAS_NO_RUN, IS_REMOVED };

int occ_outbox_open(const char *path, struct occ_outbox *r, struct occ_error *err)
{
    *r = (struct occ_outbox){0};
    int rc = occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &r->store, err);
    if (rc == 0) {
        r->db = occ_store_sqlite(r->store);
        rc = occ_outbox_number(r, "SELECT identity FROM stored_identity", NULL, 0, &r->identity, err);
    }
    if (rc == 0)
        rc =
            occ_outbox_number(r, "SELECT first_minute FROM stored_retention", NULL, 0, &r->first_minute, err);
    if (rc == 0)
        rc = occ_outbox_number(r, occ_changes_last_sql, NULL, 0, &r->last_change, err);
    if (rc == 0 && sqlite3_prepare_v2(r->db, read_changes, -1, &r->read_changes, NULL) != SQLITE_OK)
        rc = occ_outbox_fail(r, err);
    if (rc == 0)
        rc = occ_outbox_make_functions(r, err);
    if (rc == 0)
        rc = occ_outbox_prepare_ids(r, err);
    if (rc == 0)
        rc = occ_outbox_prepare_minutes(r, err);
    if (rc == 0)
        rc = occ_outbox_prepare_launches(r, err);
    if (rc != 0)
        occ_outbox_close(r);
    return rc;
}

void occ_outbox_close(struct occ_outbox *r)
{
    sqlite3_stmt *const statements[] = {r->read_changes, r->read_config,  r->read_run,
                                        r->read_minute,  r->read_run_row, r->read_launches};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        (void)sqlite3_finalize(statements[i]);
    for (size_t i = 0; i < r->n_runs; i++) {
        free(r->runs[i].job);
        occ_user_texts_free(&r->runs[i].users);
        occ_body_free(&r->runs[i].added);
    }
    free(r->runs);
    free(r->configs);
    occ_map_free(&r->run_index);
    occ_map_free(&r->config_index);
    occ_store_close(r->store);
    *r = (struct occ_outbox){0};
}

/* ---- batches ---- */

void occ_batch_free(struct occ_batch *batch)
{
    for (int i = 0; i < OCC_SHIP_TABLE_COUNT; i++)
        occ_body_free(&batch->rows[i]);
    occ_map_free(&batch->ids);
    occ_map_free(&batch->runs);
    occ_map_free(&batch->minutes);
}

static bool is_full(const struct occ_batch *batch, uint32_t days)
{
    size_t bytes = 0;
    uint64_t rows = 0;
    for (int i = 0; i < OCC_SHIP_TABLE_COUNT; i++) {
        bytes += batch->rows[i].n;
        rows += batch->rows[i].rows;
    }
    return bytes >= BATCH_BYTES || rows >= BATCH_ROWS || days >= BATCH_DAYS;
}

/* true if the current change's minute can be sent. Counts it as lost if it was evicted or its time is outside
 * of the warehouse's range. */
static bool is_sendable(const struct occ_outbox *r, struct occ_batch *batch)
{
    sqlite3_stmt *stmt = r->read_changes;
    int64_t minute = sqlite3_column_int64(stmt, CHANGED_MINUTE);
    bool is_known = sqlite3_column_int(stmt, IS_REMOVED) || !sqlite3_column_int(stmt, HAS_NO_RUN);
    bool is_gone = minute < r->first_minute || !is_known;
    if (!is_gone && minute >= FIRST_MINUTE && minute <= LAST_MINUTE)
        return true;
    bool is_new = sqlite3_column_int64(stmt, CHANGE) > batch->options.first_change;
    batch->lost += is_new && (is_gone || !sqlite3_column_int(stmt, IS_EMPTY));
    return false;
}

/* Adds the row of a run; a removed run gets an empty row. */
static int add_run(struct occ_outbox *r, struct occ_batch *batch, struct occ_error *err)
{
    const struct occ_outbox_run *run = NULL;
    if (sqlite3_column_int(r->read_changes, HAS_NO_RUN) && !sqlite3_column_int(r->read_changes, IS_REMOVED))
        return 0;
    return occ_outbox_run(r, batch, sqlite3_column_int64(r->read_changes, CHANGED_RUN), &run, err);
}

/* Adds the current change. *days counts changes of the day between successive minutes. */
static int add_change(struct occ_outbox *r, struct occ_batch *batch, uint32_t *days, struct occ_error *err)
{
    sqlite3_stmt *stmt = r->read_changes;
    int64_t minute = sqlite3_column_int64(stmt, CHANGED_MINUTE);
    int rc = 0;
    if (sqlite3_column_int(stmt, IS_RECORDING))
        return 0; /* an imported run: not recorded on this node */
    if (minute == -1)
        return add_run(r, batch, err);
    if (!is_sendable(r, batch))
        return 0;
    if (!sqlite3_column_int(stmt, HAS_NO_RUN))
        rc = occ_outbox_add_launches(r, batch, minute, sqlite3_column_int64(stmt, CHANGED_RUN), err);
    if (rc != 0 || occ_map_get(&batch->minutes, (uint64_t)minute) != OCC_MAP_NONE)
        return rc;
    if (occ_map_put(&batch->minutes, (uint64_t)minute, 0) == OCC_MAP_NONE)
        return occ_outbox_no_memory(err);
    *days += batch->newest_minute / MINUTES_A_DAY != minute / MINUTES_A_DAY;
    batch->newest_minute = minute > batch->newest_minute ? minute : batch->newest_minute;
    return occ_outbox_add_minute(r, batch, minute, err);
}

static int read_all(struct occ_outbox *r, struct occ_batch *batch, struct occ_error *err)
{
    int rc = 0, code = SQLITE_DONE;
    uint32_t days = 0;
    while (rc == 0 && !batch->is_full && (code = sqlite3_step(r->read_changes)) == SQLITE_ROW) {
        if (occ_changes_must_wait(batch->options.now_s,
                                  sqlite3_column_int64(r->read_changes, CHANGED_MINUTE)))
            break;
        rc = add_change(r, batch, &days, err);
        batch->last_change = sqlite3_column_int64(r->read_changes, CHANGE);
        batch->is_full = is_full(batch, days);
    }
    if (rc == 0 && code != SQLITE_DONE && code != SQLITE_ROW)
        rc = occ_outbox_fail(r, err);
    for (int i = 0; i < OCC_SHIP_TABLE_COUNT && rc == 0; i++)
        rc = batch->rows[i].failed ? occ_outbox_no_memory(err) : 0;
    return rc;
}

int occ_outbox_read(struct occ_outbox *r, int64_t after, int64_t until,
                    const struct occ_batch_options *options, struct occ_batch *ret_batch,
                    struct occ_error *err)
{
    *ret_batch = (struct occ_batch){.options = *options};
    r->users = options->users;
    if (sqlite3_exec(r->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) /* one snapshot for all statements */
        return occ_outbox_fail(r, err);
    (void)sqlite3_bind_int64(r->read_changes, 1, after);
    (void)sqlite3_bind_int64(r->read_changes, 2, until);
    int rc = read_all(r, ret_batch, err);
    (void)sqlite3_reset(r->read_changes);
    (void)sqlite3_exec(r->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}
