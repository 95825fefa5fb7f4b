/* Addresses to listen at. No names are looked up. No state; any thread. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "error.h"

/* Parses "127.0.0.1:9469" or "[::1]:9469"; port 0 stands for any free port. */
int occ_address_parse(const char *text, struct sockaddr_storage *ret_address, socklen_t *ret_size,
                      struct occ_error *err);

/* Listens there, at *ret_port; for [::] on a kernel without IPv6 at 0.0.0.0. *ret_fd is non-blocking and
 * closed on exec. */
int occ_address_listen(const char *text, int *ret_fd, uint16_t *ret_port, struct occ_error *err);
