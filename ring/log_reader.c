/* Reading the log of a ring (contract: consumer.h, design: consumer_state.h). One thread. */
#include "consumer_state.h"

#include <string.h>

#define UNKNOWN_MAX 1024 /* records of unknown types skipped in one call; bounds the time of a call */

/* Checks of a completely copied record. Each returns NULL, or the error as text. */

static uint32_t padded(uint64_t bytes)
{
    return (uint32_t)((bytes + 7) & ~UINT64_C(7));
}

static const char *check_process(struct occ_ring_consumer *c)
{
    const struct occ_record_process *r = (const void *)c->record;
    uint32_t bytes = r->record.bytes;
    if (bytes < sizeof *r || r->text_bytes > bytes - sizeof *r || bytes != padded(sizeof *r + r->text_bytes))
        return "process record: size";
    if (r->count > OCC_LOG_MAX_PROCESS_KEYS)
        return "process record: too many keys";
    const char *at = (const char *)(r + 1);
    const char *end = at + r->text_bytes;
    for (uint32_t i = 0; i < 2 * r->count; i++) {
        const char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
        if (!nul)
            return "process record: text without end";
        at = nul + 1;
    }
    return at == end ? NULL : "process record: text beyond the last key";
}

static const char *check_device(struct occ_ring_consumer *c)
{
    const struct occ_record_device *r = (const void *)c->record;
    if (c->devices >= OCC_LOG_MAX_DEVICES)
        return "device record: too many devices";
    if (r->id != c->devices)
        return "device record: id out of order";
    if (!memchr(r->name, '\0', sizeof r->name))
        return "device record: name without end";
    c->devices++;
    return NULL;
}

static const char *check_kernel(struct occ_ring_consumer *c)
{
    const struct occ_record_kernel *r = (const void *)c->record;
    const char *name = (const char *)(r + 1);
    uint32_t bytes = r->record.bytes;
    if (bytes < sizeof *r || r->name_bytes < 1 || r->name_bytes > OCC_KERNEL_NAME_MAX_BYTES ||
        bytes != padded(sizeof *r + r->name_bytes))
        return "kernel record: size";
    if (c->kernels >= OCC_LOG_MAX_KERNELS)
        return "kernel record: too many kernels";
    if (r->id != c->kernels)
        return "kernel record: id out of order";
    if (strnlen(name, r->name_bytes) != r->name_bytes - 1u)
        return "kernel record: name without end";
    if (!(r->flags & OCC_KERNEL_NAME_CUT) && r->name_hash != occ_fnv1a(name, r->name_bytes - 1u))
        return "kernel record: hash is not the name's";
    c->kernels++;
    return NULL;
}

static const char *check_range(struct occ_ring_consumer *c)
{
    const struct occ_record_range *r = (const void *)c->record;
    uint32_t bytes = r->record.bytes;
    if (bytes < sizeof *r || r->path_bytes < 2 || r->path_bytes > OCC_RANGE_PATH_MAX_BYTES ||
        bytes != padded(sizeof *r + r->path_bytes))
        return "range record: size";
    if (c->ranges >= OCC_LOG_MAX_RANGES)
        return "range record: too many ranges";
    if (r->id != c->ranges)
        return "range record: id out of order";
    if (strnlen((const char *)(r + 1), r->path_bytes) != r->path_bytes - 1u)
        return "range record: path without end";
    c->ranges++;
    return NULL;
}

static const char *check_config(struct occ_ring_consumer *c)
{
    const struct occ_record_config *r = (const void *)c->record;
    if (c->configs >= OCC_LOG_MAX_CONFIGS)
        return "configuration record: too many configs";
    if (r->id != c->configs)
        return "configuration record: id out of order";
    if (r->kernel >= c->kernels)
        return "configuration record: unknown kernel";
    if (r->device >= c->devices)
        return "configuration record: unknown device";
    if (r->range > c->ranges)
        return "configuration record: unknown range";
    if (!occ_record_config_is_valid(r))
        return "configuration record: impossible configuration";
    c->configs++;
    return NULL;
}

static const char *check_state(struct occ_ring_consumer *c)
{
    const struct occ_record_state *r = (const void *)c->record;
    if (r->level >= OCC_LEVEL_COUNT)
        return "state record: unknown level";
    return memchr(r->reason, '\0', sizeof r->reason) ? NULL : "state record: reason without end";
}

