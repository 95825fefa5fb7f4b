/* Migrates a file to this version's schema: numbered migrations, one transaction each. Called by open, one
 * thread. */
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "schema/schema.h"
#include "support/clock.h"

#define WAL_PAUSE_MS 10

int occ_store_newest_version(void)
{
    int newest = 0;
    for (const struct occ_schema_migration *m = occ_schema_migrations; m->version != 0; m++)
        newest = m->version;
    return newest;
}

int occ_store_file_version(struct occ_store *s, int64_t *ret_version, struct occ_error *err)
{
    int64_t application = 0, objects = 0, version = 0;
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_FILE_IDENTITY, NULL, 0);
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err)) {
        application = sqlite3_column_int64(stmt, 0);
        objects = sqlite3_column_int64(stmt, 1);
        version = sqlite3_column_int64(stmt, 2);
    }
    if (rc != 0)
        return rc;
    if (application == OCC_SCHEMA_OLD_APPLICATION_ID)
        return occ_fail(err, OCC_E_VERSION,
                        "%s: a history from before occtrace's first release, which this version does not "
                        "read; move the file away and record anew",
                        s->path);
    if (application != OCC_SCHEMA_APPLICATION_ID && (application != 0 || objects != 0 || version != 0))
        return occ_fail(err, OCC_E_CORRUPT, "%s: is a database of another program, not a history of occtrace",
                        s->path);
    if (version > occ_store_newest_version())
        return occ_fail(err, OCC_E_VERSION,
                        "%s: written by a newer version of occtrace (schema %lld, this one reads up to %d)",
                        s->path, (long long)version, occ_store_newest_version());
    *ret_version = version;
    return 0;
}

static int execute(struct occ_store *s, const char *sql, struct occ_error *err, const char *what)
{
    int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : occ_sql_fail(s->db, s->path, rc, err, what);
}

/* Changes tables inside a transaction; the views are made anew. */
static int change_tables(struct occ_store *s, const char *sql, struct occ_error *err)
{
    int rc = 0;
    if (occ_sql_drop_nouns(s->db) != SQLITE_OK)
        rc = occ_sql_fail(s->db, s->path, sqlite3_errcode(s->db), err, "cannot remove the views");
    if (rc == 0)
        rc = execute(s, sql, err, "cannot upgrade");
    if (rc == 0 && occ_sql_make_nouns(s->db) != SQLITE_OK)
        rc = occ_sql_fail(s->db, s->path, sqlite3_errcode(s->db), err, "cannot make the views");
    return rc;
}

/* Applies one migration. Another process may have applied it while this process waited for the lock. */
static int apply(struct occ_store *s, const struct occ_schema_migration *m, struct occ_error *err)
{
    char mark[96];
    int64_t version = 0;
    (void)snprintf(mark, sizeof mark, "PRAGMA user_version=%d; PRAGMA application_id=%d", m->version,
                   OCC_SCHEMA_APPLICATION_ID);
    int rc = occ_store_begin(s, err);
    if (rc != 0)
        return rc;
    rc = occ_store_number(s, occ_store_query(s, OCC_SQL_FILE_VERSION, NULL, 0), &version, err);
    if (rc == 0 && version < m->version) {
        rc = change_tables(s, m->sql, err);
        if (rc == 0)
            rc = execute(s, mark, err, "cannot upgrade");
    }
    return occ_store_conclude(s, rc, err);
}

/* ---- columns added to a version ---- */

/* Columns that files of the same version may lack; nullable, so that a program that does not know them writes
 * the file too. Columns of one table follow each other. */
static const struct added {
    const char *table, *noun, *column, *type;
} added[] = {
    {"stored_run", "run", "slurm_account", "TEXT"},
    {"stored_run", "run", "slurm_partition", "TEXT"},
    {"stored_run", "run", "slurm_qos", "TEXT"},
    {"stored_run", "run", "slurm_array_job", "TEXT"},
    {"stored_run", "run", "slurm_array_task", "TEXT"},
    {"stored_device_second", "device_second", "energy_mj", "INTEGER"},
    {"stored_device_second", "device_second", "energy_ns", "INTEGER"},
};
enum { N_ADDED = sizeof added / sizeof *added };

