/* mem: the heap, for what has no arena. Out of memory aborts (asserts), as in an arena: a scheduler or a bank that has
 * half of what it must know does not go on. What is given back is free'd by its owner. Pure. */
#ifndef NUI_BASE_MEM_H
#define NUI_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

/* Never NULL, also for no bytes. */
void *mem_alloc (size_t bytes);
void *mem_zero (size_t count, size_t size); /* zeroed; their product is checked */
void *mem_resize (void *old, size_t bytes);
void *mem_copy (const void *bytes, size_t len);
/* Room for `need` items, and twice as many as before where that is more: a list that grows by one costs O(1) each. */
void *mem_grow (void *old, uint32_t *cap, uint32_t need, size_t size);
/* What mem_grow makes of a capacity. */
uint32_t mem_grown_cap (uint32_t cap, uint32_t need);

#endif
