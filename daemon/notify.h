/* Reports to a service manager: one datagram of KEY=VALUE lines to the Unix socket named by NOTIFY_SOCKET (a
 * path, or '@' and an abstract name), as documented in sd_notify(3). Without the variable nothing happens;
 * errors are ignored. Any thread. */
#pragma once

#include <stdint.h>

void occ_notify(const char *message);

/* SIGHUP has come; READY=1 follows when it is done. */
void occ_notify_reloading(void);

/* Half the time after which the manager misses a sign of life (WATCHDOG_USEC); 0: it waits for none. */
int64_t occ_notify_watchdog_ns(void);
