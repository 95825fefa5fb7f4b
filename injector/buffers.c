/* See buffers.h. */
#include "buffers.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "ring/lean_map.h"

enum state { COLD, READY, TAKEN, DONE };

/* Number of buffers kept ready: enough for a few threads that launch at the same time; the helper prepares
 * more every second. */
#define MIN_READY 2u
#define MAX_READY 8u

/* Linux 5.14 and newer; older kernels return EINVAL and the pages are allocated on first write. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Target range for the time in which a thread fills its buffer. */
#define SHORT_NS UINT64_C(125000000)
#define LONG_NS  UINT64_C(1500000000)
#define FULL_GAP 512u /* unused bytes in a full buffer: less than two records */
/* From this number of unused bytes on, madvise() and new page faults cost less than zeroing. */
#define UNUSED_BYTES (1u << 16)

static size_t mapping_bytes(const struct occ_pool *pool)
{
    return ((size_t)pool->count + 1) * pool->bytes; /* plus the discard buffer */
}

int occ_pool_init(struct occ_pool *pool, uint32_t count, size_t bytes)
{
    memset(pool, 0, sizeof *pool);
    if (count < 1 || count > OCC_POOL_MAX_BUFFERS || bytes < OCC_POOL_MIN_BYTES ||
        bytes % OCC_POOL_MIN_BYTES != 0)
        return -EINVAL;
    pool->count = count;
    pool->bytes = bytes;
    pool->zero = true;
    for (uint32_t i = 0; i < OCC_POOL_THREADS; i++)
        pool->threads[i].bytes = OCC_POOL_MIN_BYTES;
    void *map = occ_lean_map(-1, mapping_bytes(pool));
    if (map == MAP_FAILED)
        return -errno;
    pool->base = map;
    occ_pool_maintain(pool);
    return 0;
}

static uint8_t *buffer_at(const struct occ_pool *pool, uint32_t index)
{
    return pool->base + (size_t)index * pool->bytes;
}

/* Moves a buffer from one state to another; false: it is in a third state. The acquire pairs with the release
 * that set the state, so that the zeroes of a READY buffer are visible. */
