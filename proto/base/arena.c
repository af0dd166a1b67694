/* arena: a chain of blocks, the head bumped, a new and larger one when it is full. Everybody
 * calls it, policy passes most of all: nothing is freed one by one, and an allocation never
 * returns NULL: running out of memory aborts. */
#include "proto/base/arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_ALIGN = 16, ARENA_BLOCK_DEFAULT = 64 * 1024, ARENA_GROW_MAX = 8 * 1024 * 1024 };

struct block {
    struct block *next;
    size_t cap;
    size_t used;
    alignas (ARENA_ALIGN) unsigned char data[];
};

/* The head block is the one that is bumped; blocks behind it are full or hold one large piece. */
struct arena {
    struct block *head;
    size_t block_bytes;
    size_t used_bytes;
};

struct arena *arena_create (size_t block_bytes)
{
    struct arena *arena = calloc (1, sizeof *arena);
    assert (arena);
    arena->block_bytes = block_bytes ? block_bytes : ARENA_BLOCK_DEFAULT;
    return arena;
}

void arena_destroy (struct arena *arena)
{
    if (!arena)
        return;
    for (struct block *b = arena->head, *next; b; b = next) {
        next = b->next;
        free (b);
    }
    free (arena);
}

void arena_reset (struct arena *arena)
{
    struct block *largest = arena->head;
    for (struct block *b = arena->head; b; b = b->next)
        if (b->cap > largest->cap)
            largest = b;
    for (struct block *b = arena->head, *next; b; b = next) {
        next = b->next;
        if (b != largest)
            free (b);
    }
    if (largest) {
        largest->next = NULL;
        largest->used = 0;
    }
    arena->head = largest;
    arena->used_bytes = 0;
}

size_t arena_used_bytes (const struct arena *arena)
{
    return arena->used_bytes;
}

/* Blocks grow with what is in use, so that the number of blocks stays logarithmic. */
static void *alloc_from_new_block (struct arena *arena, size_t need)
{
    size_t cap = arena->used_bytes < ARENA_GROW_MAX ? arena->used_bytes : ARENA_GROW_MAX;
    if (cap < arena->block_bytes)
        cap = arena->block_bytes;
    if (cap < need)
        cap = need;
    assert (cap <= SIZE_MAX - sizeof (struct block));
    struct block *b = malloc (sizeof *b + cap);
    assert (b);
    b->cap = cap;
    b->used = need;
    struct block *head = arena->head;
    if (head && head->cap - head->used > cap - need) {
        b->next = head->next;
        head->next = b;
    } else {
        b->next = head;
        arena->head = b;
    }
    arena->used_bytes += need;
    return b->data;
}

void *arena_alloc (struct arena *arena, size_t bytes)
{
    assert (bytes <= SIZE_MAX - 2 * ARENA_ALIGN);
    size_t need = bytes ? (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1) : ARENA_ALIGN;
    struct block *b = arena->head;
    if (!b || need > b->cap - b->used)
        return alloc_from_new_block (arena, need);
    void *p = b->data + b->used;
    b->used += need;
    arena->used_bytes += need;
    return p;
}

void *arena_zalloc (struct arena *arena, size_t bytes)
{
    void *p = arena_alloc (arena, bytes);
    memset (p, 0, bytes);
    return p;
}

void *arena_array (struct arena *arena, size_t count, size_t size)
{
    size_t bytes = 0;
    bool overflow = __builtin_mul_overflow (count, size, &bytes);
    assert (!overflow);
    return arena_zalloc (arena, bytes);
}

void *arena_memdup (struct arena *arena, const void *bytes, size_t len)
{
    void *p = arena_alloc (arena, len);
    if (len)
        memcpy (p, bytes, len);
    return p;
}

char *arena_strdup (struct arena *arena, const char *text)
{
    return arena_memdup (arena, text, strlen (text) + 1);
}

char *arena_vprintf (struct arena *arena, const char *fmt, va_list ap)
{
    va_list again;
    va_copy (again, ap);
    struct block *b = arena->head; /* most texts fit in what is left of it: written once */
    size_t left = b ? b->cap - b->used : 0;
    int n = vsnprintf (left ? (char *)b->data + b->used : NULL, left, fmt, again);
    va_end (again);
    assert (n >= 0);
    char *text = arena_alloc (arena, (size_t)n + 1);
    if ((size_t)n >= left || text != (char *)b->data + b->used)
        vsnprintf (text, (size_t)n + 1, fmt, ap);
    return text;
}

char *arena_printf (struct arena *arena, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    char *text = arena_vprintf (arena, fmt, ap);
    va_end (ap);
    return text;
}
