/*
 * How a program passes its ring to a daemon: one packet over the daemon's Unix socket (SOCK_SEQPACKET), with
 * the ring's memfd as SCM_RIGHTS. The daemon takes credentials from the socket. The daemon answers with one
 * packet, OCC_HELLO_TAKEN, as soon as it owns the ring: the ring is mapped, the daemon knows the owner of the
 * launches, and it will read the ring to its end even if the program is gone. A program that ends waits for
 * this answer. The connection stays open: its end shows each side that the other side ended. The program then
 * offers the same memfd to the next daemon.
 *
 * A daemon refuses by closing: wrong magic or version, no or several descriptors, a memfd without
 * F_SEAL_SHRINK and F_SEAL_GROW, geometry that does not match its size, another user's process (unless the
 * daemon is root's).
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "producer.h"

#define OCC_HELLO_MAGIC                                                                                      \
    UINT64_C(0x4f4c4c4548434301) /* first byte 0x01: never a text request's first letter */

/* Not an answer to any text request: those answers begin with "ok" or "error". */
#define OCC_HELLO_TAKEN "taken"

struct occ_hello {
    uint64_t magic;
    uint16_t version_major; /* version of the ring's ABI */
    uint16_t version_minor;
    uint32_t bytes; /* sizeof(struct occ_hello) */
    uint8_t uuid[16];
};
static_assert(sizeof(struct occ_hello) == 32, "wire");

/* The program's side. Sending does not block; false: the packet was not sent. `memfd` is the ring's
 * descriptor or a duplicate. */
struct occ_hello occ_hello_of(const struct occ_ring_producer *ring);
bool occ_hello_send(int socket, const struct occ_hello *hello, int memfd);

enum occ_hello_answer {
    OCC_HELLO_WAITS, /* no answer has come yet */
    OCC_HELLO_OWNED, /* the daemon has the ring */
    OCC_HELLO_ENDED, /* the daemon closed the connection, or sent another answer than OCC_HELLO_TAKEN */
    OCC_HELLO_BROKEN /* the daemon died before it read the packet */
};
/* Takes the next answer from the socket. Does not wait. */
enum occ_hello_answer occ_hello_receive(int socket);

/* The daemon's side: sends OCC_HELLO_TAKEN. Does not block: a program that does not read gets no answer. */
void occ_hello_accept(int socket);
