/*
 * The consumer's end of the ring (format: ring_abi.h, contract: ring.h).
 *
 * The other end is somebody else's process and may be broken or hostile, so:
 *   - the memfd must be sealed against shrinking (else reading it could raise SIGBUS) and growing;
 *   - the header is copied once, checked, and never looked at again but for head, log_head, closed, beat and
 * the counters, each loaded once per use and clamped;
 *   - launches and log records are copied out first and checked in the copy, since the original may change under
 * us;
 *   - only the header page is mapped for writing.
 *
 * Threads: one.
 */
#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

struct occ_ring_consumer {
    struct occ_ring_header *header; /* one page, writable, for tail */
    const uint8_t *map;             /* everything, read-only */
    const uint8_t *log;
    const struct occ_ring_launch *slots;
    size_t total_bytes; /* geometry: our own copy */
    uint64_t log_bytes;
    uint32_t ring_slots;
    int fd;

    uint64_t position; /* launches handed out */
    uint64_t released; /* launches given back */
    uint64_t head;     /* as last seen */
    uint64_t log_position;
    uint64_t log_head;                 /* as last seen */
    uint32_t devices, kernels, shapes; /* known from the log */

    uint64_t start_ns;
    uint8_t uuid[16];
    const char *broken; /* why, or NULL */
    _Alignas(8) uint8_t record[OCC_RECORD_MAX_BYTES];
};

/* Keeps the compiler from reading shared memory a second time after it was copied and checked. */
static void copied(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

/* ---- attach ---- */

static int refuse(const char **why, const char *field, int code)
{
    if (why)
        *why = field;
    return code;
}

/* Ordinary shared memory: a hole in it reads as zeroes. A hole in huge pages could raise SIGBUS, sealed or not. */
static int check_memory(int fd, const char **why)
{
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0 || fs.f_type != TMPFS_MAGIC)
        return refuse(why, "kind of memory", -EPERM);
    return 0;
}

static int check_seals(int fd, const char **why)
{
    int seals = fcntl(fd, F_GET_SEALS);
    int needed = F_SEAL_SHRINK | F_SEAL_GROW;
    if (seals < 0 || (seals & needed) != needed)
        return refuse(why, "seals", -EPERM);
    return 0;
}

/* What a sound header says, and the code for one that does not. A table, read in order. */
static int check_header(const struct occ_ring_header *h, uint64_t file_bytes, const char **why)
{
    uint64_t slots = h->ring_slots;
    const struct {
        bool sound;
        const char *field;
        int code;
    } checks[] = {
        {h->magic == OCC_RING_MAGIC, "magic", -EPROTO},
        {h->byte_order == OCC_RING_BYTE_ORDER, "byte_order", -EPROTO},
        {h->version_major == OCC_RING_VERSION_MAJOR, "version_major", -EPROTONOSUPPORT},
        {h->record_bytes == OCC_RING_RECORD_BYTES, "record_bytes", -EINVAL},
        {slots >= OCC_RING_MIN_SLOTS && slots <= OCC_RING_MAX_SLOTS, "ring_slots", -EINVAL},
        {(slots & (slots - 1)) == 0, "ring_slots", -EINVAL},
        {h->log_bytes >= OCC_RING_MIN_LOG_BYTES && h->log_bytes <= OCC_RING_MAX_LOG_BYTES, "log_bytes",
         -EINVAL},
        {h->log_bytes % 4096 == 0, "log_bytes", -EINVAL},
        {h->log_offset == OCC_RING_HEADER_BYTES, "log_offset", -EINVAL},
        {h->ring_offset == OCC_RING_HEADER_BYTES + h->log_bytes, "ring_offset", -EINVAL},
        {h->total_bytes == occ_ring_total_bytes(h->ring_slots, h->log_bytes), "total_bytes", -EINVAL},
        {h->total_bytes == file_bytes, "file size", -EINVAL},
    };
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (!checks[i].sound)
            return refuse(why, checks[i].field, checks[i].code);
    return 0;
}

