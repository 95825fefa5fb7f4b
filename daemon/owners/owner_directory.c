/* See owner_directory.h. */
#include "owner_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <acl/libacl.h>
#include <sys/acl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/cleanup.h"
#include "support/groups.h"
#include "support/log.h"
#include "support/paths.h"
#include "support/text.h"

#define SHIP_GROUP  "occtrace-ship" /* may read every history */
#define ACCESS_TEXT 160

static int set_access(const char *path, acl_type_t type, const char *text, struct occ_error *err)
{
    acl_t acl = acl_from_text(text);
    int failed = acl ? acl_set_file(path, type, acl) : -1;
    int why = errno;
    if (acl)
        (void)acl_free(acl);
    if (failed && why == EOPNOTSUPP)
        return occ_fail(err, OCC_E_INVALID,
                        "the file system of %s has no access control lists, by which an owner may read his "
                        "history: use one that has, or set users.split to none",
                        path);
    return failed ? occ_fail_errno(err, why, "cannot set the access control list of %s", path) : 0;
}

/* Access control list entries for readers other than root: `right` is "r-x" for the directory, "r--" for
 * files. */
static void access_text(char text[ACCESS_TEXT], const char *own, const char *right, int64_t uid)
{
    uint32_t gid;
    int n = snprintf(text, ACCESS_TEXT, "u::%s,g::%s,o::---,m::%s", own, right, right);
    if (uid > 0)
        n += snprintf(text + n, (size_t)(ACCESS_TEXT - n), ",u:%lld:%s", (long long)uid, right);
    if (occ_group_is_local(SHIP_GROUP, &gid)) /* by number: with a name libacl would call the name services */
        (void)snprintf(text + n, (size_t)(ACCESS_TEXT - n), ",g:%u:%s", gid, right);
}

int occ_owner_directory_make(const char *file, int64_t uid, struct occ_error *err)
{
    char text[ACCESS_TEXT];
    struct stat status;
    _cleanup_(occ_freep) char *directory = strdup(file);
    if (!directory)
        return occ_no_memory(err);
    int code = occ_path_make_passable_parents(file, err);
    if (code != 0)
        return code;
    *strrchr(directory, '/') = '\0';
    if (lstat(directory, &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid())
        return occ_fail(err, OCC_E_DENIED, "%s is not a directory of the daemon's user", directory);
    access_text(text, "rwx", "r-x", uid);
    code = set_access(directory, ACL_TYPE_ACCESS, text, err);
    access_text(text, "rw-", "r--", uid);
    return code == 0 ? set_access(directory, ACL_TYPE_DEFAULT, text, err) : code;
}

/* true if all users may pass, or an access control list may let them pass. */
static bool others_may_enter(const char *directory)
{
    struct stat status;
    return stat(directory, &status) != 0 || (status.st_mode & S_IXOTH) || acl_extended_file(directory) == 1;
}

int occ_owner_directory_check_path(const char *path, struct occ_error *err)
{
    _cleanup_(occ_freep) char *directory = strdup(path);
    if (!directory)
        return occ_no_memory(err);
    for (char *slash = strchr(directory + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (!others_may_enter(directory))
            return occ_fail(
                err, OCC_E_DENIED,
                "users may not enter the directory %s, and so not read their histories beside %s: "
                "chmod o+x it, choose another database.path, or set users.split to none",
                directory, path);
        *slash = '/';
    }
    return 0;
}

int occ_owner_directory_let_shipper_list(const char *path, struct occ_error *err)
{
    char text[ACCESS_TEXT];
    uint32_t gid;
    if (strcmp(path, OCC_PATH_SERVICE_DIRECTORY "/history.db") != 0 || !occ_group_is_local(SHIP_GROUP, &gid))
        return 0;
    int status = occ_path_make_passable_parents(path, err); /* missing at the first start without systemd */
    if (status != 0)
        return status;
    (void)snprintf(text, sizeof text, "u::rwx,g::--x,o::--x,m::r-x,g:%u:r-x", gid);
    return set_access(OCC_PATH_SERVICE_DIRECTORY, ACL_TYPE_ACCESS, text, err);
}

void occ_owner_directory_note_use(const char *path)
{
    _cleanup_(occ_freep) char *used = NULL;
    if (occ_format_text(&used, NULL, "%.*s" OCC_OWNER_USED_FILE, (int)(strrchr(path, '/') + 1 - path),
                        path) != 0)
        return;
    int fd = open(used, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0640);
    if (fd < 0)
        return;
    (void)futimens(fd, NULL);
    (void)close(fd);
}

void occ_owner_directory_remove(const char *path, const char *why)
{
    static const char *const suffixes[] = {"-wal", "-shm", ""};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        _cleanup_(occ_freep) char *file = NULL;
        if (occ_format_text(&file, NULL, "%s%s", path, suffixes[i]) == 0)
            (void)unlink(file);
    }
    _cleanup_(occ_freep) char *directory = strdup(path);
    if (directory) {
        *strrchr(directory, '/') = '\0';
        _cleanup_(occ_freep) char *used = NULL;
        if (occ_format_text(&used, NULL, "%s/" OCC_OWNER_USED_FILE, directory) == 0)
            (void)unlink(used);
        (void)rmdir(directory);
    }
    occ_log(OCC_LOG_INFO, "%s is removed %s", path, why);
}
