/* Reports to a service manager: one datagram of KEY=VALUE lines to the Unix socket named by NOTIFY_SOCKET (a
 * path, or '@' and an abstract name), as documented in sd_notify(3). Without the variable the functions do
 * nothing; errors are ignored. Any thread. */
#pragma once

#include <stdint.h>

void occ_notify(const char *message);

/* Reports RELOADING=1 after SIGHUP; the caller reports READY=1 after the reload. */
void occ_notify_reloading(void);

/* Half the watchdog interval (WATCHDOG_USEC); 0: no watchdog. */
int64_t occ_notify_watchdog_ns(void);
