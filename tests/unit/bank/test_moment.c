/* The ledger's time: never back, never by a jump that nobody vouches for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "bank/store/moment.h"

#define S US_PER_S
#define HOUR (3600 * S)
static const time_us START = INT64_C (1795271400) * S;

static struct moment_now at (duration_us wall, duration_us boot)
{
    return (struct moment_now){START + wall, 1000 * S + boot};
}

static struct moment begun (duration_us wall, duration_us database, duration_us recorded)
{
    struct moment m = {.bound = 60 * S};
    moment_begin (&m, at (wall, 0), START + database, START + recorded);
    return m;
}

static void moments_only_grow (void **state)
{
    (void)state;
    struct moment m = begun (0, 0, -5 * S);
    time_us a = moment_next (&m, at (0, 0)), b = moment_next (&m, at (0, 0));
    assert_true (a == START && b == START + 1);
    assert_true (moment_next (&m, at (S, S)) == START + S);
    /* Back: it goes on from its last moment, and says so beyond the bound. */
    assert_true (moment_next (&m, at (-30 * S, S)) == START + S + 1);
    assert_int_equal (moment_behind (&m, at (-30 * S, S)), 0);
    assert_true (moment_next (&m, at (-HOUR, 2 * S)) == START + S + 2);
    assert_true (moment_behind (&m, at (-HOUR, 2 * S)) > HOUR);
    assert_int_equal (moment_ahead (&m, at (-HOUR, 2 * S)), 0);
    assert_int_equal (moment_ahead (&m, at (3 * S, 3 * S)), 0); /* and right again */
    /* What was recorded by others before counts. */
    m = begun (0, 0, 50 * S);
    assert_true (moment_next (&m, at (0, 0)) == START + 50 * S + 1);
}

static void a_step_ahead_is_not_believed (void **state)
{
    (void)state;
    struct moment m = begun (0, 0, 0);
    assert_int_equal (moment_ahead (&m, at (61 * S, S)), 0); /* 60 s beyond a second later */
    assert_int_equal (moment_ahead (&m, at (2 * HOUR, 10 * S)), 2 * HOUR - 10 * S);
    assert_true (moment_next (&m, at (2 * HOUR, 10 * S)) ==
                 START + 10 * S); /* what can be believed */
    assert_int_equal (moment_ahead (&m, at (2 * HOUR + S, 11 * S)),
                      2 * HOUR - 10 * S); /* and stays so */
    moment_begin (&m, at (2 * HOUR + S, 11 * S), START + 2 * HOUR,
                  0); /* a new connection changes nothing */
    assert_true (moment_ahead (&m, at (2 * HOUR + S, 11 * S)) > 0);
    assert_int_equal (moment_ahead (&m, at (12 * S, 12 * S)), 0); /* it is right again */
    assert_true (moment_next (&m, at (12 * S, 12 * S)) == START + 12 * S);
}

static void many_small_steps_add_up (void **state)
{
    (void)state;
    struct moment m = begun (0, 0, 0);
    duration_us wall = 0;
    int steps = 0;
    for (duration_us boot = 0; boot < HOUR && !moment_ahead (&m, at (wall, boot));
         boot += 10 * S, steps++) {
        moment_next (&m, at (wall, boot));
        wall += 10 * S + 20 * S;
    }
    assert_true (steps < 5);
    /* A slow drift does not. */
    m = begun (0, 0, 0);
    for (duration_us boot = 0; boot < 100 * HOUR; boot += 600 * S) {
        wall = boot + boot / 1000; /* 3.6 s an hour */
        assert_int_equal (moment_ahead (&m, at (wall, boot)), 0);
        moment_next (&m, at (wall, boot));
    }
}

static void the_database_is_asked_at_the_beginning (void **state)
{
    (void)state;
    struct moment m = begun (2 * HOUR, 0, -HOUR);
    assert_int_equal (moment_ahead (&m, at (2 * HOUR, 0)), 2 * HOUR);
    assert_true (moment_next (&m, at (2 * HOUR, 0)) == START);
    m = begun (0, 2 * HOUR, 0); /* it is ahead of us: that is not our clock's fault */
    assert_int_equal (moment_ahead (&m, at (0, 0)), 0);
    m = begun (30 * S, 0, 0);
    assert_int_equal (moment_ahead (&m, at (30 * S, 0)), 0);
    assert_true (moment_next (&m, at (30 * S, 0)) == START + 30 * S);
}

static void an_operator_may_vouch (void **state)
{
    (void)state;
    struct moment m = begun (2 * HOUR, 0, 0);
    moment_accept (&m, at (2 * HOUR, S));
    m.accepted = true;
    assert_int_equal (moment_ahead (&m, at (2 * HOUR + S, 2 * S)), 0);
    assert_true (moment_next (&m, at (2 * HOUR + S, 2 * S)) == START + 2 * HOUR + S);
    moment_begin (&m, at (2 * HOUR + 2 * S, 3 * S), START + 3 * S, 0); /* a new connection: still */
    assert_int_equal (moment_ahead (&m, at (2 * HOUR + 2 * S, 3 * S)), 0);
    assert_true (moment_ahead (&m, at (9 * HOUR, 3 * S)) > 0); /* that far and no further */
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (moments_only_grow),
        cmocka_unit_test (a_step_ahead_is_not_believed),
        cmocka_unit_test (many_small_steps_add_up),
        cmocka_unit_test (the_database_is_asked_at_the_beginning),
        cmocka_unit_test (an_operator_may_vouch),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
