#include "unit.h"

#include <string.h>
#include <time.h>

#include "proto/base/clock.h"

static void clocks_run (void **state)
{
    (void)state;
    time_t wall = time (NULL);
    time_us now = clock_now_us ();
    assert_true (now / US_PER_S - wall <= 1 && wall - now / US_PER_S <= 1);
    duration_us last = clock_monotonic_us ();
    for (int i = 0; i < 1000; i++) {
        duration_us next = clock_monotonic_us ();
        assert_true (next >= last);
        last = next;
    }
}

static void random_fills_all_bytes (void **state)
{
    (void)state;
    unsigned char seen[64] = {0};
    for (int round = 0; round < 64; round++) {
        unsigned char bytes[64] = {0};
        random_bytes (bytes, sizeof bytes);
        for (int i = 0; i < 64; i++)
            seen[i] |= bytes[i];
    }
    for (int i = 0; i < 64; i++)
        assert_int_not_equal (seen[i], 0);
    random_bytes (NULL, 0);
}

static void uuids_are_version_4 (void **state)
{
    (void)state;
    struct uuid a, b;
    uuid_make (&a);
    uuid_make (&b);
    assert_int_equal (a.b[6] >> 4, 4);
    assert_int_equal (a.b[8] >> 6, 2);
    assert_memory_not_equal (a.b, b.b, 16);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (clocks_run),
        cmocka_unit_test (random_fills_all_bytes),
        cmocka_unit_test (uuids_are_version_4),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
