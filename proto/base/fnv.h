/* fnv: FNV-1a hashes of 64 bits (Fowler, Noll, Vo), made piece by piece from FNV_BEGIN on. Not for secrets. */
#ifndef NUI_BASE_FNV_H
#define NUI_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FNV_BEGIN UINT64_C (14695981039346656037)

static inline uint64_t fnv_bytes (uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *c = bytes;
    while (len--)
        hash = (hash ^ *c++) * UINT64_C (1099511628211);
    return hash;
}

/* With its end, so that the pieces of two texts cannot be taken for one. */
static inline uint64_t fnv_text (uint64_t hash, const char *text)
{
    return fnv_bytes (hash, text, strlen (text) + 1);
}

/* The same word by word, where the parts are numbers and the order of bytes must not matter. */
static inline uint64_t fnv_word (uint64_t hash, uint64_t word)
{
    return (hash ^ word) * UINT64_C (1099511628211);
}

#endif
