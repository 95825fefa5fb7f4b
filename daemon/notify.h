/*
 * Reports to a service manager: one datagram of KEY=VALUE lines to the Unix socket named by NOTIFY_SOCKET (a
 * path, or '@' and an abstract name), as documented in sd_notify(3). Without the variable nothing happens;
 * errors are ignored. Any thread.
 */
#ifndef OCC_DAEMON_NOTIFY_H
#define OCC_DAEMON_NOTIFY_H

void occ_notify(const char *message);

#endif
