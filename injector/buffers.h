/*
 * The pool of activity buffers.
 *
 * One mapping holds `count` buffers of equal size and, behind them, the discard buffer. States of a buffer:
 *
 *   COLD   never touched, or returned to the system: the kernel's zero pages
 *   READY  zeroed and in memory
 *   TAKEN  owned by CUPTI
 *   DONE   delivered, waits for the helper
 *
 *   maintain()  COLD -> READY
 *   take()      READY or COLD -> TAKEN
 *   complete()  TAKEN -> DONE
 *   recycle()   DONE -> READY, or DONE -> COLD for a large buffer with few records
 *
 * take() never fails and never blocks: READY first, then COLD (pages are allocated on first write), then the
 * discard buffer, which CUPTI may have several times at once and which is never read. A buffer that CUPTI has
 * is never freed. Memory grows to `count` buffers at most; maintain() returns memory that a quiet program
 * does not need.
 *
 * CUPTI gets only as much of a buffer as its thread fills in about half a second. cuptiActivityFlushAll(0)
 * "doesn't return buffers which have one or more incomplete records" (cupti_activity.h), and a thread that
 * keeps the GPU busy always has one: its records arrive when the buffer is full, whatever the helper flushes.
 *
 * Threads: take() and complete() any, wait-free except for a scan over `count` states; the others the helper
 * only.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCC_POOL_MAX_BUFFERS     1024u
#define OCC_POOL_DEFAULT_BUFFERS 512u
/* 128 KiB = 606 records of 216 bytes; the maximum size that CUPTI gets. CUPTI's guide suggests more for
 * programs that read their records at the end. */
#define OCC_POOL_DEFAULT_BYTES (1u << 17)
#define OCC_POOL_MIN_BYTES     4096u /* 18 records; also the size of a thread's first buffer */
#define OCC_POOL_THREADS       64u   /* threads with a size of their own; further threads share */
#define OCC_POOL_ASKERS        1024u /* threads recorded as having requested a buffer */

/* One buffer, from take() to recycle(). Written by the taking thread, then by the completing one; CUPTI
 * orders the two. */
struct occ_pool_use {
    uint64_t delivered_ns;
    uint32_t thread; /* index in occ_pool.threads */
    uint32_t bytes;  /* size that CUPTI got */
    uint32_t valid_bytes;
};

struct occ_pool_thread {
    _Atomic uint64_t taken_ns; /* time of its last buffer; 0: that buffer was not full */
    _Atomic uint32_t bytes;    /* size of that buffer */
};

struct occ_pool {
    uint8_t *base;
    size_t bytes; /* size of one buffer */
    uint32_t count;
    bool zero; /* recycled buffers must be zeroed */
    _Atomic uint8_t state[OCC_POOL_MAX_BUFFERS];
    struct occ_pool_use use[OCC_POOL_MAX_BUFFERS]; /* valid for buffers that are TAKEN or DONE */
    struct occ_pool_thread threads[OCC_POOL_THREADS];
    _Atomic uintptr_t askers[OCC_POOL_ASKERS]; /* threads that have taken a buffer; 0: a free entry */
    /* Delivered buffers in order: entry n % count holds index + 1. As many entries as buffers, so it is never
     * full. */
    _Atomic uint32_t done[OCC_POOL_MAX_BUFFERS];
    _Atomic uint64_t done_tail;
    uint64_t done_head;
    _Atomic uint64_t taken;           /* since the start; CUPTI has taken - delivered */
    _Atomic uint64_t delivered;       /* since the start */
    _Atomic uint64_t discarded_bytes; /* bytes delivered in the discard buffer */
    _Atomic uint64_t callback_ns;     /* time spent in take and complete */
};

/* `bytes`: size of one buffer, a multiple of 4096. 0 or -errno; on failure nothing is mapped. */
int occ_pool_init(struct occ_pool *pool, uint32_t count, size_t bytes);
/* `thread` identifies the caller; *ret_bytes is the size of the buffer for it. All times: CLOCK_MONOTONIC. */
uint8_t *occ_pool_take(struct occ_pool *pool, uintptr_t thread, uint64_t now_ns, size_t *ret_bytes);
/* false: this thread has never taken a buffer. true: it has, or a thread with the same number has, or the
 * table is full. */
bool occ_pool_may_have_asked(struct occ_pool *pool, uintptr_t thread);
/* false: the buffer is not from this pool. */
bool occ_pool_complete(struct occ_pool *pool, const uint8_t *buffer, size_t valid_bytes, uint64_t now_ns);

/* The next delivered buffer, oldest first; its index (see `use`) or -1. */
int occ_pool_next(struct occ_pool *pool, uint8_t **ret_buffer, size_t *ret_valid_bytes);
void occ_pool_recycle(struct occ_pool *pool, int index);
/* Takes back all buffers from CUPTI, after CUPTI gave them to another client. Call it only while CUPTI cannot
 * take or complete a buffer of the pool. */
void occ_pool_reclaim(struct occ_pool *pool);
/* Keeps some buffers READY and returns surplus ones to the system one by one. Call it once a second. */
void occ_pool_maintain(struct occ_pool *pool);
