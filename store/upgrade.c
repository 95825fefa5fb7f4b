/* See upgrade.h. */
#include "upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"
#include "support/cleanup.h"
#include "support/text.h"

#define PATIENCE_MS 200

/* Makes an empty file with the history's mode. */
static int make_file(const struct occ_store *s, const char *path, struct occ_error *err)
{
    struct stat status;
    _cleanup_(occ_closep) int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return occ_fail_errno(err, errno, "%s: cannot make", path);
    if (stat(s->path, &status) != 0 || fchmod(fd, status.st_mode & 07777) != 0)
        return occ_fail_errno(err, errno, "%s: cannot set its mode", path);
    return 0;
}

/* Copies all pages in one read transaction. */
static int copy_pages(struct occ_store *s, const char *path, struct occ_error *err)
{
    sqlite3 *copy = NULL;
    int rc = sqlite3_open_v2(path, &copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL);
    sqlite3_backup *backup = rc == SQLITE_OK ? sqlite3_backup_init(copy, "main", s->db, "main") : NULL;
    if (backup) {
        (void)sqlite3_backup_step(backup, -1);
        (void)sqlite3_backup_finish(backup); /* the error is in the copy's connection */
    }
    rc = copy ? sqlite3_extended_errcode(copy) : SQLITE_NOMEM;
    int code = rc == SQLITE_OK ? 0 : occ_sql_fail(copy, path, rc, err, "cannot copy the history to it");
    (void)sqlite3_close_v2(copy);
    return code;
}

static int back_up(struct occ_store *s, struct occ_upgrade *upgrade, struct occ_error *err)
{
    _cleanup_(occ_freep) char *path = NULL;
    int rc = occ_format_text(&path, err, "%s.schema%d", s->path, upgrade->from);
    if (rc == 0)
        rc = make_file(s, path, err);
    if (rc != 0)
        return rc;
    rc = copy_pages(s, path, err);
    if (rc != 0) {
        (void)unlink(path);
        return rc;
    }
    upgrade->backup = path;
    path = NULL;
    return 0;
}

static int upgrade_open(struct occ_store *s, bool backup, struct occ_upgrade *upgrade, struct occ_error *err)
{
    int64_t version = 0;
    int rc = occ_store_file_version(s, &version, err);
    if (rc == 0 && version == 0)
        rc = occ_fail(err, OCC_E_CORRUPT, "%s: is empty, not a history", s->path);
    upgrade->from = (int)version;
    if (rc != 0 || upgrade->from == upgrade->to)
        return rc;
    if (backup)
        rc = back_up(s, upgrade, err);
    return rc == 0 ? occ_store_migrate(s, err) : rc;
}

int occ_store_upgrade(const char *path, bool backup, struct occ_upgrade *ret_upgrade, struct occ_error *err)
{
    struct occ_error why = OCC_ERROR_INIT;
    struct occ_store s = {.path = (char *)path,
                          .options = {.mode = OCC_STORE_WRITE, .busy_timeout_ms = PATIENCE_MS},
                          .is_alone = true};
    *ret_upgrade = (struct occ_upgrade){.to = occ_store_newest_version()};
    int rc = occ_store_connect(&s, path, SQLITE_OPEN_READWRITE, &why);
    if (rc == 0)
        rc = upgrade_open(&s, backup, ret_upgrade, &why);
    occ_store_disconnect(&s);
    if (rc == OCC_E_BUSY)
        return occ_fail(err, rc, "%s: a daemon or another program has it open: end that first", path);
    if (rc != 0 && err)
        *err = why;
    return rc;
}
