/*
 * The producer's end of the ring (format: ring_abi.h, contract: producer.h).
 *
 * Runs inside other people's processes: create makes every system call, except for the allocation of pages,
 * which is made ahead; apart from that push and log only write memory. Threads: one producer thread calls
 * push, log, heartbeat and close; any thread may count losses and set costs.
 */
#include "producer.h"
#include "lean_map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Linux 6.3; older C libraries do not name it, older kernels answer EINVAL. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Size of a step in which pages are allocated: as much as before, within these limits. */
#define STEP_MIN_BYTES 16384u
#define STEP_MAX_BYTES (1u << 18)

/* Kernels and launch configurations leave this much of the log free, so that STATE and CLOSED always fit.
 * Measured values leave half of the log free: their number has no limit, and new kernels matter more. */
#define LOG_RESERVE_BYTES 2048u

static bool geometry_is_valid(uint32_t slots, uint64_t log_bytes)
{
    return slots >= OCC_RING_MIN_SLOTS && slots <= OCC_RING_MAX_SLOTS && (slots & (slots - 1)) == 0 &&
           log_bytes >= OCC_RING_MIN_LOG_BYTES && log_bytes <= OCC_RING_MAX_LOG_BYTES &&
           log_bytes % 4096 == 0;
}

static int make_memfd(void)
{
    int fd = memfd_create("occtrace-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("occtrace-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    /* keep the memfd out of descriptors 0 to 2, which the program may have closed */
    int high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    (void)close(fd);
    return high;
}

static int fill_uuid(uint8_t uuid[16])
{
    ssize_t n = getrandom(uuid, 16, GRND_NONBLOCK);
    if (n != 16)
        return n < 0 ? -errno : -EAGAIN;
    uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40); /* version and variant of RFC 4122 */
    uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
    return 0;
}

static uint64_t realtime_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int fill_header(struct occ_ring_header *header, uint32_t slots, uint64_t log_bytes)
{
    header->version_major = OCC_RING_VERSION_MAJOR;
    header->version_minor = OCC_RING_VERSION_MINOR;
    header->byte_order = OCC_RING_BYTE_ORDER;
    header->total_bytes = occ_ring_total_bytes(slots, log_bytes);
    header->log_offset = OCC_RING_HEADER_BYTES;
    header->log_bytes = log_bytes;
    header->ring_offset = OCC_RING_HEADER_BYTES + log_bytes;
    header->ring_slots = slots;
    header->record_bytes = OCC_RING_RECORD_BYTES;
    header->pid = (int32_t)getpid();
    header->start_ns = realtime_ns();
    header->magic = OCC_RING_MAGIC;
    return fill_uuid(header->uuid);
}

