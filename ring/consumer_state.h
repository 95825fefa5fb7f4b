/*
 * Internals of the ring's consumer: attach.c maps the ring, log_reader.c reads the log, consumer.c reads
 * launches.
 *
 * The other end is another user's process and may be broken or hostile. Therefore
 *   - the memfd must be sealed against shrinking (its header could raise SIGBUS) and growing;
 *   - the header is copied and checked once; later only the changing fields are read, once per use,
 *     and clamped;
 *   - launches and log records are copied first and checked in the copy: the original may change meanwhile;
 *   - only the header's page is mapped. The rest is read as a file: a page that was never written then reads
 *     as zeroes, while a mapping would allocate the page and charge it to the reader.
 */
#pragma once

#include <unistd.h>

#include <stdatomic.h>

#include "consumer.h"

struct occ_ring_consumer {
    struct occ_ring_header *header; /* one page, writable, for tail */
    uint64_t log_bytes;             /* geometry: our own copy */
    uint32_t ring_slots;
    int fd;

    uint64_t position; /* launches returned */
    uint64_t released; /* launches that the producer may overwrite */
    uint64_t head;     /* as last seen */
    uint64_t log_position;
    uint64_t log_head;                          /* as last seen */
    uint32_t devices, kernels, ranges, configs; /* known from the log */

    uint64_t start_ns;
    uint8_t uuid[16];
    const char *broken; /* the reason, or NULL */
    _Alignas(8) uint8_t record[OCC_RECORD_MAX_BYTES];
};

/* Copies n bytes from the file. False: a read error. */
static inline bool occ_ring_copy(int fd, void *to, size_t n, uint64_t at)
{
    return pread(fd, to, n, (off_t)at) == (ssize_t)n;
}

static inline enum occ_ring_status occ_ring_quarantine(struct occ_ring_consumer *c, const char *why)
{
    c->broken = why;
    return OCC_RING_BROKEN;
}

/* Loads log_head once and clamps it. Returns NULL, or the error as text. */
const char *occ_ring_load_log_head(struct occ_ring_consumer *c);
