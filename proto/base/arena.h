/* arena: memory with one lifetime (a pass, a request). Pure.
 *
 * Allocation is a pointer bump; everything goes at once with arena_reset or arena_destroy.
 * Out of memory aborts (asserts): an arena is for bounded work whose size was checked before. */
#ifndef NUI_BASE_ARENA_H
#define NUI_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena;

struct arena *arena_create (size_t block_bytes); /* 0: 64 KiB */
void arena_destroy (struct arena *arena);        /* NULL is a no-op */
void arena_reset (struct arena *arena);          /* keeps the largest block for reuse */
size_t arena_used_bytes (const struct arena *arena);

/* Uninitialised, aligned to 16 bytes; never NULL; size 0 gives a valid unique pointer. */
void *arena_alloc (struct arena *arena, size_t bytes);
void *arena_zalloc (struct arena *arena, size_t bytes);
/* count * size, overflow checked (asserts), zeroed. */
void *arena_array (struct arena *arena, size_t count, size_t size);
void *arena_memdup (struct arena *arena, const void *bytes, size_t len);
char *arena_strdup (struct arena *arena, const char *text);
char *arena_printf (struct arena *arena, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
char *arena_vprintf (struct arena *arena, const char *fmt, va_list ap)
    __attribute__ ((format (printf, 2, 0)));

#define arena_new(arena, type) ((type *)arena_zalloc ((arena), sizeof (type)))

#endif
