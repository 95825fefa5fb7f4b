/* Memory of the hash table. No globals; a map belongs to one thread. */
#include "map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static bool allocate(struct occ_map *map, uint32_t capacity)
{
    uint64_t *keys = malloc((size_t)capacity * sizeof *keys);
    uint32_t *values = malloc((size_t)capacity * sizeof *values);
    if (!keys || !values) {
        free(keys);
        free(values);
        return false;
    }
    memset(values, 0xff, (size_t)capacity * sizeof *values);
    *map = (struct occ_map){
        .keys = keys, .values = values, .capacity = capacity, .seed = (uint64_t)(uintptr_t)keys};
    /* without random bytes, the address of the table has to do */
    (void)!getrandom(&map->seed, sizeof map->seed, GRND_NONBLOCK);
    return true;
}

void occ_map_clear(struct occ_map *map)
{
    if (map->capacity > 0)
        memset(map->values, 0xff, (size_t)map->capacity * sizeof *map->values);
    map->used = 0;
}

bool occ_map_grow(struct occ_map *map)
{
    struct occ_map bigger = {0};
    if (map->capacity >= UINT32_C(1) << 30 || !allocate(&bigger, map->capacity ? map->capacity * 2 : 64))
        return false;
    for (uint32_t i = 0; i < map->capacity; i++)
        if (map->values[i] != OCC_MAP_NONE)
            (void)occ_map_put(&bigger, map->keys[i], map->values[i]);
    occ_map_free(map);
    *map = bigger;
    return true;
}

void occ_map_free(struct occ_map *map)
{
    free(map->keys);
    free(map->values);
    *map = (struct occ_map){0};
}
