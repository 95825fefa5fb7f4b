/* See groups.h. */
#include "groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "text.h"

/* The number in a line NAME:PASSWORD:GID:MEMBERS. */
static bool read_gid(char *line, const char *name, uint32_t *ret_gid)
{
    size_t length = strlen(name);
    uint64_t gid = 0;
    char *at =
        strncmp(line, name, length) == 0 && line[length] == ':' ? strchr(line + length + 1, ':') : NULL;
    if (!at)
        return false;
    at[1 + strcspn(at + 1, ":\n")] = '\0';
    if (occ_parse_u64(at + 1, 0, UINT32_MAX - 1, &gid, NULL) != 0)
        return false;
    *ret_gid = (uint32_t)gid;
    return true;
}

bool occ_group_find(const char *path, const char *name, uint32_t *ret_gid)
{
    _cleanup_(occ_freep) char *line = NULL;
    size_t allocated = 0;
    bool is_found = false;
    FILE *file = fopen(path, "re");
    while (file && !is_found && getline(&line, &allocated, file) > 0)
        is_found = read_gid(line, name, ret_gid);
    if (file)
        (void)fclose(file);
    return is_found;
}

bool occ_group_is_local(const char *name, uint32_t *ret_gid)
{
    return occ_group_find("/etc/group", name, ret_gid);
}
