/*
 * One packet from a client of the daemon's socket, with whatever descriptors came along. Everything in it is the
 * client's word: hostile until checked. Format of the two kinds of packets: ring/handshake.h (a program offers
 * its ring) and support/control.h (text requests). One thread.
 */
#ifndef OCC_DAEMON_PACKET_H
#define OCC_DAEMON_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/control.h"

/* As many as one message could carry (SCM_MAX_FD), so that none can slip through uncounted. */
#define OCC_PACKET_MAX_FDS 253

struct occ_packet {
    size_t n;
    size_t n_fds;
    bool cut; /* bytes or descriptors did not fit */
    int fds[OCC_PACKET_MAX_FDS];
    char bytes[OCC_CONTROL_BYTES + 1]; /* NUL after the n bytes */
};

enum occ_packet_status {
    OCC_PACKET_ONE,  /* *packet is filled; its descriptors (close-on-exec) are the caller's */
    OCC_PACKET_NONE, /* nothing is there now */
    OCC_PACKET_END,  /* the peer has hung up, or the socket is broken */
};

enum occ_packet_status occ_packet_receive(int socket, struct occ_packet *packet);

/* Closes the descriptors but for fds[0] if `keep_first`. */
void occ_packet_close(struct occ_packet *packet, bool keep_first);

/* True if it is meant to be a program's handshake (first byte of its magic), false: a text request. */
bool occ_packet_is_hello(const struct occ_packet *packet);

/* NULL if the packet is a sound handshake with one descriptor, and the uuid is copied out; else what is wrong. */
const char *occ_packet_check_hello(const struct occ_packet *packet, uint8_t ret_uuid[16]);

/* NULL if the packet is a text request without descriptors; else what is wrong. A trailing newline is cut. */
const char *occ_packet_check_text(struct occ_packet *packet);

#endif
