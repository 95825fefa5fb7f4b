/*
 * The producer's end of the shared-memory ring (format: ring_abi.h). Uses libc and no other part of the
 * project, since it runs inside other people's processes with the injector. Never blocks. Create
 * maps the memory file; its pages are allocated before they are written, in steps of 16 to 256 KiB: if the
 * system has no memory, a record is dropped and counted, where a write would end the program by SIGBUS. Only
 * this allocation is a system call; after occ_ring_expect() push makes none. One thread, unless stated
 * otherwise.
 *
 * Errors: functions that can fail for a cause return 0 or a negative errno value.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring_abi.h"

struct occ_ring_producer {
    struct occ_ring_header *header; /* the mapping */
    struct occ_ring_launch *slots;
    uint8_t *log;
    uint64_t head; /* private copies; published with release stores */
    uint64_t log_head;
    uint64_t limit;       /* head may grow to this value: there is room, and memory */
    uint64_t slots_ready; /* slots with allocated pages, from the first; all of them in the end */
    uint64_t log_ready;   /* the same of the log */
    uint64_t tail_seen; /* last loaded tail; loaded again if the ring seems full, for a memory operation half
                           full */
    uint64_t log_bytes;
    uint32_t mask;
    bool is_out_of_memory; /* until the next heartbeat: pages are not asked for meanwhile */
    int fd;
};

/* Creates, maps and seals a memfd. `slots` is a power of two, `log_bytes` a multiple of 4096, both within the
 * limits of ring_abi.h. The uuid comes from getrandom(2). On failure *producer has fd -1 and nothing is
 * mapped. */
int occ_ring_create(struct occ_ring_producer *producer, uint32_t slots, uint64_t log_bytes);

/* Unmaps and closes. A zeroed or partly initialized producer is allowed. Does not mark the ring closed. */
void occ_ring_destroy(struct occ_ring_producer *producer);

/* Both: any thread. The first counts n losses; the second sets the total of a cost. */
void occ_ring_count_loss(struct occ_ring_producer *producer, enum occ_loss_cause cause, uint64_t n);
void occ_ring_set_cost(struct occ_ring_producer *producer, enum occ_cost cost, uint64_t total);

/* Allocates the pages of the next launches, if they are missing. */
static inline void occ_ring_expect(struct occ_ring_producer *producer, uint64_t launches);
void occ_ring_populate(struct occ_ring_producer *producer, uint64_t launches);

/* true: a record was dropped since the last heartbeat, since the system had no memory for it. */
bool occ_ring_lacks_memory(const struct occ_ring_producer *producer);

/* Appends a record to the log: `record` (`fixed_bytes` long, its header complete except for `bytes`), then
 * `tail_bytes` of text. False: the log is full, or the system has no memory for it; nothing was
 * written, and no loss is counted, since only the caller knows the lost record. Kernels and launch
 * configurations leave the last 2 KiB to the other types, so that STATE and CLOSED always fit; measured
 * values leave half of the log. */
bool occ_ring_log(struct occ_ring_producer *producer, struct occ_log_record *record, uint32_t fixed_bytes,
                  const void *tail, uint32_t tail_bytes);

/* The consumer's requests (ring_abi.h). Only the value 1 pauses; other values have no meaning. */
bool occ_ring_is_paused(const struct occ_ring_producer *producer);
uint32_t occ_ring_budget_ppm(const struct occ_ring_producer *producer);
bool occ_ring_wants_memory(const struct occ_ring_producer *producer);
/* The daemon is lost: an older one may follow, which would store memory operations as launches. */
void occ_ring_reset_requests(const struct occ_ring_producer *producer);

/* The first publishes the heartbeat; the second marks the ring closed for good. */
void occ_ring_heartbeat(struct occ_ring_producer *producer, uint64_t now_ns);
void occ_ring_close(struct occ_ring_producer *producer);

/* Pushes one launch and sets its `check`. False: the launch is dropped, and RING_FULL or NO_MEMORY is
 * counted. Inline, to compile into the caller's loop. */
static inline bool occ_ring_push(struct occ_ring_producer *producer, const struct occ_ring_launch *launch);

/* Pushes a memory operation if half of the ring is free, so that memory operations never displace launches.
 * False: dropped; no loss is counted, since it is no launch. */
bool occ_ring_push_memory(struct occ_ring_producer *producer, const struct occ_ring_launch *operation);

/* Slow path of push: loads the consumer's tail and allocates pages. True: there is room now. False: the loss
 * was counted. */
bool occ_ring_make_room(struct occ_ring_producer *producer);

static inline void occ_ring_expect(struct occ_ring_producer *producer, uint64_t launches)
{
    if (producer->slots_ready <= producer->mask && producer->head + launches > producer->slots_ready)
        occ_ring_populate(producer, launches);
}

static inline bool occ_ring_push(struct occ_ring_producer *producer, const struct occ_ring_launch *launch)
{
    if (__builtin_expect(producer->head == producer->limit, 0) && !occ_ring_make_room(producer))
        return false;
    struct occ_ring_launch *slot = &producer->slots[producer->head & producer->mask];
    /* field by field: a launch just filled in stays in registers (a block copy would wait for its stores) */
    slot->start_ns = launch->start_ns;
    slot->duration_ns = launch->duration_ns;
    slot->graph_node = launch->graph_node;
    slot->config = launch->config;
    slot->stream = launch->stream;
    slot->correlation = launch->correlation;
    slot->check = occ_ring_check(producer->head);
    producer->head++;
    /* pairs with the acquire load of head in occ_ring_read() */
    atomic_store_explicit(&producer->header->head, producer->head, memory_order_release);
    return true;
}
