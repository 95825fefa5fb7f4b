/* See segments.h. */
#include "segments.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

int sim_segments_open(const char *directory, const uint8_t uuid[SIM_UUID_BYTES], const char *suffix,
                      enum sim_access access)
{
    char path[PATH_MAX], hex[2 * SIM_UUID_BYTES + 1];
    for (size_t i = 0; i < SIM_UUID_BYTES; i++)
        snprintf(hex + 2 * i, sizeof hex - 2 * i, "%02x", uuid[i]);
    if ((size_t)snprintf(path, sizeof path, "%s/%s.%s", directory, hex, suffix) >= sizeof path)
        return -1;
    static const int flags[] = {
        [SIM_READ] = O_RDONLY, [SIM_APPEND] = O_WRONLY | O_APPEND, [SIM_UPDATE] = O_RDWR};
    return open(path, flags[access] | O_CREAT | O_CLOEXEC, 0666);
}
