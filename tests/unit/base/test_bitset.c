#include "unit.h"

#include "proto/base/bitset.h"

static void against_an_array (void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 1, 63, 64, 65, 127, 128, 129, 1000};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        uint32_t n = sizes[k];
        struct arena *arena = arena_create (0);
        struct bitset s = bitset_make (arena, n);
        bool model[1000] = {0};
        assert_int_equal (bitset_next (&s, 0), n);
        for (uint32_t i = 0; i < n; i += 1 + i % 7) {
            bitset_set (&s, i);
            model[i] = true;
        }
        for (uint32_t i = 0; i < n; i += 3) {
            bitset_clear (&s, i);
            model[i] = false;
        }
        uint32_t count = 0;
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal (bitset_test (&s, i), model[i]);
            count += model[i];
            uint32_t next = i;
            while (next < n && !model[next])
                next++;
            assert_int_equal (bitset_next (&s, i), next);
        }
        assert_int_equal (bitset_count (&s), count);
        assert_int_equal (bitset_next (&s, n), n);
        arena_destroy (arena);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (against_an_array)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
