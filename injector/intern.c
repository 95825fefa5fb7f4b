/* See intern.h. */
#include "intern.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "ring/lean_map.h"

struct occ_intern_pointer {
    const char *name; /* NULL: free */
    uint32_t epoch;   /* value of the table's epoch when the contents were last read */
    uint32_t kernel;
};

struct occ_intern_kernel {
    uint64_t hash;
    uint32_t length;
    uint32_t id_plus_1; /* 0: free */
};

struct occ_intern_slot {
    uint32_t hash;
    uint32_t id_plus_1; /* 0: free */
};

/* Twice the maximum number of entries, so that probe sequences stay short. */
#define POINTER_SLOTS (2u * OCC_INTERN_POINTERS)
#define KERNEL_SLOTS  (2u * OCC_INTERN_KERNELS)
#define CONFIG_SLOTS  (2u * OCC_INTERN_CONFIGS)

#define POINTER_BYTES (POINTER_SLOTS * sizeof(struct occ_intern_pointer))
#define KERNEL_BYTES  (KERNEL_SLOTS * sizeof(struct occ_intern_kernel))
#define SLOT_BYTES    (CONFIG_SLOTS * sizeof(struct occ_intern_slot))
#define CONFIG_BYTES  (OCC_INTERN_CONFIGS * sizeof(struct occ_record_config))
#define MAP_BYTES     (POINTER_BYTES + KERNEL_BYTES + SLOT_BYTES + CONFIG_BYTES)

/* The identity of a launch configuration: all members after the id. */
#define KEY_OFFSET offsetof(struct occ_record_config, kernel)
#define KEY_BYTES  (sizeof(struct occ_record_config) - KEY_OFFSET)
static_assert(KEY_BYTES == 92, "hash_config reads 11 words of 8 bytes and one of 4");

static_assert(OCC_INTERN_KERNELS <= OCC_LOG_MAX_KERNELS && OCC_INTERN_CONFIGS <= OCC_LOG_MAX_CONFIGS,
              "no more than a reader takes");

int occ_intern_init(struct occ_intern *intern, struct occ_ring_producer *ring)
{
    memset(intern, 0, sizeof *intern);
    void *map = occ_lean_map(-1, MAP_BYTES);
    if (map == MAP_FAILED)
        return -errno;
    intern->ring = ring;
    intern->map = map;
    intern->pointers = (void *)intern->map;
    intern->kernels = (void *)(intern->map + POINTER_BYTES);
    intern->slots = (void *)(intern->map + POINTER_BYTES + KERNEL_BYTES);
    intern->configs = (void *)(intern->map + POINTER_BYTES + KERNEL_BYTES + SLOT_BYTES);
    intern->epoch = 1;
    return 0;
}

void occ_intern_next_buffer(struct occ_intern *intern, bool reread)
{
    intern->epoch += reread;
    occ_readable_forget(&intern->readable);
}

static uint64_t mix(uint64_t hash)
{
    hash ^= hash >> 32;
    hash *= UINT64_C(0x9e3779b97f4a7c15); /* 2^64 divided by the golden ratio */
    return hash ^ (hash >> 29);
}

/* ---- kernels ---- */

/* Returns the id, or OCC_INTERN_FULL or _UNREADABLE. */
static uint32_t log_kernel(struct occ_intern *intern, uint32_t id, const char *name, uint32_t length,
                           uint64_t hash)
{
    uint32_t kept = length < OCC_KERNEL_NAME_MAX_BYTES ? length : OCC_KERNEL_NAME_MAX_BYTES - 1;
    struct occ_record_kernel record = {
        .record.type = OCC_RECORD_KERNEL,
        .id = id,
        .name_bytes = kept + 1,
        .name_hash = hash,
        .flags = kept < length ? OCC_KERNEL_NAME_CUT : 0,
    };
    char *text = intern->text;
    memcpy(text, name, kept);
    text[kept] = '\0';
    if (strlen(text) != kept || (kept == length && occ_fnv1a(text, kept) != hash))
        return OCC_INTERN_UNREADABLE; /* the name changed while it was read: a stale pointer */
    return occ_ring_log(intern->ring, &record.record, sizeof record, text, kept + 1) ? id : OCC_INTERN_FULL;
}

/* Longer names are hashed up to this length. */
#define NAME_MAX_BYTES (1u << 20)

static uint32_t kernel_by_content(struct occ_intern *intern, const char *name)
{
    ptrdiff_t found = occ_readable_length(&intern->readable, name, NAME_MAX_BYTES);
    if (found < 0)
        return OCC_INTERN_UNREADABLE;
    uint32_t length = (uint32_t)found;
    uint64_t hash = occ_fnv1a(name, length);
    for (uint64_t at = mix(hash);; at++) {
        struct occ_intern_kernel *kernel = &intern->kernels[at % KERNEL_SLOTS];
        if (kernel->id_plus_1 != 0 && kernel->hash == hash && kernel->length == length)
            return kernel->id_plus_1 - 1;
        if (kernel->id_plus_1 != 0)
            continue;
        uint32_t next = intern->kernel_count;
        uint32_t id =
            next < OCC_INTERN_KERNELS ? log_kernel(intern, next, name, length, hash) : OCC_INTERN_FULL;
        if (id != next)
            return id;
        *kernel = (struct occ_intern_kernel){hash, length, id + 1};
        intern->kernel_count++;
        return id;
    }
}