/* The limit on file sizes applies to a memfd too; exceeding it raises SIGXFSZ, which ends the program. */
static bool file_size_is_allowed(uint64_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

/* Sizes, maps and seals producer->fd. */
static int prepare(struct occ_ring_producer *producer, uint32_t slots, uint64_t log_bytes)
{
    size_t total = (size_t)occ_ring_total_bytes(slots, log_bytes);
    if (!file_size_is_allowed(total))
        return -EFBIG;
    if (ftruncate(producer->fd, (off_t)total) != 0)
        return -errno;
    uint8_t *map = occ_lean_map(producer->fd, total);
    if (map == MAP_FAILED)
        return -errno;
    producer->header = (void *)map;
    producer->log = map + OCC_RING_HEADER_BYTES;
    producer->slots = (void *)(map + OCC_RING_HEADER_BYTES + log_bytes);
    producer->log_bytes = log_bytes;
    producer->mask = slots - 1;
    if (!occ_lean_populate(map, OCC_RING_HEADER_BYTES))
        return -ENOMEM;
    int rc = fill_header(producer->header, slots, log_bytes);
    if (rc == 0 && fcntl(producer->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        rc = -errno;
    return rc;
}

int occ_ring_create(struct occ_ring_producer *producer, uint32_t slots, uint64_t log_bytes)
{
    memset(producer, 0, sizeof *producer);
    producer->fd = -1;
    if (!geometry_is_valid(slots, log_bytes))
        return -EINVAL;
    producer->fd = make_memfd();
    if (producer->fd < 0) {
        producer->fd = -1;
        return -errno;
    }
    int rc = prepare(producer, slots, log_bytes);
    if (rc != 0)
        occ_ring_destroy(producer);
    return rc;
}

void occ_ring_destroy(struct occ_ring_producer *producer)
{
    if (producer->header) {
        /* computed from our own copies: the consumer may have changed the header in shared memory */
        size_t total = (size_t)occ_ring_total_bytes(producer->mask + 1, producer->log_bytes);
        (void)munmap(producer->header, total);
        (void)close(producer->fd);
    } else if (producer->fd > 0) {
        (void)close(producer->fd);
    }
    memset(producer, 0, sizeof *producer);
    producer->fd = -1;
}

void occ_ring_count_loss(struct occ_ring_producer *producer, enum occ_loss_cause cause, uint64_t n)
{
    atomic_fetch_add_explicit(&producer->header->lost[cause], n, memory_order_relaxed);
}

void occ_ring_set_cost(struct occ_ring_producer *producer, enum occ_cost cost, uint64_t total)
{
    atomic_store_explicit(&producer->header->cost[cost], total, memory_order_relaxed);
}

/* ---- pages ---- */

/* Allocates the pages of at least `needed` bytes of `memory`, of which *ready bytes have them. */
static bool populate(struct occ_ring_producer *producer, uint8_t *memory, uint64_t *ready, uint64_t needed,
                     uint64_t bytes)
{
    uint64_t step = *ready < STEP_MIN_BYTES   ? STEP_MIN_BYTES
                    : *ready > STEP_MAX_BYTES ? STEP_MAX_BYTES
                                              : *ready;
    uint64_t until = *ready + step > needed ? *ready + step : needed;
    if (until > bytes)
        until = bytes;
    if (producer->is_out_of_memory || !occ_lean_populate(memory + *ready, (size_t)(until - *ready))) {
        producer->is_out_of_memory = true;
        return false;
    }
    *ready = until;
    return true;
}

/* The first `bytes` bytes of the log may be written. */
static bool log_is_ready(struct occ_ring_producer *producer, uint64_t bytes)
{
    return bytes <= producer->log_ready ||
           populate(producer, producer->log, &producer->log_ready, bytes, producer->log_bytes);
}

/* In the first round through the ring, slots get their memory. */
static void set_limit(struct occ_ring_producer *producer)
{
    uint64_t slots = (uint64_t)producer->mask + 1;
    bool is_complete = producer->slots_ready == slots;
    producer->limit = producer->tail_seen + slots;
    if (!is_complete && producer->limit > producer->slots_ready)
        producer->limit = producer->slots_ready;
}

/* The next `launches` slots may be written, or all that there are. */
static bool slots_are_ready(struct occ_ring_producer *producer, uint64_t launches)
{
    uint64_t slots = (uint64_t)producer->mask + 1, ready = producer->slots_ready * OCC_RING_RECORD_BYTES;
    uint64_t needed = launches < slots ? producer->head + launches : slots;
    if (needed <= producer->slots_ready || producer->slots_ready == slots)
        return true;
    if (!populate(producer, (uint8_t *)producer->slots, &ready,
                  (needed < slots ? needed : slots) * OCC_RING_RECORD_BYTES, slots * OCC_RING_RECORD_BYTES))
        return false;
    producer->slots_ready = ready / OCC_RING_RECORD_BYTES;
    return true;
}

void occ_ring_populate(struct occ_ring_producer *producer, uint64_t launches)
{
    if (slots_are_ready(producer, launches))
        set_limit(producer);
}

bool occ_ring_lacks_memory(const struct occ_ring_producer *producer)
{
    return producer->is_out_of_memory;
}

/* ---- launches ---- */

static void load_tail(struct occ_ring_producer *producer)
{
    /* pairs with the release store of tail in occ_ring_release() */
    uint64_t tail = atomic_load_explicit(&producer->header->tail, memory_order_acquire);
    /* an invalid tail from the consumer is ignored */
    if (tail > producer->tail_seen && tail <= producer->head)
        producer->tail_seen = tail;
    set_limit(producer);
}

static bool has_room(const struct occ_ring_producer *producer)
{
    return producer->head - producer->tail_seen <= producer->mask;
}

bool occ_ring_make_room(struct occ_ring_producer *producer)
{
    load_tail(producer);
    bool is_ready = has_room(producer) && slots_are_ready(producer, 1);
    if (!is_ready)
        occ_ring_count_loss(producer, has_room(producer) ? OCC_LOSS_NO_MEMORY : OCC_LOSS_RING_FULL, 1);
    set_limit(producer);
    return is_ready;
}

bool occ_ring_push_memory(struct occ_ring_producer *producer, const struct occ_ring_launch *operation)
{
    uint64_t half = producer->mask / 2;
    if (producer->head - producer->tail_seen > half)
        load_tail(producer);
    return producer->head - producer->tail_seen <= half && slots_are_ready(producer, 1) &&
           occ_ring_push(producer, operation);
}

/* ---- the log ---- */

static uint64_t reserve_before(uint16_t type, uint64_t log_bytes)
{
    if (type == OCC_RECORD_MEASURED)
        return log_bytes / 2;
    return type == OCC_RECORD_KERNEL || type == OCC_RECORD_CONFIG ? LOG_RESERVE_BYTES : 0;
}

bool occ_ring_log(struct occ_ring_producer *producer, struct occ_log_record *record, uint32_t fixed_bytes,
                  const void *tail, uint32_t tail_bytes)
{
    uint64_t used = (uint64_t)fixed_bytes + tail_bytes;
    uint64_t bytes = (used + 7) & ~UINT64_C(7);
    uint64_t room = producer->log_bytes - producer->log_head;
    uint64_t reserve = reserve_before(record->type, producer->log_bytes);
    if (bytes > OCC_RECORD_MAX_BYTES || bytes + reserve > room ||
        !log_is_ready(producer, producer->log_head + bytes + (reserve > 0 ? LOG_RESERVE_BYTES : 0)))
        return false;
    record->bytes = (uint32_t)bytes;
    uint8_t *at = producer->log + producer->log_head;
    memcpy(at, record, fixed_bytes);
    if (tail_bytes > 0)
        memcpy(at + fixed_bytes, tail, tail_bytes);
    memset(at + used, 0, bytes - used);
    producer->log_head += bytes;
    /* pairs with the acquire load of log_head in occ_ring_next_log_record() */
    atomic_store_explicit(&producer->header->log_head, producer->log_head, memory_order_release);
    return true;
}

bool occ_ring_is_paused(const struct occ_ring_producer *producer)
{
    return atomic_load_explicit(&producer->header->requests.paused, memory_order_relaxed) == 1;
}

uint32_t occ_ring_budget_ppm(const struct occ_ring_producer *producer)
{
    return atomic_load_explicit(&producer->header->requests.budget_ppm, memory_order_relaxed);
}

bool occ_ring_wants_memory(const struct occ_ring_producer *producer)
{
    return atomic_load_explicit(&producer->header->requests.wants_memory, memory_order_relaxed) == 1;
}

void occ_ring_reset_requests(const struct occ_ring_producer *producer)
{
    atomic_store_explicit(&producer->header->requests.wants_memory, 0, memory_order_relaxed);
}

void occ_ring_heartbeat(struct occ_ring_producer *producer, uint64_t now_ns)
{
    producer->is_out_of_memory = false;
    atomic_store_explicit(&producer->header->heartbeat_ns, now_ns, memory_order_relaxed);
}

void occ_ring_close(struct occ_ring_producer *producer)
{
    /* pairs with the acquire load in occ_ring_is_closed(): a consumer that sees the flag sees all records */
    atomic_store_explicit(&producer->header->closed, 1, memory_order_release);
}
