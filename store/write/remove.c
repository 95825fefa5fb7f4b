/*
 * Removes runs from the history for good. Rows of kernels and launch configurations stay, because a daemon
 * that writes the same file uses their numbers. The shipper has sent minutes of these runs:
 * stored_removed_run and stored_removed_minute keep the keys of the rows to be withdrawn, and each such
 * minute gets a new change number. One thread.
 */
#include "store/internal.h"

/* "(1, 2)"; free with sqlite3_free(). NULL: no memory. */
static char *list_of(const int64_t *runs, size_t n)
{
    sqlite3_str *text = sqlite3_str_new(NULL);
    for (size_t i = 0; i < n; i++)
        sqlite3_str_appendf(text, "%s%lld", i ? ", " : "(", (long long)runs[i]);
    sqlite3_str_appendall(text, ")");
    return sqlite3_str_finish(text);
}

/* Keeps the keys of the shipped runs, and gives their minutes new numbers. Imported recordings are never
 * shipped, so their changes are deleted. %s: the list of runs. */
#define REMEMBER                                                                                             \
    "INSERT OR REPLACE INTO stored_removed_run SELECT run_id, uuid, start_ns, uid, user, session_id, "       \
    "slurm_job, k8s_pod_uid, container, max(%lld, coalesce(last_start_ns / 60000000000, 0)) FROM "           \
    "stored_run WHERE run_id IN %s AND source_hash IS NULL "                                                 \
    "AND time_base IS NOT 'unknown';"                                                                        \
    "INSERT OR IGNORE INTO stored_removed_minute SELECT minute, run_id, config_id FROM stored_minute WHERE " \
    "minute >= %lld AND run_id IN %s AND run_id IN (SELECT run_id FROM stored_removed_run);"                 \
    "INSERT OR REPLACE INTO stored_minute_change(minute, run_id) SELECT DISTINCT minute, run_id FROM "       \
    "stored_removed_minute WHERE run_id IN %s UNION ALL SELECT -1, run_id FROM stored_removed_run WHERE "    \
    "run_id IN %s;"                                                                                          \
    "DELETE FROM stored_minute_change WHERE run_id IN %s AND run_id NOT IN (SELECT run_id FROM "             \
    "stored_removed_run);"

/* Launches are stored apart from the rows that describe them, and ring positions have the run's uuid; all
 * other data of a run is in tables with the run's number. */
#define DELETE_WITHOUT_RUN_ID                                                                                \
    "DELETE FROM stored_chunk_data WHERE chunk_id IN (SELECT chunk_id FROM stored_chunk WHERE run_id IN "    \
    "%s);"                                                                                                   \
    "DELETE FROM stored_ring WHERE uuid IN (SELECT uuid FROM stored_run WHERE run_id IN %s);"

/* Returns all statements, joined, for sqlite3_free(); NULL: no memory, or the tables cannot be listed. */
static char *statements_of(sqlite3 *db, const char *list, int64_t now_minute)
{
    static const char tables[] = "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c "
                                 "WHERE m.type = 'table' AND m.name LIKE 'stored\\_%' ESCAPE '\\' AND c.name "
                                 "= 'run_id' AND m.name NOT "
                                 "IN ('stored_minute_change', 'stored_removed_run', 'stored_removed_minute')";
    sqlite3_str *text = sqlite3_str_new(db);
    sqlite3_stmt *stmt = NULL;
    sqlite3_str_appendf(text, REMEMBER DELETE_WITHOUT_RUN_ID, (long long)now_minute, list,
                        (long long)(now_minute - OCC_SENT_MINUTES), list, list, list, list, list, list);
    int step = sqlite3_prepare_v2(db, tables, -1, &stmt, NULL) == SQLITE_OK ? SQLITE_ROW : SQLITE_ERROR;
    while (step == SQLITE_ROW && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        sqlite3_str_appendf(text, "DELETE FROM %w WHERE run_id IN %s;", sqlite3_column_text(stmt, 0), list);
    (void)sqlite3_finalize(stmt);
    char *statements = sqlite3_str_finish(text);
    if (step == SQLITE_DONE)
        return statements;
    sqlite3_free(statements); /* a list that lacks a table would leave rows behind */
    return NULL;
}

/* Returns free pages to the file system, in steps so that others may write in between. */
static void give_back(struct occ_store *s)
{
    int64_t unused = 0, before = INT64_MAX;
    while (occ_store_number(s, occ_store_query(s, OCC_SQL_FREE_PAGES, NULL, 0), &unused, NULL) == 0 &&
           unused > 0 && unused < before) {
        before = unused;
        (void)sqlite3_exec(s->db, "PRAGMA incremental_vacuum(1000)", NULL, NULL, NULL);
    }
    (void)sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

/* Call inside the transaction. */
static int remove_listed(struct occ_store *s, const char *list, int64_t now_minute, struct occ_error *err)
{
    char *statements = statements_of(s->db, list, now_minute);
    int rc = statements ? 0 : occ_no_memory(err), code = SQLITE_OK;
    if (rc == 0 && (code = sqlite3_exec(s->db, statements, NULL, NULL, NULL)) != SQLITE_OK)
        rc = occ_sql_fail(s->db, s->path, code, err, "cannot remove runs");
    sqlite3_free(statements);
    const int64_t first = now_minute - OCC_SENT_MINUTES;
    if (rc == 0)
        rc = occ_store_execute(s, OCC_SQL_DROP_REMOVED_MINUTES, &first, 1, err);
    return rc == 0 ? occ_store_execute(s, OCC_SQL_DROP_REMOVED_RUNS, &first, 1, err) : rc;
}

/* Call inside the transaction. */
static int choose_and_remove(struct occ_store *s, const struct occ_run_chooser *chooser, int64_t now_minute,
                             bool *ret_some, struct occ_error *err)
{
    const int64_t *runs = NULL;
    size_t n = 0;
    int rc = chooser->choose(chooser->context, s, &runs, &n, err);
    if (rc != 0 || n == 0)
        return rc;
    char *list = list_of(runs, n);
    rc = list ? remove_listed(s, list, now_minute, err) : occ_no_memory(err);
    sqlite3_free(list);
    *ret_some = rc == 0;
    return rc;
}

int occ_store_remove_runs(struct occ_store *s, const struct occ_run_chooser *chooser, int64_t now_ns,
                          struct occ_error *err)
{
    bool some = false;
    /* this function deletes referencing rows itself, with one scan of a table instead of one for each run */
    (void)sqlite3_exec(s->db, "PRAGMA foreign_keys=OFF", NULL, NULL, NULL);
    int rc = occ_store_begin(s, err);
    if (rc == 0)
        rc = choose_and_remove(s, chooser, now_ns / MINUTE_NS, &some, err);
    rc = occ_store_conclude(s, rc, err);
    (void)sqlite3_exec(s->db, "PRAGMA foreign_keys=ON", NULL, NULL, NULL);
    if (rc == 0 && some)
        give_back(s);
    return rc;
}
