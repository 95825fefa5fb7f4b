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

/* Columns of stored_run that files of the same version may lack; nullable, so that a program that does not
 * know them writes the file too. */
static const char *const added[] = {"slurm_account", "slurm_partition", "slurm_qos", "slurm_array_job",
                                    "slurm_array_task"};

/* Tries to prepare a statement: before it fails for a missing column, SQLite reads the schema again if
 * another process has changed it. */
static bool has_column(struct occ_store *s, const char *name)
{
    char sql[96];
    sqlite3_stmt *stmt = NULL;
    (void)snprintf(sql, sizeof sql, "SELECT %s FROM main.stored_run", name);
    int rc = sqlite3_prepare_v2(s->db, sql, -1, &stmt, NULL);
    (void)sqlite3_finalize(stmt);
    return (rc & 0xff) != SQLITE_ERROR;
}

/* Returns a text with `format` for each column that the file lacks, "" for none; NULL: no memory. */
static char *for_missing(struct occ_store *s, const char *format)
{
    sqlite3_str *sql = sqlite3_str_new(s->db);
    sqlite3_str_appendall(sql, "");
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        if (!has_column(s, added[i]))
            sqlite3_str_appendf(sql, format, added[i]);
    return sqlite3_str_finish(sql);
}

/* Adds the columns to the file. Another process may have added them while this process waited for the lock.
 */
static int add_columns(struct occ_store *s, struct occ_error *err)
{
    int rc = occ_store_begin(s, err);
    if (rc != 0)
        return rc;
    char *sql = for_missing(s, "ALTER TABLE stored_run ADD COLUMN %s TEXT;");
    rc = sql && *sql ? change_tables(s, sql, err) : 0;
    sqlite3_free(sql);
    return occ_store_conclude(s, rc, err);
}

/* Hides the table and its view by temporary views, in which the columns are NULL. */
static int imagine_columns(struct occ_store *s, const char *columns, struct occ_error *err)
{
    char *sql = sqlite3_mprintf("CREATE TEMP VIEW stored_run AS SELECT *%s FROM main.stored_run", columns);
    int rc = sql ? execute(s, sql, err, "cannot read") : occ_no_memory(err);
    sqlite3_free(sql);
    return rc != 0 || occ_sql_hide_noun(s->db, "run") == SQLITE_OK
               ? rc
               : occ_sql_fail(s->db, s->path, sqlite3_errcode(s->db), err, "cannot read");
}

static int complete_columns(struct occ_store *s, struct occ_error *err)
{
    char *missing = for_missing(s, ", NULL AS %s");
    int rc = 0;
    if (missing && *missing && s->options.mode == OCC_STORE_READ)
        rc = imagine_columns(s, missing, err);
    else if (missing && *missing)
        rc = add_columns(s, err);
    sqlite3_free(missing);
    return rc;
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
 * shrink the file. */
static int set_up_writing(struct occ_store *s, int64_t version, struct occ_error *err)
{
    int rc = 0;
    if (version == 0)
        rc = execute(s, "PRAGMA synchronous=OFF; PRAGMA auto_vacuum=INCREMENTAL", err, "cannot set up");
    if (rc == 0)
        rc = switch_to_wal(s, err);
    if (rc == 0)
        rc = execute(
            s, "PRAGMA wal_autocheckpoint=1000; PRAGMA journal_size_limit=67108864; PRAGMA secure_delete=OFF",
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
