/*
 * One packet from a client of the daemon's socket, with its descriptors: a program's handshake
 * (ring/handshake.h) or a text request (support/control.h). Everything in it is hostile until checked. One
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/control.h"

/* The most that one message carries (SCM_MAX_FD): every descriptor that arrives is known. */
#define OCC_PACKET_MAX_FDS 253

struct occ_packet {
    size_t n;
    size_t n_fds;
    bool cut; /* bytes or descriptors did not fit */
    int fds[OCC_PACKET_MAX_FDS];
    char bytes[OCC_CONTROL_BYTES + 1]; /* NUL after the n bytes */
};

enum occ_packet_status {
    OCC_PACKET_ONE,  /* *packet is filled */
    OCC_PACKET_NONE, /* none waits */
    OCC_PACKET_END,  /* the peer has hung up, or the socket is broken */
};

/* Whatever it returns, the packet's descriptors (close-on-exec) are the caller's, who leaves none of them
 * open (closer.h). */
enum occ_packet_status occ_packet_receive(int socket, struct occ_packet *packet);

/* Whether it is a program's handshake (by the first byte of its magic) rather than a text request. */
bool occ_packet_is_hello(const struct occ_packet *packet);

/* NULL: a valid handshake with one descriptor, of a memory file; *ret_uuid is set. Else what is wrong. */
const char *occ_packet_check_hello(const struct occ_packet *packet, uint8_t ret_uuid[16]);

/* NULL: a text request without descriptors; a trailing newline is removed. Else what is wrong. */
const char *occ_packet_check_text(struct occ_packet *packet);
