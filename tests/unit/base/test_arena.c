#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/arena.h"

static void pieces_are_aligned_and_apart (void **state)
{
    (void)state;
    struct arena *arena = arena_create (256);
    unsigned char *piece[200];
    for (unsigned i = 0; i < 200; i++) {
        piece[i] = arena_alloc (arena, i);
        assert_int_equal ((uintptr_t)piece[i] % 16, 0);
        memset (piece[i], (int)i, i);
    }
    for (unsigned i = 0; i < 200; i++)
        for (unsigned b = 0; b < i; b++)
            assert_int_equal (piece[i][b], i);
    void *a = arena_alloc (arena, 0), *b = arena_alloc (arena, 0);
    assert_non_null (a);
    assert_ptr_not_equal (a, b);
    arena_destroy (arena);
}

static void zeroed_after_reuse (void **state)
{
    (void)state;
    struct arena *arena = arena_create (0);
    memset (arena_alloc (arena, 4096), 0xff, 4096);
    arena_reset (arena);
    assert_int_equal (arena_used_bytes (arena), 0);
    unsigned char *p = arena_array (arena, 512, 8);
    for (int i = 0; i < 4096; i++)
        assert_int_equal (p[i], 0);
    assert_true (arena_used_bytes (arena) >= 4096);
    arena_destroy (arena);
}

static void reset_keeps_the_largest_block (void **state)
{
    (void)state;
    struct arena *arena = arena_create (64);
    arena_alloc (arena, 64);
    arena_alloc (arena, 1 << 20);
    unsigned char *grown = arena_alloc (arena, 64); /* opens a block as large as what is in use */
    arena_reset (arena);
    assert_ptr_equal (arena_alloc (arena, 1 << 20), grown);
    arena_destroy (arena);
}

static void a_large_piece_does_not_waste_the_open_block (void **state)
{
    (void)state;
    struct arena *arena = arena_create (4096);
    unsigned char *a = arena_alloc (arena, 16);
    arena_alloc (arena, 100000);
    unsigned char *b = arena_alloc (arena, 16);
    assert_ptr_equal (b, a + 16);
    arena_destroy (arena);
}

static void texts (void **state)
{
    (void)state;
    struct arena *arena = arena_create (32);
    assert_string_equal (arena_strdup (arena, ""), "");
    assert_string_equal (arena_printf (arena, "%s-%d", "node", 42), "node-42");
    char *dup = arena_memdup (arena, "a\0b", 3);
    assert_memory_equal (dup, "a\0b", 3);
    assert_non_null (arena_memdup (arena, NULL, 0));
    arena_destroy (arena);
    arena_destroy (NULL);
}

/* Whatever is left of a block when it is written: none is cut, none is over another. */
static void texts_at_a_blocks_end (void **state)
{
    (void)state;
    enum { TEXTS = 200 };
    struct arena *arena = arena_create (128);
    char *text[TEXTS], want[TEXTS + 16];
    for (int i = 0; i < TEXTS; i++)
        text[i] = arena_printf (arena, "%d:%0*d", i, i, i);
    for (int i = 0; i < TEXTS; i++) {
        snprintf (want, sizeof (want), "%d:%0*d", i, i, i);
        assert_string_equal (text[i], want);
    }
    arena_destroy (arena);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (pieces_are_aligned_and_apart),
        cmocka_unit_test (zeroed_after_reuse),
        cmocka_unit_test (reset_keeps_the_largest_block),
        cmocka_unit_test (a_large_piece_does_not_waste_the_open_block),
        cmocka_unit_test (texts),
        cmocka_unit_test (texts_at_a_blocks_end),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