/* The entry of a pointer, or the free one for it. Clears the table when half of it is used, since names come
 * and go. */
static struct occ_intern_pointer *find_pointer(struct occ_intern *intern, const char *name)
{
    if (intern->pointer_count >= OCC_INTERN_POINTERS) {
        memset(intern->pointers, 0, POINTER_BYTES);
        intern->pointer_count = 0;
    }
    for (uint64_t at = mix((uintptr_t)name);; at++) {
        struct occ_intern_pointer *pointer = &intern->pointers[at % POINTER_SLOTS];
        if (pointer->name == name || !pointer->name)
            return pointer;
    }
}

uint32_t occ_intern_kernel(struct occ_intern *intern, const char *name)
{
    if (!name)
        return OCC_INTERN_UNREADABLE;
    struct occ_intern_pointer *pointer = find_pointer(intern, name);
    if (pointer->name == name && pointer->epoch == intern->epoch)
        return pointer->kernel;
    uint32_t kernel = kernel_by_content(intern, name);
    if (kernel == OCC_INTERN_FULL || kernel == OCC_INTERN_UNREADABLE)
        return kernel;
    if (!pointer->name)
        intern->pointer_count++;
    *pointer = (struct occ_intern_pointer){name, intern->epoch, kernel};
    return kernel;
}

uint32_t occ_intern_memory(struct occ_intern *intern, uint32_t flag)
{
    const char *name = flag == OCC_KERNEL_FILL ? "[memory fill]" : "[memory copy]";
    uint32_t length = (uint32_t)strlen(name), *known = &intern->memory_kernel_plus_1[flag == OCC_KERNEL_COPY];
    struct occ_record_kernel record = {.record.type = OCC_RECORD_KERNEL,
                                       .id = intern->kernel_count,
                                       .name_bytes = length + 1,
                                       .name_hash = occ_fnv1a(name, length),
                                       .flags = flag};
    if (*known == 0 && intern->kernel_count < OCC_INTERN_KERNELS &&
        occ_ring_log(intern->ring, &record.record, sizeof record, name, length + 1))
        *known = ++intern->kernel_count;
    return *known != 0 ? *known - 1 : OCC_INTERN_FULL;
}

/* ---- launch configurations ---- */

/* Four independent lanes, since each multiplication waits for the previous one. Constants: odd, with mixed
 * bits. */
static uint32_t hash_config(const struct occ_record_config *config)
{
    const uint64_t factor = UINT64_C(0xff51afd7ed558ccd);
    uint64_t a = UINT64_C(0x9e3779b97f4a7c15), b = UINT64_C(0xc2b2ae3d27d4eb4f);
    uint64_t c = UINT64_C(0x165667b19e3779f9), d = UINT64_C(0xd6e8feb86659fd93);
    uint64_t words[12] = {0};
    memcpy(words, (const char *)config + KEY_OFFSET, KEY_BYTES);
    for (int i = 0; i < 12; i += 4) {
        a = (a ^ words[i]) * factor;
        b = (b ^ words[i + 1]) * factor;
        c = (c ^ words[i + 2]) * factor;
        d = (d ^ words[i + 3]) * factor;
        a ^= a >> 32; /* the high bits are mixed best; the next factor spreads the low ones */
        b ^= b >> 32;
        c ^= c >> 32;
        d ^= d >> 32;
    }
    return (uint32_t)(mix(a + (b << 1) + (c << 2) + (d << 3)) >> 16);
}

static uint32_t add_config(struct occ_intern *intern, struct occ_intern_slot *slot, uint32_t hash,
                           struct occ_record_config *config)
{
    uint32_t id = intern->config_count;
    if (!occ_record_config_is_valid(config))
        return OCC_INTERN_UNREADABLE;
    config->record.type = OCC_RECORD_CONFIG;
    config->id = id;
    if (id >= OCC_INTERN_CONFIGS || !occ_ring_log(intern->ring, &config->record, sizeof *config, NULL, 0))
        return OCC_INTERN_FULL;
    intern->configs[id] = *config;
    *slot = (struct occ_intern_slot){hash, id + 1};
    intern->config_count++;
    return id;
}

static bool is_same_config(const struct occ_record_config *a, const struct occ_record_config *b)
{
    return memcmp((const char *)a + KEY_OFFSET, (const char *)b + KEY_OFFSET, KEY_BYTES) == 0;
}

uint32_t occ_intern_config(struct occ_intern *intern, struct occ_record_config *config)
{
    uint32_t hash = hash_config(config);
    for (uint32_t at = hash;; at++) {
        struct occ_intern_slot *slot = &intern->slots[at % CONFIG_SLOTS];
        if (slot->id_plus_1 == 0)
            return add_config(intern, slot, hash, config);
        if (slot->hash == hash && is_same_config(&intern->configs[slot->id_plus_1 - 1], config))
            return slot->id_plus_1 - 1;
    }
}
