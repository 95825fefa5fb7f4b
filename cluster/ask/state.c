/* Reads the state of the cluster's data: see remote.h. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "remote.h"

static const char sums[] =
    "SELECT count(*), total(silent), coalesce(min(iif(silent, NULL, until)), max(until), 0), total(lost), "
    "coalesce(substr(group_concat(iif(silent, node, NULL), ', '), 1, 200), '') FROM (SELECT node, lost + 0 "
    "AS lost, "
    "until + 0 AS until, until + 0 < oldest + 0 AS silent FROM watermarks ORDER BY node)";

static void read_sums(sqlite3 *db, struct occ_remote_state *state)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, sums, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW) {
        const char *names = (const char *)sqlite3_column_text(stmt, 4);
        state->nodes = (uint64_t)sqlite3_column_int64(stmt, 0);
        state->silent = (uint64_t)sqlite3_column_int64(stmt, 1);
        state->complete_until_ns = (sqlite3_column_int64(stmt, 2) & UINT32_MAX) * INT64_C(1000000000);
        state->lost_minutes = (uint64_t)sqlite3_column_int64(stmt, 3);
        (void)snprintf(state->silent_names, sizeof state->silent_names, "%s", names ? names : "");
    }
    (void)sqlite3_finalize(stmt);
}

int occ_remote_get_state(struct occ_warehouse *w, struct occ_remote_state *ret_state, struct occ_error *err)
{
    sqlite3 *db = NULL;
    char *sql = sqlite3_mprintf(
        "SELECT toUInt32(complete_until) AS until, node, lost, toUInt32(now()) - %d AS oldest "
        "FROM %s.watermark FINAL",
        OCC_REMOTE_SILENT_S, w->options.database);
    *ret_state = (struct occ_remote_state){0};
    int rc = sql && sqlite3_open(":memory:", &db) == SQLITE_OK
                 ? occ_remote_fetch(w, db, "watermarks", "until, node, lost, oldest", sql, err)
                 : occ_no_memory(err);
    if (rc == 0)
        read_sums(db, ret_state);
    sqlite3_free(sql);
    (void)sqlite3_close(db);
    return rc;
}