/* Tries to prepare a statement: before it fails for a missing column, SQLite reads the schema again if
 * another process has changed it. */
static bool has_column(struct occ_store *s, const struct added *a)
{
    char sql[96];
    sqlite3_stmt *stmt = NULL;
    (void)snprintf(sql, sizeof sql, "SELECT %s FROM main.%s", a->column, a->table);
    int rc = sqlite3_prepare_v2(s->db, sql, -1, &stmt, NULL);
    (void)sqlite3_finalize(stmt);
    return (rc & 0xff) != SQLITE_ERROR;
}

static bool lacks_columns(struct occ_store *s)
{
    for (size_t i = 0; i < N_ADDED; i++)
        if (!has_column(s, &added[i]))
            return true;
    return false;
}

/* Adds the columns to the file. Another process may have added them while this process waited for the lock.
 */
static int add_columns(struct occ_store *s, struct occ_error *err)
{
    int rc = occ_store_begin(s, err);
    if (rc != 0)
        return rc;
    sqlite3_str *text = sqlite3_str_new(s->db);
    for (size_t i = 0; i < N_ADDED; i++)
        if (!has_column(s, &added[i]))
            sqlite3_str_appendf(text, "ALTER TABLE %s ADD COLUMN %s %s;", added[i].table, added[i].column,
                                added[i].type);
    bool has_memory = sqlite3_str_errcode(text) == SQLITE_OK;
    char *sql = sqlite3_str_finish(text);
    rc = !has_memory ? occ_no_memory(err) : sql ? change_tables(s, sql, err) : 0;
    sqlite3_free(sql);
    return occ_store_conclude(s, rc, err);
}

/* Hides the table of added[low], and its view, by temporary views, in which its missing columns are NULL.
 * Columns [low, high) are of this table. */
static int imagine_table(struct occ_store *s, size_t low, size_t high, struct occ_error *err)
{
    const struct added *a = &added[low];
    bool lacks = false;
    sqlite3_str *text = sqlite3_str_new(s->db);
    sqlite3_str_appendf(text, "CREATE TEMP VIEW %s AS SELECT *", a->table);
    for (size_t i = low; i < high; i++) {
        if (has_column(s, &added[i]))
            continue;
        sqlite3_str_appendf(text, ", NULL AS %s", added[i].column);
        lacks = true;
    }
    sqlite3_str_appendf(text, " FROM main.%s", a->table);
    char *sql = sqlite3_str_finish(text);
    int rc = !sql ? occ_no_memory(err) : lacks ? execute(s, sql, err, "cannot read") : 0;
    sqlite3_free(sql);
    return rc != 0 || !lacks || occ_sql_hide_noun(s->db, a->noun) == SQLITE_OK
               ? rc
               : occ_sql_fail(s->db, s->path, sqlite3_errcode(s->db), err, "cannot read");
}

static int imagine_columns(struct occ_store *s, struct occ_error *err)
{
    int rc = 0;
    for (size_t low = 0, high = 0; low < N_ADDED && rc == 0; low = high) {
        while (high < N_ADDED && strcmp(added[high].table, added[low].table) == 0)
            high++;
        rc = imagine_table(s, low, high, err);
    }
    return rc;
}

static int complete_columns(struct occ_store *s, struct occ_error *err)
{
    return !lacks_columns(s)                   ? 0
           : s->options.mode == OCC_STORE_READ ? imagine_columns(s, err)
                                               : add_columns(s, err);
}

/* ---- opening ---- */

/* SQLite answers "wal" if the file system supports shared memory; another journal would let readers block the
 * writer. */
