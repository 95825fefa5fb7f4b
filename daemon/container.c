/* See container.h. Reads at most CGROUP_BYTES of one file in /proc; one thread. */
#include "container.h"

#include <stdio.h>
#include <string.h>

#include "support/cleanup.h"

#define CGROUP_BYTES 8192

static bool is_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool occ_container_find(const char *cgroups, char id[OCC_CONTAINER_ID_DIGITS + 1])
{
    bool found = false;
    for (const char *at = cgroups; *at;) {
        size_t run = 0;
        while (is_digit(at[run]))
            run++;
        if (run == OCC_CONTAINER_ID_DIGITS) {
            memcpy(id, at, run);
            id[run] = '\0';
            found = true;
        }
        at += run ? run : 1;
    }
    return found;
}

char *occ_container_of(int32_t pid)
{
    char path[64], text[CGROUP_BYTES], id[OCC_CONTAINER_ID_DIGITS + 1];
    if (pid <= 0)
        return NULL;
    (void)snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    _cleanup_(occ_fclosep) FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    return occ_container_find(text, id) ? strdup(id) : NULL;
}
