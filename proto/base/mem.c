/* The heap, for what has no arena: see mem.h. */
#include "proto/base/mem.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void *mem_there (void *memory)
{
    assert (memory && "out of memory");
    return memory;
}

void *mem_alloc (size_t bytes)
{
    return mem_there (malloc (bytes ? bytes : 1));
}

void *mem_zero (size_t count, size_t size)
{
    return mem_there (calloc (count ? count : 1, size));
}

void *mem_resize (void *old, size_t bytes)
{
    return mem_there (realloc (old, bytes ? bytes : 1));
}

void *mem_copy (const void *bytes, size_t len)
{
    void *copy = mem_alloc (len);

    if (len)
        memcpy (copy, bytes, len);
    return copy;
}

uint32_t mem_grown_cap (uint32_t cap, uint32_t need)
{
    uint32_t wanted = cap ? cap : 16;

    while (wanted < need)
        wanted *= 2;
    return wanted;
}

void *mem_grow (void *old, uint32_t *cap, uint32_t need, size_t size)
{
    size_t bytes;

    if (need <= *cap)
        return old;
    *cap = mem_grown_cap (*cap, need);
    bool over = __builtin_mul_overflow ((size_t)*cap, size, &bytes);
    assert (!over);
    return mem_resize (old, bytes);
}
