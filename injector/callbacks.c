/* The callbacks of CUPTI; see guest.h. */
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "guest.h"
#include "wake.h"

static void add_cost(struct occ_pool *pool, uint64_t began_ns)
{
    uint64_t spent_ns = occ_clock_ns(CLOCK_MONOTONIC) - began_ns;
    atomic_fetch_add_explicit(&pool->callback_ns, spent_ns, memory_order_relaxed);
}

/* true in CUPTI's worker thread. If CUPTI started it during the guest's start, it has the guest's signal mask
 * (workers.h). If CUPTI starts it later, with the first context, it has the signal mask of a program's
 * thread, and is recognised because it returns buffers without ever requesting one. Threads that flush return
 * buffers too: the helper and the program's main thread. */
static bool is_worker(struct occ_guest *guest)
{
    return occ_workers_has_mask() || (guest->workers.n == 0 && (pid_t)syscall(SYS_gettid) != guest->pid &&
                                      !occ_pool_may_have_asked(&guest->pool, (uintptr_t)pthread_self()));
}

static void find_worker(struct occ_guest *guest)
{
    clockid_t clock = 0;
    if (atomic_load_explicit(&guest->worker_clock, memory_order_relaxed) != 0 ||
        pthread_getcpuclockid(pthread_self(), &clock) != 0 ||
        clock == atomic_load_explicit(&guest->helper_clock, memory_order_relaxed) || !is_worker(guest))
        return;
    atomic_store_explicit(&guest->worker_clock, (int)clock, memory_order_relaxed);
}

void occ_callback_requested(uint8_t **buffer, size_t *size, size_t *max_records)
{
    int saved = errno;
    uint64_t began_ns = occ_clock_ns(CLOCK_MONOTONIC);
    struct occ_guest *guest = occ_guest();
    struct occ_pool *pool = &guest->pool;
    /* Now, not in the helper: a program may launch once and exit. */
    if (!atomic_exchange_explicit(&guest->has_context, true, memory_order_relaxed))
        occ_exit_prepare();
    *buffer = occ_pool_take(pool, (uintptr_t)pthread_self(), began_ns, size);
    *max_records = 0; /* no limit */
    add_cost(pool, began_ns);
    errno = saved;
}

void occ_callback_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid_bytes)
{
    (void)context;
    (void)stream;
    (void)size;
    int saved = errno;
    uint64_t began_ns = occ_clock_ns(CLOCK_MONOTONIC);
    struct occ_guest *guest = occ_guest();
    if (!buffer)
        goto out;
    find_worker(guest);
    if (occ_pool_complete(&guest->pool, buffer, valid_bytes, began_ns))
        occ_wake(&guest->wake);
    else
        atomic_store_explicit(&guest->foreign_buffer, true, memory_order_relaxed);
    add_cost(&guest->pool, began_ns);
out:
    errno = saved;
}
