/* See notify.h. */
#include "notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/clock.h"
#include "support/text.h"

void occ_notify_reloading(void)
{
    char text[64];
    (void)snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%lld",
                   (long long)(occ_monotonic_ns() / 1000));
    occ_notify(text);
}

int64_t occ_notify_watchdog_ns(void)
{
    const char *text = secure_getenv("WATCHDOG_USEC"), *pid = secure_getenv("WATCHDOG_PID");
    uint64_t us = 0, own = (uint64_t)getpid();
    if (!text || occ_parse_u64(text, 1, INT64_MAX / 1000, &us, NULL) != 0 ||
        (pid && occ_parse_u64(pid, own, own, &own, NULL) != 0))
        return 0;
    return (int64_t)us * 1000 / 2;
}

void occ_notify(const char *message)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *name = secure_getenv("NOTIFY_SOCKET");
    size_t n = name ? strlen(name) : 0;
    if (n < 2 || n >= sizeof address.sun_path || (name[0] != '/' && name[0] != '@'))
        return;
    memcpy(address.sun_path, name, n);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, message, strlen(message), MSG_NOSIGNAL, (const struct sockaddr *)&address,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
    (void)close(fd);
}