/* Where to take up: [tail, head] holds what the producer must still keep. */
static int take_up(struct occ_ring_consumer *c, uint64_t next, const char **why)
{
    uint64_t tail = atomic_load_explicit(&c->header->tail, memory_order_acquire);
    c->head = atomic_load_explicit(&c->header->head, memory_order_acquire);
    if (tail > c->head || c->head - tail > c->ring_slots)
        return refuse(why, "tail", -EINVAL);
    if (next > c->head)
        return refuse(why, "position", -EINVAL);
    c->position = next > tail ? next : tail;
    occ_ring_release(c, c->position);
    return 0;
}

/* Maps the header and, once it has proved sound, the rest. */
static int map_ring(struct occ_ring_consumer *c, uint64_t file_bytes, const char **why)
{
    void *page = mmap(NULL, OCC_RING_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
    if (page == MAP_FAILED)
        return refuse(why, "mmap", -errno);
    c->header = page;
    struct occ_ring_header copy;
    memcpy(&copy, page, sizeof copy);
    copied();
    int rc = check_header(&copy, file_bytes, why);
    if (rc != 0)
        return rc;
    c->total_bytes = (size_t)copy.total_bytes;
    c->log_bytes = copy.log_bytes;
    c->ring_slots = copy.ring_slots;
    c->start_ns = copy.start_ns;
    memcpy(c->uuid, copy.uuid, sizeof c->uuid);
    void *map = mmap(NULL, c->total_bytes, PROT_READ, MAP_SHARED, c->fd, 0);
    if (map == MAP_FAILED)
        return refuse(why, "mmap", -errno);
    c->map = map;
    c->log = c->map + OCC_RING_HEADER_BYTES;
    c->slots = (const void *)(c->map + OCC_RING_HEADER_BYTES + c->log_bytes);
    return 0;
}

/* Does not close fd unless the consumer was handed out. */
static void free_consumer(struct occ_ring_consumer *c)
{
    if (c->map)
        (void)munmap((void *)(uintptr_t)c->map, c->total_bytes);
    if (c->header)
        (void)munmap(c->header, OCC_RING_HEADER_BYTES);
    free(c);
}

int occ_ring_attach(int fd, uint64_t next, struct occ_ring_consumer **ret_consumer, const char **why)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return refuse(why, "file", -errno);
    int rc = check_memory(fd, why);
    if (rc == 0)
        rc = check_seals(fd, why);
    if (rc != 0)
        return rc;
    if (!S_ISREG(st.st_mode) || st.st_size < OCC_RING_HEADER_BYTES)
        return refuse(why, "file size", -EPROTO);
    struct occ_ring_consumer *c = calloc(1, sizeof *c);
    if (!c)
        return refuse(why, "memory", -ENOMEM);
    c->fd = fd;
    rc = map_ring(c, (uint64_t)st.st_size, why);
    if (rc == 0)
        rc = take_up(c, next, why);
    if (rc != 0) {
        free_consumer(c);
        return rc;
    }
    *ret_consumer = c;
    return 0;
}

void occ_ring_detach(struct occ_ring_consumer *consumer)
{
    if (!consumer)
        return;
    (void)close(consumer->fd);
    free_consumer(consumer);
}

static enum occ_ring_status quarantine(struct occ_ring_consumer *c, const char *why)
{
    c->broken = why;
    return OCC_RING_BROKEN;
}

/* ---- log ---- */

/* Each check gets a whole copied record of `bytes` bytes and says what is wrong with it, or NULL. */

static uint32_t padded(uint64_t bytes)
{
    return (uint32_t)((bytes + 7) & ~UINT64_C(7));
}

