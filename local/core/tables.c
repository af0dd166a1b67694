/* What the rooms of this folder are built of: rows that begin with a line of the cache, and a map from numbers to slots. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/core/state.h"

void *grow_lines (void *old, uint32_t *cap, uint32_t need, size_t size)
{
    if (need <= *cap)
        return old;
    size_t used = (size_t)*cap * size;
    *cap = mem_grown_cap (*cap, need);
    size_t lines = ((size_t)*cap * size + CACHE_LINE - 1) / CACHE_LINE;
    void *grown = aligned_alloc (CACHE_LINE, lines * CACHE_LINE);
    assert (grown && "out of memory");
    if (used)
        memcpy (grown, old, used);
    free (old);
    return grown;
}

#define MAP_GONE UINT64_MAX /* a key that was removed */

static uint32_t map_home (const struct id_map *map, uint64_t key)
{
    return (uint32_t)(key * UINT64_C (0x9E3779B97F4A7C15) >> 32) & (map->capacity - 1);
}

uint32_t map_find (const struct id_map *map, uint64_t key)
{
    if (map->capacity == 0)
        return SLOT_NONE;
    for (uint32_t i = map_home (map, key);; i = (i + 1) & (map->capacity - 1)) {
        if (map->key[i] == key)
            return map->slot[i];
        if (map->key[i] == 0)
            return SLOT_NONE;
    }
}

static void map_place (struct id_map *map, uint64_t key, uint32_t slot)
{
    uint32_t i = map_home (map, key);

    while (map->key[i] != 0 && map->key[i] != MAP_GONE)
        i = (i + 1) & (map->capacity - 1);
    map->used += map->key[i] == 0;
    map->key[i] = key;
    map->slot[i] = slot;
}

static void map_rebuild (struct id_map *map)
{
    struct id_map old = *map;
    uint32_t capacity = 64;

    while (capacity < old.count * 4)
        capacity *= 2;
    map->capacity = capacity;
    map->key = mem_zero (capacity, sizeof *map->key);
    map->slot = mem_alloc (capacity * sizeof *map->slot);
    map->used = 0;
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (old.key[i] != 0 && old.key[i] != MAP_GONE)
            map_place (map, old.key[i], old.slot[i]);
    }
    free (old.key);
    free (old.slot);
}

void map_put (struct id_map *map, uint64_t key, uint32_t slot)
{
    if (map->used * 4 >= map->capacity * 3)
        map_rebuild (map);
    map_place (map, key, slot);
    map->count++;
}

void map_remove (struct id_map *map, uint64_t key)
{
    uint32_t mask = map->capacity - 1;
    uint32_t i = map_home (map, key);

    while (map->key[i] != key)
        i = (i + 1) & mask;
    if (map->key[(i + 1) & mask] == 0) {
        map->key[i] = 0; /* the end of its chain: really empty again */
        map->used--;
    } else {
        map->key[i] = MAP_GONE;
    }
    map->count--;
}
