#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/strtab.h"

static void numbers_are_dense_and_stable (void **state)
{
    (void)state;
    struct strtab *tab = strtab_create ();
    char name[32];
    for (uint32_t i = 0; i < 20000; i++) {
        snprintf (name, sizeof name, "user%u", i);
        assert_int_equal (strtab_find (tab, name), STRTAB_NONE);
        assert_int_equal (strtab_intern (tab, name), i);
        assert_int_equal (strtab_intern (tab, name), i);
    }
    memset (name, 0, sizeof name); /* the table has copies */
    assert_int_equal (strtab_count (tab), 20000);
    for (uint32_t i = 0; i < 20000; i++) {
        snprintf (name, sizeof name, "user%u", i);
        assert_int_equal (strtab_find (tab, name), i);
        assert_string_equal (strtab_name (tab, i), name);
    }
    assert_null (strtab_name (tab, 20000));
    assert_null (strtab_name (tab, STRTAB_NONE));
    strtab_destroy (tab);
}

static void odd_names (void **state)
{
    (void)state;
    struct strtab *tab = strtab_create ();
    assert_int_equal (strtab_intern (tab, ""), 0);
    assert_int_equal (strtab_intern (tab, "A"), 1);
    assert_int_equal (strtab_intern (tab, "a"), 2);
    assert_int_equal (strtab_find (tab, ""), 0);
    strtab_destroy (tab);
    strtab_destroy (NULL);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (numbers_are_dense_and_stable),
        cmocka_unit_test (odd_names),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
