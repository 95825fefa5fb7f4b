/* Attaching to a ring (contract: consumer.h, design: consumer_state.h). Threads: one. */
#include "consumer_state.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static int refuse(const char **why, const char *field, int code)
{
    if (why)
        *why = field;
    return code;
}

/* Holes in ordinary shared memory read as zeroes; a hole in huge pages could raise SIGBUS, sealed or not. */
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

/* A table, read in order: a condition, the field that fails it, and the error code. */
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

/* Finds the position to read from; the producer must still keep the launches in [tail, head]. */
static int find_position(struct occ_ring_consumer *c, uint64_t next, const char **why)
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

/* Maps the header after its check. */
static int map_header(struct occ_ring_consumer *c, uint64_t file_bytes, const char **why)
{
    struct occ_ring_header copy;
    if (!occ_ring_copy(c->fd, &copy, sizeof copy, 0))
        return refuse(why, "reading", -EPERM);
    int rc = check_header(&copy, file_bytes, why);
    if (rc != 0)
        return rc;
    c->log_bytes = copy.log_bytes;
    c->ring_slots = copy.ring_slots;
    c->start_ns = copy.start_ns;
    memcpy(c->uuid, copy.uuid, sizeof c->uuid);
    void *page = mmap(NULL, OCC_RING_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
    if (page == MAP_FAILED)
        return refuse(why, "mmap", -errno);
    c->header = page;
    return 0;
}

/* Leaves fd open: after a failure the descriptor belongs to the caller. */
static void free_consumer(struct occ_ring_consumer *c)
{
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
    rc = map_header(c, (uint64_t)st.st_size, why);
    if (rc == 0)
        rc = find_position(c, next, why);
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
