/* See connection_ages.h. */
#include "connection_ages.h"

#include <sys/socket.h>

void occ_connection_ages_clear(struct occ_connection_ages ages)
{
    for (size_t i = 0; i < ages.n; i++)
        ages.entries[i].fd = -1;
}

struct occ_connection_age *occ_connection_ages_add(struct occ_connection_ages ages, int fd, int64_t now_ns)
{
    for (size_t i = 0; i < ages.n; i++)
        if (ages.entries[i].fd < 0) {
            ages.entries[i] = (struct occ_connection_age){.fd = fd, .since_ns = now_ns};
            return &ages.entries[i];
        }
    return NULL;
}

uint64_t occ_connection_ages_end(struct occ_connection_ages ages, int64_t limit_ns, int64_t now_ns)
{
    int64_t least_ns = INT64_MAX;
    for (size_t i = 0; i < ages.n; i++) {
        const struct occ_connection_age *entry = &ages.entries[i];
        int64_t left_ns = entry->since_ns + limit_ns - now_ns;
        if (entry->fd < 0)
            continue;
        if (left_ns <= 0)
            (void)shutdown(entry->fd, SHUT_RDWR);
        else if (left_ns < least_ns)
            least_ns = left_ns;
    }
    return least_ns == INT64_MAX ? UINT64_MAX : (uint64_t)least_ns / 1000000 + 1;
}
