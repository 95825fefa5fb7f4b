/*
 * Ids of kernels (by the contents of their names) and of launch configurations (with their kernel and device)
 * in the ring's log. The first use writes the record.
 *
 * - A pointer's name is read again when the caller requests it, since CUPTI may have reused the address;
 *   until then the pointer identifies the name.
 * - Bounded by OCC_INTERN_* below, in address space that costs memory only where it is used. No malloc. The
 *   caller counts entries that do not fit, here or in the log, as LOG_FULL.
 *
 * Threads: the helper only.
 */
#pragma once

#include <stdint.h>

#include "readable.h"
#include "ring/producer.h"

#define OCC_INTERN_POINTERS (1u << 16) /* 1 MiB */
#define OCC_INTERN_KERNELS  (1u << 16) /* 2 MiB of table */
#define OCC_INTERN_CONFIGS  (1u << 18) /* 26 MiB of keys and 4 MiB of table if all are used */

/* Values returned instead of an id. */
#define OCC_INTERN_FULL UINT32_MAX /* no room here or in the log */
/* the name cannot be read, or the configuration is impossible */
#define OCC_INTERN_UNREADABLE (UINT32_MAX - 1)

struct occ_intern_pointer;
struct occ_intern_kernel;
struct occ_intern_slot;

struct occ_intern {
    struct occ_ring_producer *ring;
    uint8_t *map;
    struct occ_intern_pointer *pointers; /* open addressing, like the two below */
    struct occ_intern_kernel *kernels;
    struct occ_intern_slot *slots;
    struct occ_record_config *configs; /* index: id */
    uint32_t pointer_count, kernel_count, config_count;
    uint32_t memory_kernel_plus_1[2]; /* fills, copies; 0: not in the log yet */
    uint32_t epoch;                   /* grows when names must be read again */
    struct occ_readable readable;
    char text[OCC_KERNEL_NAME_MAX_BYTES]; /* the name that is being logged */
};

/* 0 or -errno. */
int occ_intern_init(struct occ_intern *intern, struct occ_ring_producer *ring);

/* Starts a new buffer of records; `reread`: read names again. */
void occ_intern_next_buffer(struct occ_intern *intern, bool reread);

uint32_t occ_intern_kernel(struct occ_intern *intern, const char *name);

/* The "kernel" of memory operations; `flag`: OCC_KERNEL_FILL or OCC_KERNEL_COPY. */
uint32_t occ_intern_memory(struct occ_intern *intern, uint32_t flag);

/* The caller fills in kernel and device of `config`; id and record are set here. */
uint32_t occ_intern_config(struct occ_intern *intern, struct occ_record_config *config);
