/*
 * Tells a service manager how it goes: one datagram to the Unix socket that NOTIFY_SOCKET names (a path, or '@' and an
 * abstract name), lines of KEY=VALUE. The protocol is documented in sd_notify(3) and free to implement. Nothing
 * happens where the variable is not set; errors are nobody's business but the manager's. Any thread.
 */
#ifndef OCC_DAEMON_NOTIFY_H
#define OCC_DAEMON_NOTIFY_H

void occ_notify(const char *message);

#endif
