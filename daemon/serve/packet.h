/*
 * One packet from a client of the daemon's socket, with its descriptors: a program's handshake
 * (ring/handshake.h) or a text request (support/control.h). All of it is hostile until checked. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/control.h"

/* Maximum number of descriptors in one message (SCM_MAX_FD): none can be missed. */
#define OCC_PACKET_MAX_FDS 253

struct occ_packet {
    size_t n;
    size_t n_fds;
    bool cut; /* bytes or descriptors did not fit */
    int fds[OCC_PACKET_MAX_FDS];
    char bytes[OCC_CONTROL_BYTES + 1]; /* terminated by a NUL after n bytes */
};

enum occ_packet_status {
    OCC_PACKET_ONE,  /* *packet is filled */
    OCC_PACKET_NONE, /* no packet waits */
    OCC_PACKET_END,  /* the peer has hung up, or the socket failed */
};

/* In every case the caller owns the packet's descriptors (close-on-exec) and must close them
 * (close_thread.h). */
enum occ_packet_status occ_packet_receive(int socket, struct occ_packet *packet);

/* true: a program's handshake, recognised by the first byte of its magic. false: a text request. */
bool occ_packet_is_hello(const struct occ_packet *packet);

/* NULL: a valid handshake with one descriptor of a memory file; *ret_uuid is set. Otherwise the error. */
const char *occ_packet_check_hello(const struct occ_packet *packet, uint8_t ret_uuid[16]);

/* NULL: a text request without descriptors; a trailing newline is removed. Otherwise the error. */
const char *occ_packet_check_text(struct occ_packet *packet);
