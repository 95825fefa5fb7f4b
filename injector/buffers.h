/*
 * The pool of activity buffers.
 *
 * One mapping holds `count` buffers of equal size and, behind them, the discard buffer. A buffer is
 *
 *   COLD   never touched, or returned to the system: the kernel's zero pages
 *   READY  zeroed and in memory
 *   TAKEN  CUPTI's
 *   DONE   delivered, waits for the helper
 *
 *   maintain: COLD -> READY   take: READY or COLD -> TAKEN   complete: TAKEN -> DONE   recycle: DONE -> READY
 *
 * take() never fails and never blocks: READY first, then COLD (its pages come with the first writes), then
 * the discard buffer, which may be out several times at once and is never read. A buffer that CUPTI has is
 * never freed. Memory grows to `count` buffers at most; maintain() returns what a quiet program does not
 * need.
 *
 * Threads: take() and complete() any, wait-free but for a scan over `count` states; the others the helper
 * only.
 */
#ifndef OCC_INJECTOR_BUFFERS_H
#define OCC_INJECTOR_BUFFERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCC_POOL_MAX_BUFFERS     256u
#define OCC_POOL_DEFAULT_BUFFERS 64u
/* 1 MiB = 4854 records of 216 bytes. CUPTI 13 keeps one for each thread that launches, hence not the larger
 * sizes that its guide suggests. */
#define OCC_POOL_DEFAULT_BYTES (1u << 20)

struct occ_pool {
    uint8_t *base;
    size_t bytes; /* of one buffer */
    uint32_t count;
    bool zero; /* recycled buffers must be zeroed */
    _Atomic uint8_t state[OCC_POOL_MAX_BUFFERS];
    size_t valid[OCC_POOL_MAX_BUFFERS];
    /* Delivered buffers in order: entry n % count holds index + 1. As many entries as buffers: never full. */
    _Atomic uint32_t done[OCC_POOL_MAX_BUFFERS];
    _Atomic uint64_t done_tail;
    uint64_t done_head;
    _Atomic uint64_t taken;           /* ever; CUPTI has taken - delivered */
    _Atomic uint64_t delivered;       /* ever */
    _Atomic uint64_t discarded_bytes; /* delivered in the discard buffer */
    _Atomic uint64_t callback_ns;     /* spent by callers in take and complete */
};

/* `bytes` of one buffer, a multiple of 4096. 0 or -errno; on failure nothing is mapped. */
int occ_pool_init(struct occ_pool *pool, uint32_t count, size_t bytes);
uint8_t *occ_pool_take(struct occ_pool *pool);
/* False: the buffer is not from this pool. */
bool occ_pool_complete(struct occ_pool *pool, const uint8_t *buffer, size_t valid_bytes);

/* The next delivered buffer, oldest first; its index or -1. */
int occ_pool_next(struct occ_pool *pool, uint8_t **ret_buffer, size_t *ret_valid_bytes);
void occ_pool_recycle(struct occ_pool *pool, int index);
/* Keeps some buffers READY, returns surplus ones to the system one by one. Once a second. */
void occ_pool_maintain(struct occ_pool *pool);

#endif