static bool move(struct occ_pool *pool, uint32_t index, uint8_t from, uint8_t to)
{
    return atomic_compare_exchange_strong_explicit(&pool->state[index], &from, to, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

static int take_any(struct occ_pool *pool, uint8_t from)
{
    for (uint32_t i = 0; i < pool->count; i++)
        if (atomic_load_explicit(&pool->state[i], memory_order_relaxed) == from && move(pool, i, from, TAKEN))
            return (int)i;
    return -1;
}

/* Size of a thread's next buffer, from the last size and the time in which it was filled. Computed on
 * request, since neither the helper nor CUPTI's worker may have run for a while. */
static uint32_t next_bytes(const struct occ_pool *pool, uint32_t bytes, uint64_t filled_ns)
{
    if (filled_ns < SHORT_NS)
        return 2 * (size_t)bytes <= pool->bytes ? 2 * bytes : bytes;
    if (filled_ns <= LONG_NS || bytes == OCC_POOL_MIN_BYTES)
        return bytes;
    uint64_t fitting = bytes * (LONG_NS / 2) / filled_ns / OCC_POOL_MIN_BYTES * OCC_POOL_MIN_BYTES;
    return fitting > OCC_POOL_MIN_BYTES ? (uint32_t)fitting : OCC_POOL_MIN_BYTES;
}

/* Index in pool->threads. */
static uint32_t slot_of(uintptr_t thread)
{
    /* threads' addresses differ by pages; 2^32 divided by the golden ratio spreads them */
    return (uint32_t)(thread >> 12) * UINT32_C(0x9e3779b1) / (UINT32_MAX / OCC_POOL_THREADS + 1);
}

/* The thread's entry among the askers, or the free entry for it; NULL: the table is full of other threads. */
static _Atomic uintptr_t *find_asker(struct occ_pool *pool, uintptr_t thread)
{
    uint32_t first = slot_of(thread) * (OCC_POOL_ASKERS / OCC_POOL_THREADS);
    for (uint32_t i = 0; i < OCC_POOL_ASKERS; i++) {
        _Atomic uintptr_t *entry = &pool->askers[(first + i) % OCC_POOL_ASKERS];
        uintptr_t asker = atomic_load_explicit(entry, memory_order_relaxed);
        if (asker == thread || asker == 0)
            return entry;
    }
    return NULL;
}

/* Stores once per thread: other threads read the same cache lines. */
static void note_asker(struct occ_pool *pool, uintptr_t thread)
{
    _Atomic uintptr_t *entry = find_asker(pool, thread);
    uintptr_t none = 0;
    while (entry && atomic_load_explicit(entry, memory_order_relaxed) != thread &&
           !atomic_compare_exchange_strong_explicit(entry, &none, thread, memory_order_relaxed,
                                                    memory_order_relaxed)) {
        entry = find_asker(pool, thread); /* another thread took it */
        none = 0;
    }
}

bool occ_pool_may_have_asked(struct occ_pool *pool, uintptr_t thread)
{
    const _Atomic uintptr_t *entry = find_asker(pool, thread);
    return !entry || atomic_load_explicit(entry, memory_order_relaxed) == thread;
}

uint8_t *occ_pool_take(struct occ_pool *pool, uintptr_t thread, uint64_t now_ns, size_t *ret_bytes)
{
    uint32_t slot = slot_of(thread);
    struct occ_pool_thread *t = &pool->threads[slot];
    uint32_t bytes = atomic_load_explicit(&t->bytes, memory_order_relaxed);
    uint64_t last_ns = atomic_exchange_explicit(&t->taken_ns, now_ns, memory_order_relaxed);
    if (last_ns != 0)
        bytes = next_bytes(pool, bytes, now_ns - last_ns);
    atomic_store_explicit(&t->bytes, bytes, memory_order_relaxed);
    *ret_bytes = bytes;
    note_asker(pool, thread);
    atomic_fetch_add_explicit(&pool->taken, 1, memory_order_relaxed);
    int index = take_any(pool, READY);
    if (index < 0)
        index = take_any(pool, COLD);
    if (index < 0)
        return buffer_at(pool, pool->count);
    pool->use[index] = (struct occ_pool_use){.thread = slot, .bytes = bytes};
    return buffer_at(pool, (uint32_t)index);
}

bool occ_pool_complete(struct occ_pool *pool, const uint8_t *buffer, size_t valid_bytes, uint64_t now_ns)
{
    /* an address below the base wraps to a large offset */
    uintptr_t offset = (uintptr_t)buffer - (uintptr_t)pool->base;
    if (offset >= mapping_bytes(pool) || offset % pool->bytes != 0)
        return false;
    uint32_t index = (uint32_t)(offset / pool->bytes);
    if (index == pool->count) {
        size_t bytes = valid_bytes < pool->bytes ? valid_bytes : pool->bytes;
        atomic_fetch_add_explicit(&pool->discarded_bytes, bytes, memory_order_relaxed);
    } else {
        if (atomic_load_explicit(&pool->state[index], memory_order_relaxed) != TAKEN)
            return false;
        struct occ_pool_use *use = &pool->use[index];
        use->valid_bytes = valid_bytes < use->bytes ? (uint32_t)valid_bytes : use->bytes;
        use->delivered_ns = now_ns;
        if (use->valid_bytes + FULL_GAP < use->bytes) /* returned by a flush: gives no filling time */
            atomic_store_explicit(&pool->threads[use->thread].taken_ns, 0, memory_order_relaxed);
        if (!move(pool, index, TAKEN, DONE))
            return false;
        uint64_t at = atomic_fetch_add_explicit(&pool->done_tail, 1, memory_order_acq_rel);
        /* pairs with the acquire load in occ_pool_next() */
        atomic_store_explicit(&pool->done[at % pool->count], index + 1, memory_order_release);
    }
    atomic_fetch_add_explicit(&pool->delivered, 1, memory_order_relaxed);
    return true;
}

int occ_pool_next(struct occ_pool *pool, uint8_t **ret_buffer, size_t *ret_valid_bytes)
{
    uint32_t slot = (uint32_t)(pool->done_head % pool->count);
    /* pairs with the release store in occ_pool_complete() */
    uint32_t entry = atomic_load_explicit(&pool->done[slot], memory_order_acquire);
    if (entry == 0)
        return -1;
    atomic_store_explicit(&pool->done[slot], 0, memory_order_relaxed);
    pool->done_head++;
    *ret_buffer = buffer_at(pool, entry - 1);
    *ret_valid_bytes = pool->use[entry - 1].valid_bytes;
    return (int)(entry - 1);
}

/* Zeroes all bytes that CUPTI got: it may have written beyond the valid bytes. A buffer with few records is
 * returned to the system instead, since zeroing would touch unused pages. */
static uint8_t zero(struct occ_pool *pool, uint32_t index)
{
    const struct occ_pool_use *use = &pool->use[index];
    uint8_t *buffer = buffer_at(pool, index);
    if (use->bytes - use->valid_bytes >= UNUSED_BYTES && madvise(buffer, use->bytes, MADV_DONTNEED) == 0)
        return COLD;
    memset(buffer, 0, use->bytes);
    return READY;
}

void occ_pool_recycle(struct occ_pool *pool, int index)
{
    uint8_t state = pool->zero ? zero(pool, (uint32_t)index) : READY;
    /* pairs with the acquire in move() */
    atomic_store_explicit(&pool->state[index], state, memory_order_release);
}

static uint32_t count_ready(struct occ_pool *pool)
{
    uint32_t ready = 0;
    for (uint32_t i = 0; i < pool->count; i++)
        ready += atomic_load_explicit(&pool->state[i], memory_order_relaxed) == READY;
    return ready;
}

/* The buffer is TAKEN, hence owned by the helper, while its pages change. */
static void change(struct occ_pool *pool, uint8_t from, int advice, uint8_t to)
{
    int index = take_any(pool, from);
    if (index < 0)
        return;
    int rc = madvise(buffer_at(pool, (uint32_t)index), pool->bytes, advice);
    if (rc != 0 && to == READY) /* old kernel: touch the pages */
        memset(buffer_at(pool, (uint32_t)index), 0, pool->bytes);
    if (rc != 0 && to == COLD)
        to = READY;
    atomic_store_explicit(&pool->state[index], to, memory_order_release);
}

void occ_pool_maintain(struct occ_pool *pool)
{
    uint32_t ready = count_ready(pool);
    for (; ready < MIN_READY; ready++)
        change(pool, COLD, MADV_POPULATE_WRITE, READY);
    if (ready > MAX_READY) /* one per second */
        change(pool, READY, MADV_DONTNEED, COLD);
}

void occ_pool_reclaim(struct occ_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++)
        if (move(pool, i, TAKEN, DONE))
            occ_pool_recycle(pool, (int)i);
    atomic_store_explicit(&pool->delivered, atomic_load_explicit(&pool->taken, memory_order_relaxed),
                          memory_order_relaxed);
}