static const char *check_process(struct occ_ring_consumer *c, uint32_t bytes)
{
    const struct occ_record_process *f = (const void *)c->record;
    if (bytes < sizeof *f || f->text_bytes > bytes - sizeof *f || bytes != padded(sizeof *f + f->text_bytes))
        return "process record: size";
    if (f->count > OCC_LOG_MAX_PROCESS_KEYS)
        return "process record: too many keys";
    const char *at = (const char *)(f + 1);
    const char *end = at + f->text_bytes;
    for (uint32_t i = 0; i < 2 * f->count; i++) {
        const char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
        if (!nul)
            return "process record: text without end";
        at = nul + 1;
    }
    return at == end ? NULL : "process record: text beyond the last key";
}

static const char *check_device(struct occ_ring_consumer *c, uint32_t bytes)
{
    const struct occ_record_device *f = (const void *)c->record;
    if (bytes != sizeof *f)
        return "device record: size";
    if (c->devices >= OCC_LOG_MAX_DEVICES)
        return "device record: too many devices";
    if (f->id != c->devices)
        return "device record: id out of order";
    if (!memchr(f->name, '\0', sizeof f->name))
        return "device record: name without end";
    c->devices++;
    return NULL;
}

static const char *check_kernel(struct occ_ring_consumer *c, uint32_t bytes)
{
    const struct occ_record_kernel *f = (const void *)c->record;
    const char *name = (const char *)(f + 1);
    if (bytes < sizeof *f || f->name_bytes < 1 || f->name_bytes > OCC_KERNEL_NAME_MAX_BYTES ||
        bytes != padded(sizeof *f + f->name_bytes))
        return "kernel record: size";
    if (c->kernels >= OCC_LOG_MAX_KERNELS)
        return "kernel record: too many kernels";
    if (f->id != c->kernels)
        return "kernel record: id out of order";
    if (strnlen(name, f->name_bytes) != f->name_bytes - 1u)
        return "kernel record: name without end";
    if (!(f->flags & OCC_KERNEL_NAME_CUT) && f->name_hash != occ_fnv1a(name, f->name_bytes - 1u))
        return "kernel record: hash is not the name's";
    c->kernels++;
    return NULL;
}

static const char *check_shape(struct occ_ring_consumer *c, uint32_t bytes)
{
    const struct occ_record_shape *f = (const void *)c->record;
    if (bytes != sizeof *f)
        return "shape record: size";
    if (c->shapes >= OCC_LOG_MAX_SHAPES)
        return "shape record: too many shapes";
    if (f->id != c->shapes)
        return "shape record: id out of order";
    if (f->kernel >= c->kernels)
        return "shape record: unknown kernel";
    if (f->device >= c->devices)
        return "shape record: unknown device";
    if (!occ_record_shape_is_valid(f))
        return "shape record: a configuration that cannot be";
    c->shapes++;
    return NULL;
}

static const char *check_state(struct occ_ring_consumer *c, uint32_t bytes)
{
    const struct occ_record_state *f = (const void *)c->record;
    if (bytes != sizeof *f)
        return "state record: size";
    if (f->level >= OCC_LEVEL_COUNT)
        return "state record: unknown level";
    return memchr(f->reason, '\0', sizeof f->reason) ? NULL : "state record: reason without end";
}

static const char *check_closed(struct occ_ring_consumer *c, uint32_t bytes)
{
    (void)c;
    return bytes == sizeof(struct occ_record_closed) ? NULL : "closed record: size";
}

static const char *check_measured(struct occ_ring_consumer *c, uint32_t bytes)
{
    const struct occ_record_measured *f = (const void *)c->record;
    if (bytes != sizeof *f)
        return "measured record: size";
    if (f->shape >= c->shapes)
        return "measured record: unknown shape";
    if (!occ_record_measured_is_valid(f))
        return "measured record: values that cannot be";
    /* Pairs with the release store of head in occ_ring_push(), which came before the record's. A record of launches that never come
     * would wait for ever. */
    uint64_t head = atomic_load_explicit(&c->header->head, memory_order_acquire);
    return f->head <= head ? NULL : "measured record: of launches to come";
}

