/* See public_copy.h. */
#include "public_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load_child.h"

static bool others_may_start(const char *path)
{
    char part[PATH_MAX];
    struct stat status;
    if (snprintf(part, sizeof part, "%s", path) >= PATH_MAX)
        return false;
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (stat(part, &status) != 0 || !(status.st_mode & S_IXOTH))
            return false;
        *slash = '/';
    }
    return stat(path, &status) == 0 && (status.st_mode & (S_IROTH | S_IXOTH)) == (S_IROTH | S_IXOTH);
}

static int copy_file(const char *from, const char *to, struct occ_error *err)
{
    struct stat status;
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    bool good = in >= 0 && out >= 0 && fstat(in, &status) == 0;
    for (off_t left = good ? status.st_size : 0; good && left > 0;) {
        ssize_t n = sendfile(out, in, NULL, (size_t)left);
        good = n > 0;
        left -= n;
    }
    good = good && fchmod(out, 0755) == 0;
    int why = errno;
    if (in >= 0)
        (void)close(in);
    if (out >= 0 && close(out) != 0 && good)
        return occ_fail_errno(err, errno, "cannot write %s", to);
    return good ? 0 : occ_fail_errno(err, why, "cannot copy %s to %s", from, to);
}

int gpu_public_copy_make(struct gpu_public_copy *copy, const char *name, struct occ_error *err)
{
    char original[PATH_MAX];
    copy->directory[0] = '\0';
    if (!gpu_child_path_beside(name, original))
        return occ_fail(err, OCC_E_NOT_FOUND, "cannot say where %s is", name);
    (void)snprintf(copy->program, sizeof copy->program, "%s", original);
    if (others_may_start(original))
        return 0;
    (void)snprintf(copy->directory, sizeof copy->directory, "/tmp/occ-kit-XXXXXX");
    if (!mkdtemp(copy->directory) || chmod(copy->directory, 0755) != 0) {
        copy->directory[0] = '\0';
        return occ_fail_errno(err, errno, "cannot make a directory in /tmp");
    }
    (void)snprintf(copy->program, sizeof copy->program, "%s/%s", copy->directory, name);
    return copy_file(original, copy->program, err);
}

void gpu_public_copy_remove(struct gpu_public_copy *copy)
{
    if (!copy->directory[0])
        return;
    (void)unlink(copy->program);
    (void)rmdir(copy->directory);
    copy->directory[0] = '\0';
}
