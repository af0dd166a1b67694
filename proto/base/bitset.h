/* bitset: a fixed number of bits. Pure; header only; out-of-range indices assert. */
#ifndef NUI_BASE_BITSET_H
#define NUI_BASE_BITSET_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "proto/base/arena.h"

struct bitset {
    uint32_t bit_count;
    uint64_t *word;
};

static inline uint32_t bitset_words (uint32_t bit_count)
{
    return (bit_count + 63) / 64;
}

static inline struct bitset bitset_make (struct arena *arena, uint32_t bit_count)
{
    return (struct bitset){bit_count, (uint64_t *)arena_array (arena, bitset_words (bit_count), 8)};
}

static inline bool bitset_test (const struct bitset *s, uint32_t i)
{
    assert (i < s->bit_count);
    return (s->word[i >> 6] >> (i & 63)) & 1;
}

static inline void bitset_set (struct bitset *s, uint32_t i)
{
    assert (i < s->bit_count);
    s->word[i >> 6] |= UINT64_C (1) << (i & 63);
}

static inline void bitset_clear (struct bitset *s, uint32_t i)
{
    assert (i < s->bit_count);
    s->word[i >> 6] &= ~(UINT64_C (1) << (i & 63));
}

static inline uint32_t bitset_count (const struct bitset *s)
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < bitset_words (s->bit_count); w++)
        n += (uint32_t)__builtin_popcountll (s->word[w]);
    return n;
}

/* Index of the first set bit at or after from, or bit_count. */
static inline uint32_t bitset_next (const struct bitset *s, uint32_t from)
{
    for (uint32_t w = from >> 6; w < bitset_words (s->bit_count); w++) {
        uint64_t bits = s->word[w];
        if (w == from >> 6)
            bits &= ~UINT64_C (0) << (from & 63);
        if (bits)
            return w * 64 + (uint32_t)__builtin_ctzll (bits);
    }
    return s->bit_count;
}

#endif