static const char *(*const record_checks[])(struct occ_ring_consumer *, uint32_t) = {
    [OCC_RECORD_PROCESS] = check_process,   [OCC_RECORD_DEVICE] = check_device,
    [OCC_RECORD_KERNEL] = check_kernel,     [OCC_RECORD_SHAPE] = check_shape,
    [OCC_RECORD_STATE] = check_state,       [OCC_RECORD_CLOSED] = check_closed,
    [OCC_RECORD_MEASURED] = check_measured,
};

static bool record_type_is_known(uint16_t type)
{
    return type < sizeof record_checks / sizeof record_checks[0] && record_checks[type];
}

/* Loads log_head once and clamps it; NULL or what is wrong. */
static const char *look_at_log_head(struct occ_ring_consumer *c)
{
    /* pairs with the release store in occ_ring_log() */
    uint64_t log_head = atomic_load_explicit(&c->header->log_head, memory_order_acquire);
    if (log_head < c->log_head || log_head > c->log_bytes || log_head % 8 != 0)
        return "log head makes no sense";
    c->log_head = log_head;
    return NULL;
}

/* Copies the record at log_position out; NULL or what is wrong. */
static const char *copy_record(struct occ_ring_consumer *c, struct occ_log_record *ret_record)
{
    uint64_t published = c->log_head - c->log_position;
    struct occ_log_record record;
    memcpy(&record, c->log + c->log_position, sizeof record); /* published is a multiple of 8 and not 0 */
    copied();
    if (record.bytes < sizeof record || record.bytes % 8 != 0 || record.bytes > OCC_RECORD_MAX_BYTES ||
        record.bytes > published)
        return "log record: size";
    memcpy(c->record, c->log + c->log_position, record.bytes);
    memcpy(c->record, &record, sizeof record); /* the header that was checked, whatever lies there by now */
    copied();
    *ret_record = record;
    return NULL;
}

enum occ_ring_status occ_ring_next_log_record(struct occ_ring_consumer *consumer,
                                              const struct occ_log_record **ret_record)
{
    struct occ_ring_consumer *c = consumer;
    if (c->broken)
        return OCC_RING_BROKEN;
    const char *wrong = look_at_log_head(c);
    while (!wrong && c->log_position < c->log_head) {
        struct occ_log_record record;
        wrong = copy_record(c, &record);
        if (!wrong && record_type_is_known(record.type))
            wrong = record_checks[record.type](c, record.bytes);
        if (wrong)
            break;
        c->log_position += record.bytes;
        if (!record_type_is_known(record.type))
            continue;
        *ret_record = (const void *)c->record;
        return OCC_RING_OK;
    }
    return wrong ? quarantine(c, wrong) : OCC_RING_EMPTY;
}

/* ---- launches ---- */

/* Loads head once and clamps it; NULL or what is wrong. */
static const char *look_at_head(struct occ_ring_consumer *c)
{
    /* pairs with the release store in occ_ring_push() */
    uint64_t head = atomic_load_explicit(&c->header->head, memory_order_acquire);
    if (head < c->head)
        return "head moved back";
    if (head - c->released > c->ring_slots)
        return "head ran over records that were not read";
    c->head = head;
    return NULL;
}

static void copy_launches(const struct occ_ring_consumer *c, struct occ_ring_launch *launches, size_t n)
{
    size_t at = (size_t)(c->position & (c->ring_slots - 1));
    size_t first = c->ring_slots - at < n ? c->ring_slots - at : n;
    memcpy(launches, c->slots + at, first * sizeof *launches);
    memcpy(launches + first, c->slots, (n - first) * sizeof *launches);
    copied();
}

/* How many of the copied launches may be handed out; *wrong says what stopped it, NULL if only the log is
 * ahead. */
