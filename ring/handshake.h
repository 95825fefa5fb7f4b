/*
 * How a program passes its ring to a daemon: one packet over the daemon's Unix socket (SOCK_SEQPACKET), with
 * the ring's memfd as SCM_RIGHTS. The daemon does not answer; it takes credentials from the socket. The
 * connection stays open: its end shows each side that the other one ended. The program then offers the same
 * memfd to the next daemon.
 *
 * A daemon refuses by closing: wrong magic or version, no or several descriptors, a memfd without
 * F_SEAL_SHRINK and F_SEAL_GROW, geometry that does not match its size, another user's process (unless the
 * daemon is root's).
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "ring.h"

#define OCC_HELLO_MAGIC                                                                                      \
    UINT64_C(0x4f4c4c4548434301) /* first byte 0x01: never a text request's first letter */

struct occ_hello {
    uint64_t magic;
    uint16_t version_major; /* of the ring's ABI */
    uint16_t version_minor;
    uint32_t bytes; /* sizeof(struct occ_hello) */
    uint8_t uuid[16];
};
static_assert(sizeof(struct occ_hello) == 32, "wire");

/* The program's side. Sending does not wait; false: the packet was not taken. `memfd` is the ring's, or a
 * copy of its descriptor. */
struct occ_hello occ_hello_of(const struct occ_ring_producer *ring);
bool occ_hello_send(int socket, const struct occ_hello *hello, int memfd);
