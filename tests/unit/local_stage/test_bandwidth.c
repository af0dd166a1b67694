#include "tests/unit/base/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local/stage/bandwidth.h"

enum { OTHERWISE = 1000 };

/* Moves at a rate for so many seconds, a sample each. */
static duration_us move (struct bandwidth *b, struct pair *p, duration_us now, int seconds,
                         int64_t rate)
{
    for (int i = 0; i < seconds; i++) {
        p->moved += rate;
        now += US_PER_S;
        bandwidth_sample (b, p, now);
    }
    return now;
}

static void measure_follows_and_forgets (void **state)
{
    (void)state;
    struct bandwidth b = {0};
    struct pair *p = bandwidth_pair (&b, "h", STAGE_IN);
    assert_int_equal (bandwidth_rate (p, OTHERWISE), OTHERWISE);
    assert_int_equal (bandwidth_rate (NULL, OTHERWISE), OTHERWISE);
    bandwidth_enter (p, 0);
    duration_us now = move (&b, p, 0, 1, 3000);
    assert_in_range (bandwidth_rate (p, OTHERWISE), 1999, 2001); /* one second measured, one said */
    now = move (&b, p, now, 300, 3000);
    assert_in_range (bandwidth_rate (p, OTHERWISE), 2900, 3000);
    now = move (&b, p, now, 60, 100000); /* e^-1 of the old stays */
    assert_in_range (bandwidth_rate (p, OTHERWISE), 55000, 70000);
    int64_t before = bandwidth_rate (p, OTHERWISE);
    move (&b, p, now, 3600, 0); /* nothing moved: nothing is learnt */
    assert_int_equal (bandwidth_rate (p, OTHERWISE), before);
    bandwidth_leave (&b, p, now);
    assert_int_equal (p->active, 0);
    assert_int_equal (bandwidth_rate (bandwidth_find (&b, "h", STAGE_OUT), OTHERWISE), OTHERWISE);
    bandwidth_free (&b);
}

static void it_is_kept (void **state)
{
    (void)state;
    char folder[] = "/tmp/nui-bandwidth-XXXXXX", path[64];
    assert_non_null (mkdtemp (folder));
    int dir = open (folder, O_RDONLY | O_DIRECTORY);
    struct bandwidth b = {0}, again = {0};
    static const char *const hosts[] = {"a.example.org", "2001:db8::1", ""};
    for (size_t i = 0; i < 3; i++) {
        struct pair *p = bandwidth_pair (&b, hosts[i], i == 1 ? STAGE_OUT : STAGE_IN);
        bandwidth_enter (p, 0);
        move (&b, p, 0, 20, 5000 * (int64_t)(i + 1));
    }
    bandwidth_save (&b, dir);
    bandwidth_load (&again, dir);
    for (size_t i = 0; i < 3; i++) {
        enum stage_direction way = i == 1 ? STAGE_OUT : STAGE_IN;
        assert_int_equal (bandwidth_rate (bandwidth_find (&b, hosts[i], way), 1) / 10,
                          bandwidth_rate (bandwidth_find (&again, hosts[i], way), 1) / 10);
    }
    bandwidth_free (&again);
    snprintf (path, sizeof path, "%s/bandwidth", folder);
    FILE *f = fopen (path, "w");
    fputs ("garbage\nnan 1 in x\n-5 1 in y\n1 inf in z\n100 1.0 in good\n", f);
    fclose (f);
    again = (struct bandwidth){0};
    bandwidth_load (&again, dir);
    assert_int_equal (HASH_COUNT (again.pair), 1);
    bandwidth_free (&again);
    bandwidth_free (&b);
    unlink (path);
    rmdir (folder);
    close (dir);
}

static void hosts_are_bounded (void **state)
{
    (void)state;
    struct bandwidth b = {0};
    char name[32];
    struct pair *used = bandwidth_pair (&b, "used", STAGE_IN);
    bandwidth_enter (used, 0);
    for (int i = 0; i < BANDWIDTH_HOSTS_MAX + 100; i++) {
        snprintf (name, sizeof name, "h%d", i);
        bandwidth_pair (&b, name, STAGE_IN);
    }
    assert_int_equal (HASH_COUNT (b.pair), BANDWIDTH_HOSTS_MAX);
    assert_ptr_equal (bandwidth_find (&b, "used", STAGE_IN), used);
    bandwidth_free (&b);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (measure_follows_and_forgets),
        cmocka_unit_test (it_is_kept),
        cmocka_unit_test (hosts_are_bounded),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
