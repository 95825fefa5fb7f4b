/* The name of this node, for our own processes. No state; any thread. */
#pragma once

#include "error.h"

#define OCC_NODE_NAME_BYTES 256

/* Name of this node in runs, series and rows: $OCCTRACE_NODE, else the host's name. In a pod the host's name
 * is the pod's. The variable counts only if it is 1 to 253 characters of printable ASCII without blanks.
 * OCC_E_IO: the host has no name; `name` is empty then. */
int occ_node_name(char name[OCC_NODE_NAME_BYTES], struct occ_error *err);