static int ask_for_wal(struct occ_store *s, struct occ_error *err)
{
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_USE_WAL, NULL, 0);
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err)) {
        const char *mode = (const char *)sqlite3_column_text(stmt, 0);
        if (!mode || strcmp(mode, "wal") != 0)
            rc = occ_fail(err, OCC_E_INVALID,
                          "%s: this file system cannot hold SQLite's write-ahead log (journal mode stays "
                          "'%s'); choose a file on a local disk with --db FILE (-d)",
                          s->path, mode ? mode : "unknown");
    }
    return rc;
}

/* busy_timeout does not apply to a switch to WAL while another process creates the same file: retry. */
static int switch_to_wal(struct occ_store *s, struct occ_error *err)
{
    int64_t until_ns = occ_monotonic_ns() + s->options.busy_timeout_ms * INT64_C(1000000);
    int rc;
    while ((rc = ask_for_wal(s, err)) == OCC_E_BUSY && occ_monotonic_ns() < until_ns)
        (void)sqlite3_sleep(WAL_PAUSE_MS);
    return rc;
}

/* A file without tables is synchronised once, by make_durable(): ten times would take 20 to 40 ms on a disk,
 * and a program waits for that. Only a file without pages accepts auto_vacuum, which a smaller quota needs to
 * shrink the file. secure_delete=FAST overwrites deleted rows in pages that are written anyway: texts of
 * removed runs leave the file. */
static int set_up_writing(struct occ_store *s, int64_t version, struct occ_error *err)
{
    int rc = 0;
    if (version == 0)
        rc = execute(s, "PRAGMA synchronous=OFF; PRAGMA auto_vacuum=INCREMENTAL", err, "cannot set up");
    if (rc == 0)
        rc = switch_to_wal(s, err);
    if (rc == 0)
        rc = execute(
            s,
            "PRAGMA wal_autocheckpoint=1000; PRAGMA journal_size_limit=67108864; PRAGMA secure_delete=FAST",
            err, "cannot set up");
    return rc;
}

/* Sets the durability of commits to the options, and synchronises the first page of a new file. */
static int make_durable(struct occ_store *s, int64_t version, struct occ_error *err)
{
    sqlite3_file *file = NULL;
    int rc = execute(s, s->options.durable_full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL",
                     err, "cannot set up");
    if (rc != 0 || version != 0)
        return rc;
    rc = sqlite3_file_control(s->db, NULL, SQLITE_FCNTL_FILE_POINTER, &file);
    if (rc == SQLITE_OK && file && file->pMethods)
        rc = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
    return rc == SQLITE_OK ? 0 : occ_sql_fail(s->db, s->path, rc, err, "cannot set up");
}

/* Accepts this version and the previous one: a writer may be updated later than its readers. */
static int check_reading(struct occ_store *s, int64_t version, struct occ_error *err)
{
    int newest = occ_store_newest_version();
    if (version == 0)
        return occ_fail(err, OCC_E_CORRUPT, "%s: is empty, not a history", s->path);
    if (version >= newest - 1)
        return complete_columns(s, err);
    return occ_fail(err, OCC_E_VERSION,
                    "%s: written by an older version of occtrace (schema %lld, this one reads %d and %d); "
                    "'occtraced --migrate %s' changes it into one of this version",
                    s->path, (long long)version, newest - 1, newest, s->path);
}

int occ_store_make_tables(struct occ_store *s, int64_t version, struct occ_error *err)
{
    int rc = 0;
    for (const struct occ_schema_migration *m = occ_schema_migrations; rc == 0 && m->version != 0; m++)
        if (m->version > version)
            rc = apply(s, m, err);
    return rc == 0 ? complete_columns(s, err) : rc;
}

int occ_store_migrate(struct occ_store *s, struct occ_error *err)
{
    int64_t version = 0;
    int rc = occ_store_file_version(s, &version, err);
    if (rc != 0)
        return rc;
    if (s->options.mode == OCC_STORE_READ)
        return check_reading(s, version, err);
    rc = set_up_writing(s, version, err);
    if (rc == 0)
        rc = occ_store_make_tables(s, version, err);
    return rc == 0 ? make_durable(s, version, err) : rc;
}
