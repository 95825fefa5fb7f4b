/* Opening and closing the history. A file is written only after it is known to be a history (or empty) that
 * this version understands. One thread for each handle. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "filesystem.h"
#include "internal.h"
#include "packed_history.h"
#include "store/vtab/vtab.h"
#include "support/cleanup.h"
#include "support/paths.h"

#define DEFAULT_CHUNK_ROWS      65536u
#define DEFAULT_BUSY_TIMEOUT_MS 10000u
#define BUSY_TIMEOUT_MAX_MS     3600000u
/* A writer hardly reads; 2 or 64 MB made no difference to it (measured). */
#define WRITER_CACHE_KIB 4096
#define READER_CACHE_KIB 16384

/* Creates a missing file with mode 0640, which SQLite would create with mode 0644. An existing file is left
 * alone: closing a descriptor of a database that this process has open elsewhere would drop SQLite's locks on
 * it. */
static int create_file(const char *path, const struct occ_packed_history *empty, struct occ_error *err)
{
    struct stat status;
    if (stat(path, &status) == 0)
        return S_ISREG(status.st_mode) ? 0 : occ_fail(err, OCC_E_INVALID, "%s: is not a regular file", path);
    int rc = occ_path_make_parents(path, err);
    if (rc != 0 || (empty && occ_packed_history_write(empty, path)))
        return rc;
    _cleanup_(occ_closep) int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd < 0 && errno != EEXIST)
        return occ_fail_errno(err, errno, "%s: cannot make", path);
    return 0;
}

bool occ_store_create(const char *path, const struct occ_store_options *options)
{
    struct stat status;
    return options->empty && !occ_filesystem_network(path) && stat(path, &status) != 0 &&
           occ_path_make_parents(path, NULL) == 0 && occ_packed_history_write(options->empty, path);
}

static int check_readable(const char *path, struct occ_error *err)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return occ_fail_errno(err, errno, "%s: cannot open", path);
    if (!S_ISREG(status.st_mode))
        return occ_fail(err, OCC_E_INVALID, "%s: is not a regular file", path);
    if (access(path, R_OK) != 0)
        return occ_fail_errno(err, errno, "%s: cannot open", path);
    return 0;
}

