/* clang-format off */
/*
 * Talking to a daemon: short text requests over its Unix socket (SOCK_SEQPACKET), one packet a request, one
 * packet an answer. Programs under observation use the same socket with the binary handshake of
 * ring/handshake.h; the first byte tells them apart (text requests start with a lower-case letter).
 *
 *   ping           -> ok VERSION
 *   flush SESSION  -> ok LAUNCHES   after all launches that programs of this session (32 hex digits) had
 *                                   recorded when they ended are committed
 *   status         -> ok, then "key value" lines: the daemon and sums over its histories
 *   history INDEX  -> ok, then "key value" lines of an open history, by its index (from 0) among the histories
 *                     that the client may see: all for root and the daemon's own user, otherwise the client's
 *                     own; no lines: no such history
 *   refusals INDEX -> ok, then "key value" lines: an owner whose programs were refused, and how many by cause, by
 *                     its index (from 0) among the owners that the client may see; no lines: no such owner
 *   coverage INDEX -> ok, then "key value" lines: state (ok, failed, none before the first scan, off), scanning,
 *                     scans, the number of processes on GPUs that the client may see (root and the daemon's own
 *                     user: all; another user: those of the same uid), GPU time by reason (coverage.h), and of
 *                     process INDEX (from 0), if there is one: pid, gpu, reason, held_s, uid, program; gpu
 *                     "" and held_s "unknown": it reports launches, and NVML does not list it
 *   sampler INDEX  -> ok, then "key value" lines: mode, paused_s, gpus, and without GPUs the reason; of GPU
 *                     INDEX (from 0), if there is one: gpu, uuid, source, state, reason, samples, ...
 *   pause SECONDS  -> ok SECONDS    releases the hardware counters, for OCC_CONTROL_PAUSE_MAX_S at most
 *   resume         -> ok            ends the pause
 *   pause_run PID, resume_run PID -> ok PROGRAMS   records nothing more of this process; records it again
 *   anything else  -> error TEXT
 *
 * pause and resume are for root and the daemon's own user (SO_PEERCRED), ..._run for root and the process's
 * owner, everything else for all who may connect. At most OCC_CONTROL_BYTES a packet. Any thread; no state.
 */
/* clang-format on */
#pragma once

#include <stddef.h>

#include "error.h"

#define OCC_CONTROL_BYTES 4096

#define OCC_CONTROL_PAUSE_MAX_S 86400 /* a day, so that a forgotten pause ends */

/* How long the private daemon of occtrace tries to write the remaining data once occtrace has ended, if the
 * history refuses writes. */
#define OCC_CONTROL_PRIVATE_PATIENCE_S 30

/* Waits at most 5 s for a place in the queue of a busy daemon, and 0.1 s for a daemon that is about to
 * listen. OCC_E_NOT_FOUND: no daemon listens; OCC_E_BUSY: the queue stayed full. The descriptor does not
 * block. */
int occ_control_connect(const char *socket_path, int *ret_fd, struct occ_error *err);

/* The same for a path that the user did not choose, such as one in /tmp: OCC_E_DENIED unless the directory
 * and the daemon belong to root or the caller and no other user can replace the socket. Does not connect to a
 * socket in another user's directory, so its owner can neither learn of the caller nor make it wait. */
int occ_control_connect_trusted(const char *socket_path, int *ret_fd, struct occ_error *err);

/* The value of a line "key value" of an answer, malloc'ed; NULL: there is none. */
char *occ_control_value(const char *answer, const char *key);

/* Sends `request` and waits at most `timeout_ms` for the answer. `answer` gets the text after "ok ", always
 * NUL-terminated; an "error TEXT" answer fails with that text. */
int occ_control_request(int fd, const char *request, int timeout_ms, char *answer, size_t answer_size,
                        struct occ_error *err);
