/* Runs taken out of the history for good. Rows of kernels and launch configurations stay: a daemon that
 * writes the same file knows them by number. One thread. */
#include "store/internal.h"

/* "(1, 2)"; freed with sqlite3_free(). NULL: no memory. */
static char *list_of(const int64_t *runs, size_t n)
{
    sqlite3_str *text = sqlite3_str_new(NULL);
    for (size_t i = 0; i < n; i++)
        sqlite3_str_appendf(text, "%s%lld", i ? ", " : "(", (long long)runs[i]);
    sqlite3_str_appendall(text, ")");
    return sqlite3_str_finish(text);
}

/* The statements, one after the other: launches lie apart from what is known of them, and all else of a run
 * is in tables that have its number. */
static char *statements_of(sqlite3 *db, const char *list)
{
    static const char tables[] =
        "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c "
        "WHERE m.type = 'table' AND m.name LIKE 'stored\\_%' ESCAPE '\\' AND c.name = 'run_id'";
    sqlite3_str *text = sqlite3_str_new(db);
    sqlite3_stmt *stmt = NULL;
    sqlite3_str_appendf(text,
                        "DELETE FROM stored_chunk_data WHERE chunk_id IN "
                        "(SELECT chunk_id FROM stored_chunk WHERE run_id IN %s);",
                        list);
    if (sqlite3_prepare_v2(db, tables, -1, &stmt, NULL) == SQLITE_OK)
        while (sqlite3_step(stmt) == SQLITE_ROW)
            sqlite3_str_appendf(text, "DELETE FROM %w WHERE run_id IN %s;", sqlite3_column_text(stmt, 0),
                                list);
    (void)sqlite3_finalize(stmt);
    return sqlite3_str_finish(text);
}

/* Returns free pages to the file system, in steps between which others may write. */
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

int occ_store_remove_runs(struct occ_store *s, const int64_t *runs, size_t n, struct occ_error *err)
{
    char *list = n > 0 ? list_of(runs, n) : NULL, *statements = list ? statements_of(s->db, list) : NULL;
    int code = SQLITE_OK, rc = n > 0 && !statements ? occ_no_memory(err) : 0;
    if (rc == 0 && n > 0) {
        /* what a foreign key would do is done here, by one scan of a table instead of one for each run */
        (void)sqlite3_exec(s->db, "PRAGMA foreign_keys=OFF", NULL, NULL, NULL);
        rc = occ_store_begin(s, err);
        if (rc == 0 && (code = sqlite3_exec(s->db, statements, NULL, NULL, NULL)) != SQLITE_OK)
            rc = occ_sql_fail(s->db, s->path, code, err, "cannot remove runs");
        rc = occ_store_conclude(s, rc, err);
        (void)sqlite3_exec(s->db, "PRAGMA foreign_keys=ON", NULL, NULL, NULL);
    }
    if (rc == 0 && n > 0)
        give_back(s);
    sqlite3_free(list);
    sqlite3_free(statements);
    return rc;
}
