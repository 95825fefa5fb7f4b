/*
 * Fuzzes the consumer of a ring. The input overwrites parts of a valid ring, since a ring of random
 * bytes alone would be refused at its first field. Layout of the input, little-endian:
 *
 *   u8   position to attach at; with 128: the log begins with a valid process, device, kernel and launch
 *        configuration
 *   u16  slot_bytes, then that many bytes from the start of the slots
 *   u16  count, then that many patches {u16 offset, u8 value} of the header
 *   rest: bytes of the log
 */
#include "ring_samples.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct input {
    const uint8_t *at;
    size_t left;
};

static size_t take(struct input *in, void *to, size_t n)
{
    if (n > in->left)
        n = in->left;
    memcpy(to, in->at, n);
    in->at += n;
    in->left -= n;
    return n;
}

static void patch_header(struct input *in, uint8_t *header)
{
    uint16_t count = 0;
    take(in, &count, sizeof count);
    for (unsigned i = 0; i < count % 64u; i++) {
        uint8_t patch[3] = {0};
        if (take(in, patch, sizeof patch) < sizeof patch)
            return;
        header[(patch[0] | (unsigned)patch[1] << 8) % OCC_RING_HEADER_BYTES] = patch[2];
    }
}

/* Reads all records, so that the sanitizers check every byte. */
static void read_everything(struct occ_ring_consumer *c)
{
    static volatile uint8_t sink;
    const struct occ_log_record *record;
    while (occ_ring_next_log_record(c, &record) == OCC_RING_OK)
        for (uint32_t i = 0; i < record->bytes; i++)
            sink = ((const uint8_t *)record)[i];
    struct occ_ring_launch launches[32];
    size_t n;
    while (occ_ring_read(c, launches, 32, &n) == OCC_RING_OK) {
        sink = (uint8_t)launches[n - 1].config;
        occ_ring_release(c, occ_ring_position(c));
    }
    (void)occ_ring_pending(c);
    (void)occ_ring_fill(c);
    (void)occ_ring_broken_reason(c);
    (void)sink;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct occ_ring_producer p;
    uint64_t next = 0;
    if (occ_ring_create(&p, OCC_RING_MIN_SLOTS, 16384) != 0)
        return 0;
    take(&in, &next, 1);
    uint16_t slot_bytes = 0;
    take(&in, &slot_bytes, sizeof slot_bytes);
    take(&in, p.slots, slot_bytes % (OCC_RING_MIN_SLOTS * OCC_RING_RECORD_BYTES));
    for (uint64_t i = 0; i < 8; i++) /* valid checks, unless patches of the header change their meaning */
        p.slots[i].check = occ_ring_check(i);
    atomic_store(&p.header->head, 8);
    patch_header(&in, (uint8_t *)p.header);
    size_t before = next & 128 && log_samples(&p) ? p.log_head : 0;
    size_t log_bytes = before + take(&in, p.log + before, 16384 - before);
    if (atomic_load(&p.header->log_head) == before)
        atomic_store(&p.header->log_head, log_bytes & ~(size_t)7);
    struct occ_ring_consumer *c = NULL;
    int fd = dup(p.fd);
    if (occ_ring_attach(fd, next % 16, &c, NULL) == 0)
        read_everything(c);
    else
        (void)close(fd);
    occ_ring_detach(c);
    occ_ring_destroy(&p);
    return 0;
}
