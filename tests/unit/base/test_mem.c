/* mem: the heap with one rule for out of memory (proto/base/mem.h). */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/mem.h"

static void a_list_grows_and_keeps_what_is_in_it (void **state)
{
    (void)state;
    uint64_t *list = NULL;
    uint32_t cap = 0, moves = 0;
    for (uint32_t n = 0; n < 100000; n++) {
        uint32_t before = cap;
        list = mem_grow (list, &cap, n + 1, sizeof *list);
        moves += cap != before;
        assert_true (cap > n);
        list[n] = n * UINT64_C (7);
    }
    for (uint32_t n = 0; n < 100000; n++)
        assert_int_equal (list[n], n * UINT64_C (7));
    assert_true (moves < 20);
    uint64_t *same = mem_grow (list, &cap, 5, sizeof *list);
    assert_ptr_equal (same, list);
    free (list);
}

static void a_capacity_doubles_until_it_is_enough (void **state)
{
    (void)state;
    assert_int_equal (mem_grown_cap (0, 1), 16);
    assert_int_equal (mem_grown_cap (0, 17), 32);
    assert_int_equal (mem_grown_cap (100, 101), 200);
    assert_int_equal (mem_grown_cap (100, 50), 100);
}

static void memory_is_there_also_for_nothing (void **state)
{
    (void)state;
    void *none = mem_alloc (0), *zero = mem_zero (0, 8), *copy = mem_copy (NULL, 0);
    assert_non_null (none);
    assert_non_null (zero);
    assert_non_null (copy);
    none = mem_resize (none, 0);
    assert_non_null (none);
    free (none);
    free (zero);
    free (copy);
}

static void zeroed_and_copied (void **state)
{
    (void)state;
    static const char text[] = "a copy";
    const unsigned char *zero = mem_zero (100, 3);
    for (int i = 0; i < 300; i++)
        assert_int_equal (zero[i], 0);
    char *copy = mem_copy (text, sizeof text);
    assert_ptr_not_equal (copy, text);
    assert_string_equal (copy, text);
    free ((void *)zero);
    free (copy);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_list_grows_and_keeps_what_is_in_it),
        cmocka_unit_test (a_capacity_doubles_until_it_is_enough),
        cmocka_unit_test (memory_is_there_also_for_nothing),
        cmocka_unit_test (zeroed_and_copied),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