static const char *check_measured(struct occ_ring_consumer *c)
{
    const struct occ_record_measured *r = (const void *)c->record;
    if (r->config >= c->configs)
        return "measured record: unknown config";
    if (!occ_record_measured_is_valid(r))
        return "measured record: impossible values";
    /* Pairs with the release store of head in occ_ring_push(), which the producer executes before it writes
     * the log record. A record that counts launches beyond head would have to wait for launches that may
     * never come. */
    uint64_t head = atomic_load_explicit(&c->header->head, memory_order_acquire);
    return r->head <= head ? NULL : "measured record: counts future launches";
}

/* The record types. `bytes` is 0 if text follows; then `check` verifies the size. */
static const struct kind {
    const char *(*check)(struct occ_ring_consumer *c); /* NULL: only the size is checked */
    uint32_t bytes;
    const char *wrong_size;
} kinds[] = {
    [OCC_RECORD_PROCESS] = {check_process, 0, "process record: size"},
    [OCC_RECORD_DEVICE] = {check_device, sizeof(struct occ_record_device), "device record: size"},
    [OCC_RECORD_KERNEL] = {check_kernel, 0, "kernel record: size"},
    [OCC_RECORD_CONFIG] = {check_config, sizeof(struct occ_record_config), "configuration record: size"},
    [OCC_RECORD_STATE] = {check_state, sizeof(struct occ_record_state), "state record: size"},
    [OCC_RECORD_CLOSED] = {NULL, sizeof(struct occ_record_closed), "closed record: size"},
    [OCC_RECORD_MEASURED] = {check_measured, sizeof(struct occ_record_measured), "measured record: size"},
    [OCC_RECORD_RANGE] = {check_range, 0, "range record: size"},
};

/* NULL: an unknown type, from a newer version. */
static const struct kind *find_kind(uint16_t type)
{
    return type < sizeof kinds / sizeof kinds[0] && kinds[type].wrong_size ? &kinds[type] : NULL;
}

const char *occ_ring_load_log_head(struct occ_ring_consumer *c)
{
    /* pairs with the release store in occ_ring_log() */
    uint64_t log_head = atomic_load_explicit(&c->header->log_head, memory_order_acquire);
    if (log_head < c->log_head || log_head > c->log_bytes || log_head % 8 != 0)
        return "log head is impossible";
    c->log_head = log_head;
    return NULL;
}

/* Copies the record at log_position to c->record; of an unknown type, only the header. Returns NULL, or the
 * error as text. */
static const char *copy_record(struct occ_ring_consumer *c)
{
    uint64_t published = c->log_head - c->log_position, at = OCC_RING_HEADER_BYTES + c->log_position;
    struct occ_log_record head;
    if (!occ_ring_copy(c->fd, &head, sizeof head, at)) /* published is a multiple of 8 and not 0 */
        return "log record: cannot be read";
    if (head.bytes < sizeof head || head.bytes % 8 != 0 || head.bytes > OCC_RECORD_MAX_BYTES ||
        head.bytes > published)
        return "log record: size";
    /* keep the checked header: the producer may have changed the original since */
    memcpy(c->record, &head, sizeof head);
    if (find_kind(head.type) &&
        !occ_ring_copy(c->fd, c->record + sizeof head, head.bytes - sizeof head, at + sizeof head))
        return "log record: cannot be read";
    return NULL;
}

enum occ_ring_status occ_ring_next_log_record(struct occ_ring_consumer *consumer,
                                              const struct occ_log_record **ret_record)
{
    struct occ_ring_consumer *c = consumer;
    const struct occ_log_record *record = (const void *)c->record;
    if (c->broken)
        return OCC_RING_BROKEN;
    const char *wrong = occ_ring_load_log_head(c);
    for (int i = 0; i < UNKNOWN_MAX && !wrong && c->log_position < c->log_head; i++) {
        if ((wrong = copy_record(c)))
            break;
        const struct kind *kind = find_kind(record->type);
        if (kind && kind->bytes != 0 && record->bytes != kind->bytes)
            wrong = kind->wrong_size;
        else if (kind && kind->check)
            wrong = kind->check(c);
        if (wrong)
            break;
        c->log_position += record->bytes;
        if (!kind)
            continue;
        *ret_record = record;
        return OCC_RING_OK;
    }
    return wrong ? occ_ring_quarantine(c, wrong) : OCC_RING_EMPTY;
}

bool occ_ring_has_log(const struct occ_ring_consumer *consumer)
{
    uint64_t log_head = atomic_load_explicit(&consumer->header->log_head, memory_order_relaxed);
    return log_head != consumer->log_position;
}
