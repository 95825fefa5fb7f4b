/* Network names of this machine and its listening sockets, for our own processes. No state; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "error.h"

#define OCC_NODE_NAME_BYTES 256

/* Name of this node in runs, series and rows: $OCCTRACE_NODE, else the host's name. In a pod the host's name
 * is the pod's. The variable counts only if it is 1 to 253 characters of printable ASCII without blanks.
 * OCC_E_IO: the host has no name; `name` is empty then. */
int occ_node_name(char name[OCC_NODE_NAME_BYTES], struct occ_error *err);

/* Listens at "ADDRESS:PORT" or "[ADDRESS]:PORT", a numeric address of IPv4 or IPv6; port 0: any free port.
 * *ret_fd is non-blocking and closed on exec. OCC_E_INVALID: no such text. */
int occ_node_listen(const char *text, int *ret_fd, uint16_t *ret_port, struct occ_error *err);
