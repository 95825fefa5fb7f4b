/* See buffers.h. */
#include "buffers.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum state { COLD, READY, TAKEN, DONE };

/* Buffers kept ready: enough for a handful of threads that launch at once; more follow every second. */
#define MIN_READY 2u
#define MAX_READY 8u

/* Linux 5.14; older kernels answer EINVAL and the pages come with the first writes. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static size_t mapping_bytes(const struct occ_pool *pool)
{
    return ((size_t)pool->count + 1) * pool->bytes; /* and the discard buffer */
}

int occ_pool_init(struct occ_pool *pool, uint32_t count, size_t bytes)
{
    memset(pool, 0, sizeof *pool);
    if (count < 1 || count > OCC_POOL_MAX_BUFFERS || bytes < 4096 || bytes % 4096 != 0)
        return -EINVAL;
    pool->count = count;
    pool->bytes = bytes;
    pool->zero = true;
    void *map = mmap(NULL, mapping_bytes(pool), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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

/* Moves a buffer from one state to another; false: it is in a third. Acquire pairs with the release that set
 * the state, so that its zeroes (READY) are visible. */
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

uint8_t *occ_pool_take(struct occ_pool *pool)
{
    atomic_fetch_add_explicit(&pool->taken, 1, memory_order_relaxed);
    int index = take_any(pool, READY);
    if (index < 0)
        index = take_any(pool, COLD);
    return buffer_at(pool, index < 0 ? pool->count : (uint32_t)index);
}

bool occ_pool_complete(struct occ_pool *pool, const uint8_t *buffer, size_t valid_bytes)
{
    uintptr_t offset = (uintptr_t)buffer - (uintptr_t)pool->base; /* a lower address wraps: too large */
    if (offset >= mapping_bytes(pool) || offset % pool->bytes != 0)
        return false;
    uint32_t index = (uint32_t)(offset / pool->bytes);
    if (valid_bytes > pool->bytes)
        valid_bytes = pool->bytes;
    if (index == pool->count) {
        atomic_fetch_add_explicit(&pool->discarded_bytes, valid_bytes, memory_order_relaxed);
    } else {
        if (atomic_load_explicit(&pool->state[index], memory_order_relaxed) != TAKEN)
            return false;
        pool->valid[index] = valid_bytes;
        if (!move(pool, index, TAKEN, DONE))
            return false;
        uint64_t at = atomic_fetch_add_explicit(&pool->done_tail, 1, memory_order_relaxed);
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
    *ret_valid_bytes = pool->valid[entry - 1];
    return (int)(entry - 1);
}

/* All of it, since CUPTI may have written beyond the valid bytes. Untouched pages of a nearly empty buffer
 * (threads that launch rarely return one a second) go back to the system instead, which costs next to
 * nothing. */
static void zero(const struct occ_pool *pool, uint8_t *buffer, size_t valid_bytes)
{
    size_t written = (valid_bytes + 4095) & ~(size_t)4095;
    if (written <= pool->bytes / 4 && madvise(buffer + written, pool->bytes - written, MADV_DONTNEED) == 0)
        memset(buffer, 0, written);
    else
        memset(buffer, 0, pool->bytes);
}

void occ_pool_recycle(struct occ_pool *pool, int index)
{
    if (pool->zero)
        zero(pool, buffer_at(pool, (uint32_t)index), pool->valid[index]);
    /* pairs with the acquire in move() */
    atomic_store_explicit(&pool->state[index], READY, memory_order_release);
}

static uint32_t count_ready(struct occ_pool *pool)
{
    uint32_t ready = 0;
    for (uint32_t i = 0; i < pool->count; i++)
        ready += atomic_load_explicit(&pool->state[i], memory_order_relaxed) == READY;
    return ready;
}

/* The buffer is TAKEN, hence ours, while its pages change. */
static void change(struct occ_pool *pool, uint8_t from, int advice, uint8_t to)
{
    int index = take_any(pool, from);
    if (index < 0)
        return;
    int rc = madvise(buffer_at(pool, (uint32_t)index), pool->bytes, advice);
    if (rc != 0 && to == READY) /* an old kernel: touch the pages */
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
    if (ready > MAX_READY) /* one a second */
        change(pool, READY, MADV_DONTNEED, COLD);
}
