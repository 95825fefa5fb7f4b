/* See input.h. */
#include "input.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "support/array.h"
#include "support/cleanup.h"

int cli_read_input(const char *path, void **ret_data, size_t *ret_bytes, struct occ_error *err)
{
    _cleanup_(occ_fclosep) FILE *own = strcmp(path, "-") == 0 ? NULL : fopen(path, "re");
    _cleanup_(occ_freep) void *data = NULL;
    FILE *in = strcmp(path, "-") == 0 ? stdin : own;
    size_t n = 0, room = 0, got = 1;
    struct stat status;
    if (!in)
        return occ_fail_errno(err, errno, "cannot open %s", path);
    if (own && fstat(fileno(own), &status) == 0 && S_ISCHR(status.st_mode)) /* /dev/zero has no end */
        return occ_fail(err, OCC_E_INVALID, "%s is a device, not a file", path);
    while (got > 0 && occ_grow(&data, &room, n, CLI_INPUT_MAX_BYTES, 1)) {
        got = fread((char *)data + n, 1, room - n, in);
        n += got;
    }
    if (ferror(in))
        return occ_fail_errno(err, errno, "cannot read %s", path);
    if (got > 0)
        return occ_fail(err, OCC_E_NO_MEMORY, "%s: larger than 8 GiB, or out of memory", path);
    *ret_data = occ_take(data);
    *ret_bytes = n;
    return 0;
}
