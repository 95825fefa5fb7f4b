/* See filesystem.h. Numbers: statfs(2) and the kernel's linux/magic.h; Lustre, GPFS and BeeGFS from the
 * f_type that GNU coreutils' stat(1) names. */
#include "filesystem.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

static const struct {
    unsigned long magic;
    const char *name;
} network[] = {
    {0x6969, "NFS"},      {0x517b, "SMB"},          {0xff534d42, "CIFS"}, {0xfe534d42, "SMB2"},
    {0x00c36400, "Ceph"}, {0x0bd00bd0, "Lustre"},   {0x47504653, "GPFS"}, {0x19830326, "BeeGFS"},
    {0x5346414f, "AFS"},  {0x6b414653, "AFS"},      {0x01021997, "9P"},   {0x73757245, "Coda"},
    {0x564c, "NCP"},      {0x20030528, "OrangeFS"}, {0x01161970, "GFS2"}, {0x7461636f, "OCFS2"},
};

/* statfs of the path, or of the nearest directory above it that exists. */
static int nearest_statfs(const char *path, struct statfs *ret)
{
    char above[PATH_MAX];
    int rc = statfs(path, ret);
    (void)snprintf(above, sizeof above, "%s", path);
    while (rc != 0 && errno == ENOENT) {
        char *slash = strrchr(above, '/');
        if (!slash)
            return statfs(".", ret);
        if (slash == above)
            return statfs("/", ret);
        *slash = '\0';
        rc = statfs(above, ret);
    }
    return rc;
}

const char *occ_filesystem_network(const char *path)
{
    struct statfs status;
    if (nearest_statfs(path, &status) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof network / sizeof *network; i++)
        if (((unsigned long)status.f_type & 0xffffffff) == network[i].magic)
            return network[i].name;
    return NULL;
}