int occ_store_connect(struct occ_store *s, const char *name, int flags, struct occ_error *err)
{
    int rc = sqlite3_open_v2(name, &s->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    if (rc != SQLITE_OK)
        return occ_sql_fail(s->db, s->path, rc, err, "cannot open");
    (void)sqlite3_busy_timeout(s->db, (int)s->options.busy_timeout_ms);
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    char pragmas[192];
    (void)snprintf(pragmas, sizeof pragmas,
                   "PRAGMA locking_mode=%s; PRAGMA cell_size_check=ON; PRAGMA foreign_keys=ON; PRAGMA "
                   "temp_store=MEMORY; PRAGMA cache_size=-%u",
                   s->is_alone ? "EXCLUSIVE" : "NORMAL", s->options.cache_kib);
    rc = sqlite3_exec(s->db, pragmas, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = occ_store_register(s->db);
    if (rc == SQLITE_OK)
        rc = occ_rollup_register(s->db);
    return rc == SQLITE_OK ? 0 : occ_sql_fail(s->db, s->path, rc, err, "cannot open");
}

void occ_store_disconnect(struct occ_store *s)
{
    for (size_t i = 0; i < OCC_SQL_COUNT; i++) {
        (void)sqlite3_finalize(s->statements[i]);
        s->statements[i] = NULL;
    }
    (void)sqlite3_close_v2(s->db);
    s->db = NULL;
}

/* "file:PATH?immutable=1" with everything that means something in a URI escaped. */
static char *immutable_uri(const char *path)
{
    static const char digits[] = "0123456789ABCDEF";
    char *uri = malloc(3 * strlen(path) + 32), *at = uri;
    if (!uri)
        return NULL;
    at = stpcpy(at, "file:");
    for (const unsigned char *c = (const unsigned char *)path; *c; c++) {
        if (strchr("?#%", *c) || *c < 0x20 || *c > 0x7e) {
            *at++ = '%';
            *at++ = digits[*c >> 4];
            *at++ = digits[*c & 15];
        } else {
            *at++ = (char)*c;
        }
    }
    (void)stpcpy(at, "?immutable=1");
    return uri;
}

/* Reads the status of the write-ahead log and its path, `ret_path` (malloc'ed). False: there is no log. */
static bool find_log(const struct occ_store *s, char **ret_path, struct stat *ret_status)
{
    if (asprintf(ret_path, "%s-wal", s->path) < 0)
        *ret_path = NULL;
    return *ret_path && stat(*ret_path, ret_status) == 0;
}

/* SQLite cannot create its shared memory in a directory without write permission (a read-only mount, another
 * user's) or on a full disk. Without a write-ahead log no writer can be active either, so the file is read as
 * it is. */
static int reopen_immutable(struct occ_store *s, struct occ_error *err)
{
    _cleanup_(occ_freep) char *wal = NULL;
    _cleanup_(occ_freep) char *uri = immutable_uri(s->path);
    struct stat status;
    bool has_log = find_log(s, &wal, &status);
    if (!uri || !wal)
        return occ_no_memory(err);
    if (has_log && status.st_size > 0)
        return err ? err->code : OCC_E_IO;
    occ_store_disconnect(s);
    int rc = occ_store_connect(s, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, err);
    return rc != 0 ? rc : occ_store_migrate(s, err);
}

/* A copy that no process writes can be read from a network file system. */
static int open_on_network(struct occ_store *s, const char *network, struct occ_error *err)
{
    (void)occ_fail(err, OCC_E_INVALID,
                   "%s: is on %s, and its last writer has not closed it: read it on the host that writes it, "
                   "or copy it to a local disk",
                   s->path, network);
    return reopen_immutable(s, err);
}

static int open_for_reading(struct occ_store *s, struct occ_error *err)
{
    int rc = check_readable(s->path, err);
    if (rc != 0)
        return rc;
    const char *network = occ_filesystem_network(s->path);
    if (network)
        return open_on_network(s, network, err);
    struct occ_error first = OCC_ERROR_INIT;
    rc = occ_store_connect(s, s->path, SQLITE_OPEN_READONLY, &first);
    if (rc == 0)
        rc = occ_store_migrate(s, &first);
    int code = rc != 0 ? sqlite3_errcode(s->db) & 0xff : SQLITE_OK;
    if (code == SQLITE_CANTOPEN || code == SQLITE_READONLY || code == SQLITE_IOERR)
        rc = reopen_immutable(s, &first);
    if (rc != 0 && err)
        *err = first;
    return rc;
}

static void note_log(struct occ_store *s)
{
    _cleanup_(occ_freep) char *path = NULL;
    struct stat status;
    if (!find_log(s, &path, &status))
        return;
    s->log_dev = status.st_dev;
    s->log_ino = status.st_ino;
}

static int open_for_writing(struct occ_store *s, struct occ_error *err)
{
    const char *network = occ_filesystem_network(s->path);
    if (network)
        return occ_fail(
            err, OCC_E_INVALID,
            "%s: is on %s, a network file system, where a history would be damaged by writers on two hosts; "
            "choose a file on a local disk with --db FILE (-d), or set XDG_STATE_HOME to a local directory",
            s->path, network);
    int rc = create_file(s->path, s->options.empty, err);
    if (rc == 0)
        rc = occ_store_connect(s, s->path, SQLITE_OPEN_READWRITE, err);
    if (rc != 0)
        return rc;
    if (sqlite3_db_readonly(s->db, "main") == 1)
        return occ_fail(err, OCC_E_READ_ONLY, "%s: may not be written", s->path);
    rc = occ_store_migrate(s, err);
    if (rc == 0)
        rc = occ_quota_open(s, err);
    if (rc == 0)
        note_log(s);
    return rc;
}

/* Removes the log of a replaced file: SQLite would apply the old log to the new file. */
static void remove_stale_log(const struct occ_store *s)
{
    _cleanup_(occ_freep) char *path = NULL;
    struct stat status;
    if (find_log(s, &path, &status) && status.st_dev == s->log_dev && status.st_ino == s->log_ino)
        (void)unlink(path);
}

static bool join_workspace(struct occ_store *s)
{
    s->work = s->options.like ? s->options.like->work : calloc(1, sizeof *s->work);
    s->options.like = NULL; /* `like` may be closed before this store */
    if (!s->work || s->work->n_stores++ > 0)
        return s->work != NULL;
    s->work->encoder = occ_columns_encoder_new();
    s->work->decoder = occ_columns_decoder_new();
    return s->work->encoder && s->work->decoder;
}

static void leave_workspace(struct occ_workspace *w)
{
    if (!w || --w->n_stores > 0)
        return;
    occ_columns_encoder_free(w->encoder);
    occ_columns_decoder_free(w->decoder);
    free(w->rows);
    free(w);
}

static int open_parts(struct occ_store *s, struct occ_error *err)
{
    if (!s->path || !join_workspace(s))
        return occ_no_memory(err);
    return s->options.mode == OCC_STORE_WRITE ? open_for_writing(s, err) : open_for_reading(s, err);
}

/* Makes a store without a file. NULL: no memory. */
static struct occ_store *new_store(const char *path, const struct occ_store_options *options)
{
    struct occ_store *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->options = *options;
    if (s->options.chunk_rows == 0)
        s->options.chunk_rows = DEFAULT_CHUNK_ROWS;
    if (s->options.chunk_rows > OCC_COLUMNS_MAX_ROWS)
        s->options.chunk_rows = OCC_COLUMNS_MAX_ROWS;
    if (s->options.busy_timeout_ms == 0)
        s->options.busy_timeout_ms = DEFAULT_BUSY_TIMEOUT_MS;
    if (s->options.cache_kib == 0)
        s->options.cache_kib = s->options.mode == OCC_STORE_WRITE ? WRITER_CACHE_KIB : READER_CACHE_KIB;
    if (s->options.busy_timeout_ms > BUSY_TIMEOUT_MAX_MS)
        s->options.busy_timeout_ms = BUSY_TIMEOUT_MAX_MS;
    s->path = strdup(path);
    return s;
}

/* Connects to an empty database, on which all statements fail. */
static int connect_nothing(struct occ_store *s, struct occ_error *err)
{
    return occ_store_connect(s, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
}

int occ_store_open(const char *path, const struct occ_store_options *options, struct occ_store **ret_store,
                   struct occ_error *err)
{
    struct occ_store *s = new_store(path, options);
    int rc = s ? open_parts(s, err) : occ_no_memory(err);
    if (rc == 0)
        *ret_store = s;
    else
        occ_store_close(s);
    return rc;
}

int occ_store_open_later(const char *path, const struct occ_store_options *options,
                         struct occ_store **ret_store, struct occ_error *err)
{
    struct occ_store *s = new_store(path, options);
    int rc = s && s->path && join_workspace(s) ? connect_nothing(s, err) : occ_no_memory(err);
    if (rc != 0) {
        occ_store_close(s);
        return rc;
    }
    s->has_no_file = true;
    *ret_store = s;
    return 0;
}

int occ_store_open_memory(struct occ_store **ret_store, struct occ_error *err)
{
    struct occ_store *s = calloc(1, sizeof *s);
    if (!s)
        return occ_no_memory(err);
    s->options.cache_kib = READER_CACHE_KIB;
    s->path = strdup("a history in memory");
    int rc = s->path && join_workspace(s) ? 0 : occ_no_memory(err);
    if (rc == 0)
        rc = occ_store_connect(s, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
    if (rc == 0)
        rc = occ_store_make_tables(s, 0, err);
    if (rc == 0)
        *ret_store = s;
    else
        occ_store_close(s);
    return rc;
}

static bool is_any(const struct occ_run_state *r)
{
    (void)r;
    return true;
}

static void drop_pending(struct occ_store *s)
{
    occ_runs_forget(s, is_any);
    s->n_totals = s->n_measured = 0;
    occ_series_free(&s->series);
    s->series = (struct occ_series){0};
}

const char *occ_store_reopen_reason(const struct occ_store *s)
{
    int moved = 0; /* a database in memory has no file to check */
    if (s->has_no_file)
        return "could not be opened";
    if (s->bulk_failed)
        return "had a transaction that failed";
    return sqlite3_file_control(s->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || moved
               ? "was deleted or replaced"
               : NULL;
}

int occ_store_reopen(struct occ_store *s, struct occ_error *err)
{
    int moved = 0; /* otherwise the log belongs to this file, and has data that is not in the file yet */
    (void)sqlite3_file_control(s->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    drop_pending(s);
    s->bulk = false;
    /* close before opening: both connections may share the old file's -shm, and a process's locks on it */
    occ_store_disconnect(s);
    if (moved)
        remove_stale_log(s);
    int rc = open_for_writing(s, err);
    s->bulk_failed &= rc != 0;
    s->has_no_file &= rc != 0;
    if (rc == 0)
        return 0;
    occ_store_disconnect(s);
    (void)connect_nothing(s, NULL);
    return rc;
}

void occ_store_close(struct occ_store *s)
{
    if (!s)
        return;
    if (s->db)
        occ_store_disconnect(s);
    drop_pending(s);
    free(s->runs);
    free(s->totals);
    free(s->measured);
    free(s->bytes.data);
    leave_workspace(s->work);
    free(s->path);
    free(s);
}

struct sqlite3 *occ_store_sqlite(struct occ_store *s)
{
    return s->db;
}

int occ_store_register(struct sqlite3 *db)
{
    int rc = occ_launch_table_register(db);
    return rc == SQLITE_OK ? occ_sample_table_register(db) : rc;
}
