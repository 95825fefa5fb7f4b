/* Hash table from 64-bit keys to 32-bit numbers (open addressing, grows, never shrinks), with inline lookups.
 * A random seed in each table: keys come from traced programs, which cannot choose keys that collide. One
 * thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCC_MAP_NONE UINT32_MAX

struct occ_map {
    uint64_t *keys;
    uint32_t *values;  /* OCC_MAP_NONE: free */
    uint32_t capacity; /* a power of two, or 0 */
    uint32_t used;
    uint64_t seed;
};

/* Removes all keys, keeps the memory. */
void occ_map_clear(struct occ_map *map);
void occ_map_free(struct occ_map *map);

/* Doubles the table. false: no memory, nothing changed. */
bool occ_map_grow(struct occ_map *map);

static inline uint32_t occ_map_home(const struct occ_map *map, uint64_t key)
{
    __extension__ unsigned __int128 product =
        (unsigned __int128)(key ^ map->seed) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)((uint64_t)(product >> 64) ^ (uint64_t)product) & (map->capacity - 1);
}

/* Pointer to the value of `key`, valid until the next put; NULL: no such key. */
static inline uint32_t *occ_map_find(const struct occ_map *map, uint64_t key)
{
    if (map->capacity == 0)
        return NULL;
    uint32_t at = occ_map_home(map, key);
    while (map->values[at] != OCC_MAP_NONE && map->keys[at] != key)
        at = (at + 1) & (map->capacity - 1);
    return map->values[at] != OCC_MAP_NONE ? &map->values[at] : NULL;
}

/* The value of `key`, or OCC_MAP_NONE. */
static inline uint32_t occ_map_get(const struct occ_map *map, uint64_t key)
{
    const uint32_t *value = occ_map_find(map, key);
    return value ? *value : OCC_MAP_NONE;
}

/* The value of `key`; a new key gets `value`. OCC_MAP_NONE: no memory. */
static inline uint32_t occ_map_put(struct occ_map *map, uint64_t key, uint32_t value)
{
    if (map->used >= map->capacity / 2 && !occ_map_grow(map))
        return OCC_MAP_NONE;
    uint32_t at = occ_map_home(map, key);
    while (map->values[at] != OCC_MAP_NONE) {
        if (map->keys[at] == key)
            return map->values[at];
        at = (at + 1) & (map->capacity - 1);
    }
    map->keys[at] = key;
    map->values[at] = value;
    map->used++;
    return value;
}