static size_t check_launches(struct occ_ring_consumer *c, const struct occ_ring_launch *launches, size_t n,
                             const char **wrong)
{
    for (size_t i = 0; i < n; i++) {
        const struct occ_ring_launch *l = &launches[i];
        if (l->check != occ_ring_check(c->position + i))
            *wrong = "launch: stale or torn record";
        else if (!occ_ring_times_are_valid(l->start_ns, l->duration_ns))
            *wrong = "launch: times that cannot be";
        else if (l->shape < c->shapes)
            continue;
        else if (!(*wrong = look_at_log_head(c)) && c->log_position == c->log_head)
            *wrong = "launch: unknown shape";
        return i;
    }
    return n;
}

enum occ_ring_status occ_ring_read(struct occ_ring_consumer *consumer, struct occ_ring_launch *launches,
                                   size_t max, size_t *ret_n)
{
    struct occ_ring_consumer *c = consumer;
    *ret_n = 0;
    if (c->broken)
        return OCC_RING_BROKEN;
    const char *wrong = look_at_head(c);
    if (wrong)
        return quarantine(c, wrong);
    uint64_t waiting = c->head - c->position;
    size_t n = waiting < max ? (size_t)waiting : max;
    if (n == 0)
        return OCC_RING_EMPTY;
    copy_launches(c, launches, n);
    n = check_launches(c, launches, n, &wrong);
    if (wrong && n == 0) /* else the sound ones first; the next call meets the bad one again */
        return quarantine(c, wrong);
    c->position += n;
    *ret_n = n;
    return n > 0 ? OCC_RING_OK : OCC_RING_EMPTY;
}

uint64_t occ_ring_position(const struct occ_ring_consumer *consumer)
{
    return consumer->position;
}

void occ_ring_release(struct occ_ring_consumer *consumer, uint64_t next)
{
    if (next > consumer->position)
        next = consumer->position;
    if (next <= consumer->released)
        return;
    consumer->released = next;
    /* pairs with the acquire load in occ_ring_refresh_tail() */
    atomic_store_explicit(&consumer->header->tail, next, memory_order_release);
}

/* Distance of the producer's head from `from`, never more than the ring holds. */
static uint64_t ahead_of(const struct occ_ring_consumer *c, uint64_t from)
{
    uint64_t head = atomic_load_explicit(&c->header->head, memory_order_relaxed);
    if (head < from)
        return 0;
    return head - from < c->ring_slots ? head - from : c->ring_slots;
}

uint64_t occ_ring_pending(const struct occ_ring_consumer *consumer)
{
    return ahead_of(consumer, consumer->position);
}

double occ_ring_fill(const struct occ_ring_consumer *consumer)
{
    return (double)ahead_of(consumer, consumer->released) / (double)consumer->ring_slots;
}

/* ---- the rest of the header ---- */

const uint8_t *occ_ring_uuid(const struct occ_ring_consumer *consumer)
{
    return consumer->uuid;
}

bool occ_ring_is_closed(const struct occ_ring_consumer *consumer)
{
    /* pairs with the release store in occ_ring_close() */
    return atomic_load_explicit(&consumer->header->closed, memory_order_acquire) != 0;
}

uint64_t occ_ring_heartbeat_ns(const struct occ_ring_consumer *consumer)
{
    return atomic_load_explicit(&consumer->header->heartbeat_ns, memory_order_relaxed);
}

uint64_t occ_ring_start_ns(const struct occ_ring_consumer *consumer)
{
    return consumer->start_ns;
}

uint64_t occ_ring_lost(const struct occ_ring_consumer *consumer, enum occ_loss_cause cause)
{
    return atomic_load_explicit(&consumer->header->lost[cause], memory_order_relaxed);
}

uint64_t occ_ring_cost(const struct occ_ring_consumer *consumer, enum occ_cost cost)
{
    return atomic_load_explicit(&consumer->header->cost[cost], memory_order_relaxed);
}

const char *occ_ring_broken_reason(const struct occ_ring_consumer *consumer)
{
    return consumer->broken;
}
