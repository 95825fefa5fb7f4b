/*
 * The consumer's end of the shared-memory ring (format: ring_abi.h). Uses libc and no other part of the
 * project. Trusts nothing: geometry is checked once and kept privately; head and log_head are clamped (a head
 * that moves back or ahead by more than the ring is a broken producer); every launch and log record is
 * checked before it is returned. A broken producer makes next and read return OCC_RING_BROKEN for ever
 * (quarantine); launches and records returned before stay valid. One thread.
 *
 * Errors: functions that can fail for a cause return 0 or a negative errno value.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring_abi.h"

enum occ_ring_status {
    OCC_RING_OK = 0,     /* returned at least one item */
    OCC_RING_EMPTY = 1,  /* nothing more for now */
    OCC_RING_BROKEN = 2, /* the producer's data is invalid: quarantine */
};

struct occ_ring_consumer;

/* Checks seals and geometry of `fd`, maps its header and continues at launch `next` (0 for a new ring, the
 * stored position for a known one; if `next` is below the ring's tail, where the producer may have
 * overwritten, at the tail). Records below `next` are released at once. Takes ownership of fd on success
 * only. -EPROTO: not a ring, -EPERM: not sealed, -EINVAL: geometry or position, -EPROTONOSUPPORT: other major
 * version, else errno of the system. `why` (may be NULL) names the field. */
int occ_ring_attach(int fd, uint64_t next, struct occ_ring_consumer **ret_consumer, const char **why);
void occ_ring_detach(struct occ_ring_consumer *consumer); /* NULL is fine */

/* The next log record, copied and checked; valid until the next call. Each record is returned once, in order.
 * Checks: sizes; text NUL-terminated and within its bytes; ids dense; kernel and device of a launch
 * configuration known; values within the limits of ring_abi.h; a kernel's hash (unless its name was cut).
 * Unknown types are skipped unread; EMPTY also after many unknown records, and the next call continues. */
enum occ_ring_status occ_ring_next_log_record(struct occ_ring_consumer *consumer,
                                              const struct occ_log_record **ret_record);

/* True if the log has unread records now. */
bool occ_ring_has_log(const struct occ_ring_consumer *consumer);

/* Copies up to `max` launches and advances the private position; *ret_n is 0 when empty. Verifies each
 * record's check word, times and launch configuration. An invalid record makes the ring BROKEN, once all
 * earlier records are returned. Call occ_ring_next_log_record() until empty first: reading stops before a
 * launch whose launch configuration was not returned yet (EMPTY if that is the first launch). */
enum occ_ring_status occ_ring_read(struct occ_ring_consumer *consumer, struct occ_ring_launch *launches,
                                   size_t max, size_t *ret_n);

/* The sequence number after the last launch read, to be stored in the same transaction as the launches. */
uint64_t occ_ring_position(const struct occ_ring_consumer *consumer);
/* The start of the next launch to read, unchecked; 0: no launch waits. */
uint64_t occ_ring_first_start_ns(const struct occ_ring_consumer *consumer);
/* Lets the producer overwrite the slots below `next`: call after the commit. */
void occ_ring_release(struct occ_ring_consumer *consumer, uint64_t next);
/* True if the producer's version supports the request to pause. */
bool occ_ring_can_pause(const struct occ_ring_consumer *consumer);
/* Requests to the producer. */
void occ_ring_pause(struct occ_ring_consumer *consumer, bool pause);
void occ_ring_set_budget(struct occ_ring_consumer *consumer, uint32_t ppm);
void occ_ring_want_memory(struct occ_ring_consumer *consumer, bool wanted);

/* Number of launches to read, clamped to the ring's size; part of the ring that is not released, 0...1. */
uint64_t occ_ring_pending(const struct occ_ring_consumer *consumer);
double occ_ring_fill(const struct occ_ring_consumer *consumer);

int occ_ring_fd(const struct occ_ring_consumer *consumer); /* the descriptor stays the consumer's */
const uint8_t *occ_ring_uuid(const struct occ_ring_consumer *consumer); /* 16 bytes */
bool occ_ring_is_closed(const struct occ_ring_consumer *consumer);
uint64_t occ_ring_heartbeat_ns(const struct occ_ring_consumer *consumer);
uint64_t occ_ring_start_ns(const struct occ_ring_consumer *consumer);
uint64_t occ_ring_lost(const struct occ_ring_consumer *consumer, enum occ_loss_cause cause);
uint64_t occ_ring_cost(const struct occ_ring_consumer *consumer, enum occ_cost cost);
/* The reason why the ring is broken, one line for people; NULL: not broken. */
const char *occ_ring_broken_reason(const struct occ_ring_consumer *consumer);
